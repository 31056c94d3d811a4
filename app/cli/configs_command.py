"""`lockstep configs`: the flags of kafka-configs, with every level shown and a trial on one broker first (KIP-226)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.failures import Failed, Failures, with_failures
from app.cli.output import DONE, FAILED, Output, closed_at_end, complain, print_json, print_line
from app.cli.running import ask_reload
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, OutputOption, chosen, loaded, need_terminal, seconds
from app.configs_tool.alter import ABSENT_ENTITY, Alteration, checked, known_configs, named, said, validate, write
from app.configs_tool.canary import Canary
from app.configs_tool.flags import EntityType, Flags, check_flags, entity_of, resolved, wanted_configs
from app.configs_tool.precedence import ConfigView, views
from app.overrides.ledgers import Unreadable, each, open_ledgers, read_overrides
from app.overrides.overridable import checked_overrides, permitted
from app.overrides.view import OverrideAlteration, default_views, flow_views
from app.overrides.with_overrides import in_plain, override_of
from app.properties.config_providers import ConfigProvider, config_providers, resolve_all
from app.properties.mistakes import Findings, PropertyLine
from app.properties.parse import read
from app.settings import Settings, load
from app.settings.job_settings import USUAL, Overrides, Reading, Reference
from app.settings.load import read_properties
from app.wiring import admin_of
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.cluster import Partitions
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigLevels, ConfigValues, ResourceType
from sinks.kafka.request_timeout import WHOLE
from sinks.ledger.overrides import InLedger, OverrideLevel, texts_at
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow
from streaming.message_words import nearest_hint

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
    """Shows and alters configs of brokers and topics, as kafka-configs does, and Lockstep's own. Exit 2: nothing was
    written."""
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
        return _own_configs(flags, config, output)
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
    shown: list[Described] = []
    for one in (one for one in entities if one in seen.items):
        which = "All" if flags.every and one != DEFAULT_OF_ALL else "Dynamic"
        shown.append((_entity(one), f"{which} configs of {named(one)}:", views(one, seen.items[one], flags.every)))
    return _print_described(
        shown, [(named(one), LockstepError(said(fault))) for one, fault in seen.errors.items()], output
    )


def _entities(flags: Flags, there: Opened) -> list[ConfigEntity]:
    """Returns the entities that kafka-configs shows without a name: the brokers and their default, or the topics."""
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
        _print_alteration(alteration, "validated", output)
        return DONE
    if not write(there.levels, alteration, threading.Event().wait):
        complain(f"written, but {named(entity)} does not show it yet: check with --describe")
    _print_alteration(alteration, "applied", output)
    return DONE


def _try_out(flags: Flags, there: Opened, wanted: ConfigValues, output: Output) -> int:
    seconds = CANARY_TIME if flags.canary_time is None else flags.canary_time
    with _ending() as ended:
        canary = Canary(there.levels, there.partitions, ended.wait, time.sleep, complain, seconds)
        alteration = canary.run(str(flags.canary), wanted, flags.custom)
    _print_alteration(alteration, "applied", output)
    return DONE


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """Yields an event that SIGINT and SIGTERM set, instead of ending the process. So it can first take back what it
    wrote."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in ENDING}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_alteration(alteration: Alteration, result: str, output: Output) -> None:
    entity = alteration.entity
    if result == "validated":
        told = f"Validated for {named(entity)}; nothing was written."
    elif entity == DEFAULT_OF_ALL:
        told = "Completed updating default config for brokers in the cluster."
    else:
        told = f"Completed updating config for {named(entity)}."
    _print_altered(_entity(entity) | {"result": result}, alteration.rows(), told, output)


def _print_altered(
    document: dict[str, Any],
    changes: Sequence[Mapping[str, Any]],
    told: str,
    output: Output,
    failed: Sequence[Failed] = (),
) -> None:
    """Prints what was altered. `told`: the last line for people."""
    if output is Output.JSON:
        print_json(with_failures(document | {"changes": changes}, failed))
        return
    for row in changes:
        before, after = ("not set" if row[side] is None else row[side] for side in ("before", "after"))
        print_line(f"  {row['name']}: {before} -> {after}")
    print_line(told)


Described = tuple[dict[str, Any], str, Sequence[ConfigView]]
"""An entity as a document, its title for people, and its configs."""


def _print_described(shown: Sequence[Described], failed: Sequence[Failed], output: Output) -> int:
    if output is Output.JSON:
        documents = [document | {"configs": [row.as_json() for row in rows]} for document, _, rows in shown]
        print_json(with_failures({"entities": documents}, failed))
    else:
        for _, title, rows in shown:
            print_line(title)
            for line in (line for row in rows for line in row.lines()):
                print_line(f"  {line}")
    return FAILED if failed else DONE


def _entity(entity: ConfigEntity) -> dict[str, Any]:
    return {"entity_type": ENTITY_TYPES[entity.type], "entity_name": entity.name}


def _ask(name: str) -> str:
    need_terminal(f"the value of {name} is ?", "give ${file:PATH:KEY} or ${env:NAME}")
    return str(typer.prompt(name, hide_input=True, err=True))


