"""The cluster that `lockstep configs` speaks to: an alias of the properties file, or an address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.configs_tool.flags import Flags
from app.properties.config_providers import ConfigProvider, config_providers, resolve_all
from app.properties.mistakes import Findings, PropertyLine
from app.properties.parse import read
from app.settings import load
from app.settings.reading import USUAL, Reading
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_topics import JvmPartitions, JvmTopics
from sinks.kafka.ports.brokers import Partitions
from sinks.kafka.ports.config_levels import ConfigLevels
from sinks.kafka.request_timeout import WHOLE
from streaming.errors import WrongUsage


@dataclass(frozen=True)
class ClusterAccess:
    """How a cluster is reached: a name for messages, Java client properties, and what resolves references in values."""

    alias: str
    properties: Mapping[str, str]
    providers: Mapping[str, ConfigProvider]

    def __repr__(self) -> str:
        return f"ClusterAccess({self.alias!r}, {sorted(self.properties)})"


@dataclass(frozen=True)
class Opened:
    """A cluster's configs with their levels, and its partitions."""

    access: ClusterAccess
    levels: ConfigLevels
    partitions: Partitions


def cluster_access(flags: Flags, config: Path, reading: Reading = USUAL) -> ClusterAccess:
    """Raises ConfigurationError with every mistake of a file, WrongUsage for an alias that is not in it."""
    if flags.cluster is None:
        return _by_address(str(flags.bootstrap_server), flags.command_config, reading.timeout)
    settings, findings = load(config, reading=reading), Findings(str(config))
    # Only its clusters are asked for.
    settings.close()
    if flags.cluster not in settings.clusters:
        raise WrongUsage(f"--cluster {flags.cluster}: {config} has {', '.join(sorted(settings.clusters))}")
    providers = config_providers(read(config, findings), os.environ, findings)
    return ClusterAccess(flags.cluster, settings.cluster(flags.cluster).admin, providers)


@contextmanager
def opened(access: ClusterAccess) -> Iterator[Opened]:
    """Connects on demand; lets go of the client. Raises LockstepError for a client that cannot be made."""
    with closing(admin_of(access.alias, access.properties)) as admin:
        yield Opened(access, JvmLevels(admin), JvmPartitions(JvmTopics(admin)))


def _by_address(address: str, command_config: Path | None, timeout: float | None) -> ClusterAccess:
    findings = Findings(str(command_config))
    entries: Mapping[str, PropertyLine] = {}
    if command_config is not None:
        entries = resolve_all(read(command_config, findings), os.environ, findings)
        for entry in entries.values():
            if entry.problem is not None:
                findings.mistake(entry, entry.problem)
        findings.raise_if_any()
    properties = {name: entry.value for name, entry in entries.items()} | {"bootstrap.servers": address}
    if timeout is not None:
        properties[WHOLE] = str(int(timeout * 1000))
    return ClusterAccess(address, properties, config_providers(entries, os.environ, findings))
