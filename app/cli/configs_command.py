"""`lockstep configs`: kafka-configs' own flags, with every level shown and a value tried out first (KIP-226)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.failures import with_failures
from app.cli.options import DEFAULT_CONFIG, ConfigOption, OutputOption, chosen, need_terminal, seconds
from app.cli.output import DONE, FAILED, Output, complain, print_json, print_line
from app.cli.own_configs_command import own_configs
from app.configs_tool.alter import ABSENT_ENTITY, Alteration, checked, known_configs, named, said, validate, write
from app.configs_tool.canary import Canary
from app.configs_tool.flags import EntityType, Flags, check_flags, entity_of, resolved, wanted_configs
from app.configs_tool.precedence import views
from app.properties.config_providers import ConfigProvider, config_providers, resolve_all
from app.properties.mistakes import Findings, PropertyLine
from app.properties.parse import read
from app.settings import load
from app.settings.job_settings import USUAL, Reading
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.brokers import Partitions
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigLevels, ConfigValues, ResourceType
from sinks.kafka.request_timeout import WHOLE
from streaming.errors import LockstepError, WrongUsage

CANARY_TIME = 60.0
ENTITY_TYPES = {ResourceType.BROKER: "brokers", ResourceType.TOPIC: "topics"}
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def configs(
    config: ConfigOption = DEFAULT_CONFIG,
    cluster: ClusterOption = None,
    bootstrap_server: ServerOption = None,
    command_config: ClientOption = None,
    describe: DescribeOption = False,
    alter: AlterOption = False,
    entity_type: EntityTypeOption = None,
    entity_name: EntityNameOption = None,
    entity_default: EntityDefaultOption = False,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaultsOption = False,
    topic: TopicOption = None,
    add_config: AddOption = None,
    add_config_file: AddFileOption = None,
    delete_config: DeleteOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    custom: CustomOption = False,
    literal: LiteralOption = False,
    canary: CanaryOption = None,
    canary_time: CanaryTimeOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Configs of brokers and topics, as kafka-configs has them, and Lockstep's own. Exit 2: nothing was written."""
    flags = Flags(describe=describe, alter=alter, every=every, dry_run=dry_run, custom=custom, literal=literal)
    flags = replace(flags, cluster=cluster, bootstrap_server=bootstrap_server, command_config=command_config)
    flags = replace(flags, entity_type=entity_type, entity_name=entity_name, entity_default=entity_default)
    flags = replace(flags, broker=broker, broker_defaults=broker_defaults, topic=topic)
    flags = replace(flags, added=tuple(add_config or ()), added_file=add_config_file)
    flags = replace(flags, deleted=tuple(delete_config or ()), canary=canary, canary_time=canary_time)
    raise typer.Exit(_answer(flags, config, output))


def _answer(flags: Flags, config: Path, output: Output) -> int:
    check_flags(flags)
    if flags.kind is EntityType.LOCKSTEP:
        return own_configs(flags, config, output, _ask)
    access = cluster_access(flags, config, chosen())
    if flags.describe:
        with opened(access) as there:
            return _describe(flags, there, output)
    wanted = wanted_configs(flags.added, flags.added_file, flags.deleted)
    values = resolved(wanted, None if flags.literal else access.providers, _ask)
    with opened(access) as there:
        if flags.canary is not None:
            return _try_out(flags, there, values, output)
        return _alter(flags, there, values, output)


def _describe(flags: Flags, there: Opened, output: Output) -> int:
    entity = entity_of(flags)
    entities = [entity] if entity is not None else _entities(flags, there)
    seen = there.levels.describe(entities)
    if entity is not None and entity in seen.errors and seen.errors[entity].code in ABSENT_ENTITY:
        raise WrongUsage(f"{named(entity)}: {said(seen.errors[entity])}")
    for broken, fault in seen.errors.items():
        complain(f"{named(broken)}: {said(fault)}")
    configs_of = {one: views(one, seen.items[one], flags.every) for one in entities if one in seen.items}
    if output is Output.JSON:
        documents = [_entity(one) | {"configs": [row.as_json() for row in configs_of[one]]} for one in configs_of]
        failed = [(named(one), LockstepError(said(fault))) for one, fault in seen.errors.items()]
        print_json(with_failures({"entities": documents}, failed))
    else:
        for one, rows in configs_of.items():
            print_line(f"{'All' if flags.every and one != DEFAULT_OF_ALL else 'Dynamic'} configs of {named(one)}:")
            for row in rows:
                for line in row.lines():
                    print_line(f"  {line}")
    return FAILED if seen.errors else DONE


def _entities(flags: Flags, there: Opened) -> list[ConfigEntity]:
    """All there are, as kafka-configs does without a name: the brokers and their default, or the topics."""
    if flags.kind is EntityType.TOPICS:
        return [ConfigEntity(ResourceType.TOPIC, name) for name in there.partitions.names()]
    return [*(ConfigEntity(ResourceType.BROKER, name) for name in there.levels.brokers()), DEFAULT_OF_ALL]


