"""The cluster that `lockstep configs` speaks to: an alias of the properties file, or an address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.configs.asked import Flags
from app.jvm import kafka_jvm
from app.properties.mistakes import Entry, Findings
from app.properties.parse import read
from app.properties.providers import ConfigProvider, config_providers, resolve_all
from app.settings import load
from sinks.cluster.admin import count_nothing
from sinks.cluster.jvm_levels import JvmLevels
from sinks.cluster.levels import ConfigLevels
from sinks.cluster.partitions import KafkaPartitions, Partitions
from sinks.configs.arguments import WrongArguments


@dataclass(frozen=True)
class Asked:
    """Who is asked: a name for messages, Java client properties, and what resolves references in values."""

    alias: str
    properties: Mapping[str, str]
    providers: Mapping[str, ConfigProvider]

    def __repr__(self) -> str:
        return f"Asked({self.alias!r}, {sorted(self.properties)})"


@dataclass
class Opened:
    """A cluster's configs with their levels, and its partitions, through a client that few commands need."""

    asked: Asked
    levels: ConfigLevels

    @cached_property
    def partitions(self) -> Partitions:
        """Raises LockstepError for client settings that librdkafka cannot have."""
        return KafkaPartitions(self.asked.alias, self.asked.properties)


def asked_cluster(flags: Flags, config: Path) -> Asked:
    """Raises ConfigurationError with every mistake of a file, WrongArguments for an alias that is not in it."""
    if flags.cluster is None:
        return _by_address(str(flags.bootstrap_server), flags.command_config)
    settings, findings = load(config), Findings(str(config))
    if flags.cluster not in settings.clusters:
        raise WrongArguments(f"--cluster {flags.cluster}: {config} has {', '.join(sorted(settings.clusters))}")
    providers = config_providers(read(config, findings), os.environ, findings)
    return Asked(flags.cluster, settings.cluster(flags.cluster).admin, providers)


@contextmanager
def opened(asked: Asked) -> Iterator[Opened]:
    """Connects on demand; ends what it started. Raises LockstepError where there is no Java."""
    with kafka_jvm() as gateway:
        levels = JvmLevels(asked.alias, gateway, asked.properties, count_nothing)
        try:
            yield Opened(asked, levels)
        finally:
            levels.close()


def _by_address(address: str, command_config: Path | None) -> Asked:
    findings = Findings(str(command_config))
    entries: Mapping[str, Entry] = {}
    if command_config is not None:
        entries = resolve_all(read(command_config, findings), os.environ, findings)
        for entry in entries.values():
            if entry.problem is not None:
                findings.mistake(entry, entry.problem)
        findings.raise_if_any()
    properties = {name: entry.value for name, entry in entries.items()} | {"bootstrap.servers": address}
    return Asked(address, properties, config_providers(entries, os.environ, findings))