ClusterOption = Annotated[str | None, typer.Option("--cluster", help="An alias of the properties file.")]
ServerOption = Annotated[str | None, typer.Option("--bootstrap-server", help="HOST:PORT of brokers.")]
ClientOption = Annotated[
    Path | None, typer.Option("--command-config", help="Java client properties for --bootstrap-server.")
]
DescribeOption = Annotated[bool, typer.Option("--describe", help="Show every level and mark the one in force.")]
AlterOption = Annotated[bool, typer.Option("--alter", help="Add, change and delete configs.")]
EntityTypeOption = Annotated[EntityType | None, typer.Option("--entity-type")]
EntityNameOption = Annotated[str | None, typer.Option("--entity-name", help="The id of a broker, a topic, or a flow.")]
EntityDefaultOption = Annotated[
    bool, typer.Option("--entity-default", help="The default of all brokers, or of all flows.")
]
BrokerOption = Annotated[str | None, typer.Option("--broker", help="Short for --entity-type brokers --entity-name.")]
BrokerDefaultsOption = Annotated[
    bool, typer.Option("--broker-defaults", help="Short for --entity-type brokers --entity-default.")
]
TopicOption = Annotated[str | None, typer.Option("--topic", help="Short for --entity-type topics --entity-name.")]
AddOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-config", help="k1=v1,k2=[v1,v2]. Resolves ${file:PATH:KEY} and ${env:NAME}; asks for the value ?."
    ),
]
AddFileOption = Annotated[
    Path | None, typer.Option("--add-config-file", help="A properties file with the configs to add.")
]
DeleteOption = Annotated[list[str] | None, typer.Option("--delete-config", help="k1,k2")]
AllOption = Annotated[bool, typer.Option("--all", help="Also show configs that are not set at the entity itself.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Let the brokers validate the change; write nothing.")]
CustomOption = Annotated[bool, typer.Option("--custom", help="Accept names that Kafka does not know.")]
LiteralOption = Annotated[
    bool, typer.Option("--literal", help="Send references unchanged, for the brokers' own config providers.")
]
CanaryOption = Annotated[
    str | None,
    typer.Option(
        "--canary", help="Try the configs on this broker first; if all is well, make them the default of all."
    ),
]
CanaryTimeOption = Annotated[
    float | None,
    typer.Option("--canary-time", parser=seconds, help="How long to watch that broker.", show_default="60"),
]


# The cluster that `lockstep configs` speaks to: an alias of the properties file, or an address.


@dataclass(frozen=True)
class ClusterAccess:
    """How to reach a cluster: its name in messages, Java client properties, and config providers for values."""

    alias: str
    properties: Mapping[str, str]
    providers: Mapping[str, ConfigProvider]

    def __repr__(self) -> str:
        return f"ClusterAccess({self.alias!r}, {sorted(self.properties)})"


@dataclass(frozen=True)
class Opened:
    levels: ConfigLevels
    partitions: Partitions


def cluster_access(flags: Flags, config: Path, reading: Reading = USUAL) -> ClusterAccess:
    """Returns how to reach the cluster of the flags. Raises ConfigurationError for the file, WrongUsage for a wrong
    alias."""
    if flags.cluster is None:
        return _by_address(str(flags.bootstrap_server), flags.command_config, reading.timeout)
    settings, findings = load(config, reading=reading), Findings(str(config))
    # Only its clusters are asked for.
    settings.close()
    if flags.cluster not in settings.clusters:
        raise WrongUsage(
            f"--cluster {flags.cluster}: {config} has no such cluster. It has {', '.join(sorted(settings.clusters))}"
        )
    providers = config_providers(read(config, findings), os.environ, findings)
    return ClusterAccess(flags.cluster, settings.cluster(flags.cluster).admin, providers)


@contextmanager
def opened(access: ClusterAccess) -> Iterator[Opened]:
    """Opens a client that connects on demand, and closes it. Raises LockstepError if no client can be created."""
    with closing(admin_of(access.alias, access.properties)) as admin:
        yield Opened(JvmLevels(admin), JvmTopics(admin))


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


# `--entity-type lockstep`: Lockstep's own properties, kept in the flows' ledgers (KIP-226).


@dataclass(frozen=True)
class Selection:
    """The properties file, and whose configs the command shows or alters. `name`: one flow; "" stands for the default
    of all flows. Without a name it shows the default and every flow, and alters the default."""

    config: Path
    settings: Settings
    name: str | None

    @property
    def flows(self) -> list[FlowSettings]:
        """Returns the flows whose ledgers are concerned. Raises WrongUsage for a flow that is not enabled."""
        if not self.name:
            return list(self.settings.flows)
        names = {one.flow.name: one for one in self.settings.flows}
        if self.name not in names:
            hint = nearest_hint(self.name, names)
            raise WrongUsage(f"--entity-name {self.name}: enabled flows are {', '.join(names)}{hint}")
        return [names[self.name]]


