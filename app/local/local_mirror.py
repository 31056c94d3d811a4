"""Runs a real MirrorMaker 2 on this machine, in its dedicated mode (KIP-382)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import javaproperties

from app.local.jar_sets import KAFKA_JARS, JarSet
from app.local.jars import fetched
from app.local.java import JavaProcess
from app.local.startable import JavaService, logging_options

MIRROR_READY_WITHIN = 300.0
"""Seconds in which MM2 must start. It takes 6 to 15 on an idle machine."""

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
SOURCE_STARTED = "Started MirrorSourceConnector with"
"""The log line of each enabled flow's source connector after it has listed the topics."""

ENABLED = re.compile(r"[^.]+->[^.]+\.enabled")
REPLICATED = (
    "checkpoints.topic",
    "heartbeats.topic",
    "offset-syncs.topic",
    "offset.storage",
    "status.storage",
    "config.storage",
)
"""Prefixes of `replication.factor`, which must be 1 with a single broker."""


def mirror_properties(clusters: Mapping[str, str], flows: Iterable[str], **overrides: str) -> dict[str, str]:
    """Returns MM2's properties for single-node clusters. `clusters`: bootstrap servers by alias. `flows`: the enabled
    ones, such as `a->b`. `overrides`: further properties, which win.

    Other flows emit no heartbeats, which saves a Connect worker.
    """
    enabled = set(flows)
    properties = {"clusters": ", ".join(clusters), "replication.factor": "1"}
    properties |= {f"{alias}.bootstrap.servers": bootstrap for alias, bootstrap in clusters.items()}
    properties |= {f"{name}.replication.factor": "1" for name in REPLICATED}
    for source, target in itertools.permutations(clusters, 2):
        flow = f"{source}->{target}"
        properties[f"{flow}.enabled"] = str(flow in enabled).lower()
        if flow not in enabled:
            properties[f"{flow}.emit.heartbeats.enabled"] = "false"
    return properties | overrides


def with_discovery(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties with keys that shorten MM2's start by a third. By default Connect scans all jars for
    plug-ins, once for each worker (KIP-898)."""
    aliases = (alias.strip() for alias in properties["clusters"].split(","))
    return {f"{alias}.plugin.discovery": "service_load" for alias in aliases} | dict(properties)


class LocalMirror(JavaService):
    """MM2 with these properties. `folder`: for its log, and for its file unless `file` is given. `jars`: of its Kafka
    version."""

    def __init__(
        self,
        properties: Mapping[str, str],
        folder: Path,
        *,
        heap: str = "512m",
        java_options: Sequence[str] = (),
        file: Path | None = None,
        jars: JarSet = KAFKA_JARS,
    ) -> None:
        super().__init__(folder)
        self._properties, self._file, self._jars = dict(properties), file, jars
        self._options = [f"-Xmx{heap}", "-XX:+UseSerialGC", *java_options]

    def start(self, *, wait: bool = True) -> None:
        """Starts MM2, unless it runs. Returns when every flow's source connector has started, or at once unless `wait`.

        If it does not start, stops it and raises LockstepError with the end of its log.
        """
        if self.pids:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file
        if file is None:
            file = self._folder / "mirror.properties"
            file.write_text(javaproperties.dumps(with_discovery(self._properties), timestamp=False), encoding="latin-1")
        options = [*self._options, *logging_options(self._folder)]
        self._processes = [JavaProcess(MAIN, [str(file)], fetched(self._jars), self._folder / "mirror.log", options)]
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self, timeout: float = MIRROR_READY_WITHIN) -> None:
        """Returns when every flow's source connector has started. Raises LockstepError after stopping MM2."""
        flows = sum(value == "true" for key, value in self._properties.items() if ENABLED.fullmatch(key))
        waited = f"MM2's source connectors to start (log in {self._folder})"
        self._wait_for(lambda: self._runs(flows), timeout, waited)

    def _runs(self, flows: int) -> bool:
        self.check()
        return sum(process.output().count(SOURCE_STARTED) for process in self._processes) >= flows
