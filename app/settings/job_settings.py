"""The settings of a properties file: clusters, flows, the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.properties.config_providers import ConfigProvider, resolve
from app.properties.mistakes import Findings, Mistake, PropertyLine
from app.properties.scoped_keys import PREFIX, ScopedKey
from sinks.flow_settings import FlowSettings
from sinks.kafka.request_timeout import WHOLE
from sinks.ledger.overrides import InLedger
from sinks.notify.metrics_reporting import MetricsReporter
from streaming.flow import Flow


@dataclass(frozen=True)
class ClusterSettings:
    """The Java client properties of one cluster, by role. Its `repr` shows names of properties, never values."""

    alias: str
    admin: Mapping[str, str] = field(repr=False)
    consumer: Mapping[str, str] = field(repr=False)
    producer: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap_servers(self) -> str:
        """The Admin client's bootstrap servers; empty if the file has none."""
        return self.admin.get("bootstrap.servers", "")

    def within(self, timeout: float | None) -> ClusterSettings:
        """Returns the settings with a time limit for calls of the Admin, in seconds. None changes nothing."""
        if timeout is None:
            return self
        return replace(self, admin={**self.admin, WHOLE: str(int(timeout * 1000))})

    def __repr__(self) -> str:
        roles = {"admin": self.admin, "consumer": self.consumer, "producer": self.producer}
        names = ", ".join(f"{role}={sorted(values)}" for role, values in roles.items())
        return f"ClusterSettings(alias={self.alias!r}, {names})"


@dataclass(frozen=True)
class JobSettings:
    """Settings of the whole job. Times are in seconds. Port 0 means any free port. `http_token`: None if no token is
    needed."""

    trigger_interval: float
    pass_min_interval: float
    checkpoint_dir: Path
    http_host: str
    http_port: int
    http_token: str | None = field(default=None, repr=False)
    log_format: str = "text"


@dataclass(frozen=True)
class Settings:
    """All settings of a properties file.

    `flows`: the enabled flows that were asked for, sorted. `left_out`: the other enabled flows; their plug-ins are
    closed. `overrides`: a cluster's client settings within one flow (`a->b.source.admin.KEY`). `values`: the file's
    values by key, replaced by overrides in force. `plugin_properties`: the same as a flow's plug-ins get it.
    `job_properties`: as `reporters` get it. All three hold secrets. `stored_overrides`: the overrides in each flow's
    ledger, as stored; None: they could not be read. `override_values`: those in force, in plain text. `shown`: keys
    whose values may be shown. `hidden`: texts that a message of other software must not repeat.
    """

    clusters: Mapping[str, ClusterSettings]
    flows: tuple[FlowSettings, ...]
    job: JobSettings
    warnings: tuple[Mistake, ...] = ()
    overrides: Mapping[tuple[Flow, str], ClusterSettings] = field(default_factory=dict)
    values: Mapping[ScopedKey, str] = field(default_factory=dict, repr=False)
    reporters: Mapping[str, MetricsReporter] = field(default_factory=dict)
    job_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    plugin_properties: Mapping[Flow, Mapping[str, str]] = field(default_factory=dict, repr=False)
    stored_overrides: Mapping[Flow, InLedger | None] = field(default_factory=dict, repr=False)
    override_values: Overrides = field(default_factory=dict, repr=False)
    shown: frozenset[ScopedKey] = frozenset()
    hidden: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[FlowSettings, ...] = ()

    def cluster(self, alias: str, flow: Flow | None = None) -> ClusterSettings:
        """Returns the settings of a cluster, for a flow if given. Raises KeyError if the file lacks the alias."""
        found = self.overrides.get((flow, alias)) if flow is not None else None
        return found or self.clusters[alias]

    def close(self, staying: Settings | None = None) -> None:
        """Closes the flows' plug-ins, each once. Flows that `staying` also has keep theirs. Raises nothing."""
        going_on = {id(flow) for flow in staying.flows} if staying is not None else set()
        for flow in self.flows:
            if id(flow) not in going_on:
                flow.close()


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a file. `strict`: unknown keys are mistakes. `timeout`: seconds for a call to a cluster, instead of
    the file's; None: the file's."""

    strict: bool = False
    timeout: float | None = None


USUAL = Reading()


# Properties that are kept in the ledgers and win over the file (KIP-226, dynamic over static).


Overrides = Mapping[Flow, Mapping[str, str]]
"""The values in force by flow and the key's own name, whatever level they come from."""


class Reference(str):
    """An override such as `${file:PATH:KEY}`, which the job resolves on its own machine."""

    __slots__ = ()


class Decoded(str):
    """A decoded secret override. The ledger stores it encoded, and no command shows it, whatever its key."""

    __slots__ = ()


def override_entries(
    overrides: Overrides, providers: Mapping[str, ConfigProvider], findings: Findings
) -> Iterator[PropertyLine]:
    """Yields the overrides as lines `a->b.lockstep.KEY`, only the strongest of each key, each with its origin for error
    messages."""
    for flow, values in overrides.items():
        for name, value in values.items():
            key = f"{flow.name}.{PREFIX}{name.removeprefix(PREFIX)}"
            entry = PropertyLine(
                key, value, 0, value, origin=f"the ledger of {flow.name}", encoded=isinstance(value, Decoded)
            )
            yield resolve(entry, providers, findings) if isinstance(value, Reference) else entry