def _own_configs(flags: Flags, config: Path, output: Output) -> int:
    """Shows or alters Lockstep's own configs and returns the exit code. Raises WrongUsage and ConfigurationError before
    it writes."""
    selection = Selection(config, loaded(config, None), flags.name)
    if flags.describe:
        return _describe_own(selection, flags.every, output)
    wanted = wanted_configs(flags.added, flags.added_file, flags.deleted)
    providers = None if flags.literal else config_providers(read(config, Findings("")), os.environ, Findings(""))
    return _alter_own(selection, resolved(wanted, providers, _ask), flags, output)


def _describe_own(selection: Selection, every: bool, output: Output) -> int:
    found = read_overrides(selection.settings)
    concerned = {one.flow for one in selection.flows}
    stored: dict[Flow, InLedger] = {}
    failed = Failures()
    for flow in sorted(concerned):
        entries = found[flow]
        if isinstance(entries, Unreadable):
            complain(str(entries))
            failed.append((flow.name, entries))
        else:
            stored[flow] = entries
    file = str(selection.config)
    properties = read_properties(selection.config, os.environ)
    ways: dict[str, Callable[[], list[ConfigView]]] = {}
    if not selection.name:
        ways[""] = partial(default_views, stored, properties, file, every)
    if selection.name != "":
        ways |= {flow.name: partial(flow_views, flow, own, properties, file, every) for flow, own in stored.items()}
    shown: list[Described] = []
    for name, view in ways.items():
        with failed.noted(_own_label(name)):
            title = f"{'All' if every else 'Dynamic'} configs of Lockstep for {_own_label(name)}:"
            shown.append((_own_document(name), title, view()))
    return _print_described(shown, failed, output)


def _alter_own(selection: Selection, values: Mapping[str, str | None], flags: Flags, output: Output) -> int:
    before, properties = _known(selection), selection.settings.job_properties
    level = OverrideLevel.FLOW if selection.name else OverrideLevel.ALL
    label, document = _own_label(selection.name), _own_document(selection.name)
    flows = [one.flow for one in selection.flows]
    there = {name for flow in flows for name in texts_at(before[flow], level)}
    wanted = checked_overrides(values, there, flags.custom, flags.literal, permitted(properties))
    overrides = {
        name: None if value is None else override_of(name, value, properties, flags.literal)
        for name, value in wanted.items()
    }
    alteration = OverrideAlteration(level, flows, before, wanted, overrides)
    # All of it, with the file, must be sound: contradictions and plug-ins' own objections show here.
    sound = load(
        selection.config,
        overrides=_without_references(in_plain(alteration.after, properties, selection.config)),
        reading=chosen(),
    )
    closed_at_end(sound.close)
    if flags.dry_run:
        told = f"Validated for {label}; nothing was written."
        _print_altered(document | {"result": "validated"}, alteration.rows(), told, output)
        return DONE
    with open_ledgers(selection.settings, selection.flows) as ledgers:
        done, failed = each(
            selection.flows, lambda one: ledgers.write(one.flow, alteration.entries, alteration.changes(one.flow))
        )
    if not done:
        raise LockstepError("\n".join(f"not written: {reason}" for reason in failed))
    for reason in failed:
        complain(f"not written: {reason}. Run the command again: it leaves what is written already as it is")
    _notify_job(sound)
    told = f"Completed updating config for {', '.join(done) if failed else label}."
    lost = [("not written", LockstepError(reason)) for reason in failed]
    _print_altered(document | {"result": "applied"}, alteration.rows(), told, output, lost)
    return FAILED if failed else DONE


def _without_references(values: Overrides) -> Overrides:
    """Returns the overrides without references: the files that they name are on the job's machine and may be missing
    here."""
    return {
        flow: {name: value for name, value in own.items() if not isinstance(value, Reference)}
        for flow, own in values.items()
    }


def _known(selection: Selection) -> dict[Flow, InLedger]:
    """Returns the overrides of all flows, to check them together. Raises LockstepError if a concerned ledger cannot be
    read."""
    concerned = {one.flow for one in selection.flows}
    known: dict[Flow, InLedger] = {}
    for flow, entries in read_overrides(selection.settings).items():
        if not isinstance(entries, Unreadable):
            known[flow] = entries
        elif flow in concerned:
            raise LockstepError(f"nothing was written: {entries}")
    return known


def _notify_job(settings: Settings) -> None:
    interval = max(one.pace.full_comparison_interval for one in settings.flows)
    try:
        answer = ask_reload(settings)
    except LockstepError:
        complain(
            f"no job answers here. A job that runs elsewhere adopts the change within {interval:g} s, "
            "or at once with `lockstep reload`"
        )
        return
    if problem := answer.get("error"):
        complain(f"written, but the running job could not adopt it: {problem}")


def _own_document(name: str | None) -> dict[str, Any]:
    return {"entity_type": EntityType.LOCKSTEP.value, "entity_name": name or ""}


def _own_label(name: str | None) -> str:
    return f"the flow {name}" if name else "all flows"