def _alter(flags: Flags, there: Opened, wanted: ConfigValues, output: Output) -> int:
    entity = entity_of(flags) or DEFAULT_OF_ALL
    alteration, notes = checked(entity, wanted, known_configs(there.levels, entity), flags.custom)
    for note in notes:
        complain(note)
    validate(there.levels, alteration)
    if flags.dry_run:
        _print_altered(alteration, "validated", output)
        return DONE
    if not write(there.levels, alteration, threading.Event().wait):
        complain(f"written, but {named(entity)} does not show it yet: check with --describe")
    _print_altered(alteration, "applied", output)
    return DONE


def _try_out(flags: Flags, there: Opened, wanted: ConfigValues, output: Output) -> int:
    seconds = CANARY_TIME if flags.canary_time is None else flags.canary_time
    with _ending() as ended:
        canary = Canary(there.levels, there.partitions, ended.wait, time.sleep, complain, seconds)
        alteration = canary.run(str(flags.canary), wanted, flags.custom)
    _print_altered(alteration, "applied", output)
    return DONE


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """Set by a signal that ends the process. The process then waits until everything is taken back."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in ENDING}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_altered(alteration: Alteration, result: str, output: Output) -> None:
    if output is Output.JSON:
        print_json(_entity(alteration.entity) | {"result": result, "changes": alteration.rows()})
        return
    for row in alteration.rows():
        print_line(f"  {row['name']}: {_shown_value(row['before'])} -> {_shown_value(row['after'])}")
    if result == "validated":
        print_line(f"Validated for {named(alteration.entity)}; nothing was written.")
    elif alteration.entity == DEFAULT_OF_ALL:
        print_line("Completed updating default config for brokers in the cluster.")
    else:
        print_line(f"Completed updating config for {named(alteration.entity)}.")


def _entity(entity: ConfigEntity) -> dict[str, Any]:
    return {"entity_type": ENTITY_TYPES[entity.type], "entity_name": entity.name}


def _shown_value(value: str | None) -> str:
    return "not set" if value is None else value


def _ask(name: str) -> str:
    need_terminal(f"the value of {name} is ?", "give ${file:PATH:KEY} or ${env:NAME}")
    return str(typer.prompt(name, hide_input=True, err=True))


ClusterOption = Annotated[str | None, typer.Option("--cluster", help="An alias of the properties file.")]
ServerOption = Annotated[str | None, typer.Option("--bootstrap-server", help="HOST:PORT of brokers.")]
ClientOption = Annotated[
    Path | None, typer.Option("--command-config", help="Java client properties for --bootstrap-server.")
]
DescribeOption = Annotated[bool, typer.Option("--describe", help="Every level, the one in force marked.")]
AlterOption = Annotated[bool, typer.Option("--alter", help="Adds, changes and deletes.")]
EntityTypeOption = Annotated[EntityType | None, typer.Option("--entity-type")]
EntityNameOption = Annotated[str | None, typer.Option("--entity-name", help="A broker's id, a topic, or a flow.")]
EntityDefaultOption = Annotated[
    bool, typer.Option("--entity-default", help="The default of all brokers, or of all flows.")
]
BrokerOption = Annotated[str | None, typer.Option("--broker", help="For --entity-type brokers --entity-name.")]
BrokerDefaultsOption = Annotated[
    bool, typer.Option("--broker-defaults", help="For --entity-type brokers --entity-default.")
]
TopicOption = Annotated[str | None, typer.Option("--topic", help="For --entity-type topics --entity-name.")]
AddOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-config", help="k1=v1,k2=[v1,v2]. A value ${file:PATH:KEY} or ${env:NAME} is looked up, ? asked for."
    ),
]
AddFileOption = Annotated[Path | None, typer.Option("--add-config-file", help="The same, as properties.")]
DeleteOption = Annotated[list[str] | None, typer.Option("--delete-config", help="k1,k2")]
AllOption = Annotated[bool, typer.Option("--all", help="Also what is not set at the entity itself.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="The brokers check it; nothing is written.")]
CustomOption = Annotated[bool, typer.Option("--custom", help="Names that Kafka does not know are no mistake.")]
LiteralOption = Annotated[bool, typer.Option("--literal", help="References are for the brokers' own providers.")]
CanaryOption = Annotated[
    str | None, typer.Option("--canary", help="First on this broker; when all is well, the default of all.")
]
CanaryTimeOption = Annotated[
    float | None, typer.Option("--canary-time", parser=seconds, help="How long to watch it.", show_default="60")
]


# The cluster that `lockstep configs` speaks to: an alias of the properties file, or an address.


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
    """Connects on demand, and closes the client. Raises LockstepError for a client that cannot be made."""
    with closing(admin_of(access.alias, access.properties)) as admin:
        yield Opened(access, JvmLevels(admin), JvmTopics(admin))


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
