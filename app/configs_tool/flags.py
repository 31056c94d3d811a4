"""Checks the flags of `lockstep configs` as kafka-configs checks its own.

Source: `kafka.admin.ConfigCommand.ConfigCommandOptions.checkArgs`. The second table has the rules of Lockstep's own
flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import javaproperties

from app.properties.config_providers import ConfigProvider, resolve
from app.properties.mistakes import REFERENCE, Findings, PropertyLine
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from streaming.errors import WrongUsage


class EntityType(str, Enum):
    """The values of `--entity-type`."""

    BROKERS = "brokers"
    TOPICS = "topics"
    LOCKSTEP = "lockstep"


SCOPES = {EntityType.BROKERS: ResourceType.BROKER, EntityType.TOPICS: ResourceType.TOPIC}


@dataclass(frozen=True)
class Flags:
    """The flags of the command line. `added` may hold secrets."""

    describe: bool = False
    alter: bool = False
    cluster: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    entity_type: EntityType | None = None
    entity_name: str | None = None
    entity_default: bool = False
    broker: str | None = None
    broker_defaults: bool = False
    topic: str | None = None
    added: tuple[str, ...] = field(default=(), repr=False)
    added_file: Path | None = None
    deleted: tuple[str, ...] = ()
    every: bool = False
    dry_run: bool = False
    custom: bool = False
    literal: bool = False
    canary: str | None = None
    canary_time: float | None = None

    @property
    def short(self) -> int:
        """How many of kafka-configs' short forms were given (--broker, --broker-defaults, --topic)."""
        return sum(one is not None for one in (self.broker, self.topic)) + self.broker_defaults

    @property
    def kind(self) -> EntityType | None:
        """The entity type, given as --entity-type or by a short flag (--broker, --topic)."""
        if self.broker is not None or self.broker_defaults:
            return EntityType.BROKERS
        return EntityType.TOPICS if self.topic is not None else self.entity_type

    @property
    def name(self) -> str | None:
        """The entity's name; "" for the default, None if there is none."""
        if self.entity_default or self.broker_defaults:
            return ""
        return next((one for one in (self.entity_name, self.broker, self.topic) if one is not None), None)

    @property
    def altering(self) -> bool:
        return bool(self.added or self.added_file or self.deleted)


FlagRule = tuple[Callable[[Flags], bool], str]
"""A test that returns True if the rule is broken, and the message for that."""

FLAG_RULES: tuple[FlagRule, ...] = (
    (lambda f: f.describe is f.alter, "give exactly one of --describe and --alter"),
    (
        lambda f: f.kind is not EntityType.LOCKSTEP and (f.cluster is None) is (f.bootstrap_server is None),
        "give exactly one of --cluster ALIAS (of the properties file) and --bootstrap-server HOST:PORT",
    ),
    (
        lambda f: f.command_config is not None and f.bootstrap_server is None,
        "--command-config goes with --bootstrap-server; the clients of --cluster are configured in the properties file",
    ),
    (
        lambda f: f.short > 0 and (f.entity_type is not None or f.entity_name is not None or f.entity_default),
        "--entity-type, --entity-name and --entity-default do not go with --broker, --broker-defaults and --topic",
    ),
    (lambda f: f.short > 1, "give only one of --broker, --broker-defaults and --topic"),
    (lambda f: f.kind is None, "name the entities: --entity-type brokers, topics or lockstep"),
    (
        lambda f: f.entity_default and f.entity_name is not None,
        "give --entity-name or --entity-default, not both",
    ),
    (
        lambda f: f.kind is EntityType.TOPICS and f.entity_default,
        "topics have no --entity-default: their defaults are configs of the brokers, such as log.retention.ms",
    ),
    (
        lambda f: f.kind is EntityType.BROKERS and bool(f.name) and not _is_id(f.name),
        "--entity-name of a broker is its id, a number",
    ),
    (lambda f: f.entity_name == "" or f.broker == "" or f.topic == "", "the entity's name is empty"),
    (
        lambda f: f.alter and f.name is None,
        "--alter needs --entity-name, or --entity-default: that of a whole cluster's brokers, or of all flows",
    ),
    (lambda f: f.alter and not f.altering, "--alter needs --add-config, --add-config-file or --delete-config"),
    (lambda f: bool(f.added) and f.added_file is not None, "give --add-config or --add-config-file, not both"),
    (lambda f: f.describe and f.altering, "--add-config, --add-config-file and --delete-config go with --alter"),
    (lambda f: f.alter and f.every, "--all goes with --describe"),
)

OWN_RULES: tuple[FlagRule, ...] = (
    (
        lambda f: f.kind is EntityType.LOCKSTEP and (f.cluster is not None or f.bootstrap_server is not None),
        "--entity-type lockstep goes without --cluster and --bootstrap-server: its configs are kept in each flow's "
        "ledger, on the target that the properties file names",
    ),
    (
        lambda f: f.describe and (f.dry_run or f.custom or f.literal or f.canary is not None),
        "--dry-run, --custom, --literal and --canary go with --alter",
    ),
    (
        lambda f: f.canary is not None and (f.kind is not EntityType.BROKERS or f.name != ""),
        "--canary tries out what is to become the default of all brokers: say --entity-type brokers --entity-default",
    ),
    (lambda f: f.canary is not None and not _is_id(f.canary), "--canary takes the id of a broker, a number"),
    (lambda f: f.canary is not None and bool(f.deleted), "--canary goes with --add-config: it tries values out"),
    (lambda f: f.canary is not None and f.dry_run, "--canary writes: it does not go with --dry-run"),
    (lambda f: f.canary is None and f.canary_time is not None, "--canary-time goes with --canary"),
)


def check_flags(flags: Flags) -> None:
    """Raises WrongUsage with all flags that do not fit together."""
    if wrong := [message for is_broken, message in (*FLAG_RULES, *OWN_RULES) if is_broken(flags)]:
        raise WrongUsage(*wrong)


def entity_of(flags: Flags) -> ConfigEntity | None:
    """Returns the entity that the flags name; None for all. The flags are already checked."""
    if flags.kind is None or flags.name is None:
        return None
    return ConfigEntity(SCOPES[flags.kind], flags.name) if flags.name else DEFAULT_OF_ALL


def _is_id(name: str | None) -> bool:
    return name is not None and name.isascii() and name.removeprefix("-").isdigit()


# The values of an alteration: references resolved here, secrets asked for, and none in an error.


PROMPT = "?"
"""A value that stands for a question at the terminal."""

Ask = Callable[[str], str]
"""Asks the user for the secret of the config with this name."""


def wanted_configs(added: Iterable[str], added_file: Path | None, deleted: Iterable[str]) -> dict[str, str | None]:
    """Returns the values as written, by name; None deletes a config. Raises WrongUsage."""
    wanted: dict[str, str | None] = {}
    for text in added:
        wanted |= parse_added(text)
    if added_file is not None:
        try:
            wanted |= parse_added_file(added_file.read_bytes())
        except OSError as error:
            raise WrongUsage(f"--add-config-file {added_file} cannot be read: {error.strerror}") from error
    names = parse_deleted(deleted)
    if both := [name for name in names if name in wanted]:
        raise WrongUsage(f"{', '.join(both)}: named to add and to delete; choose one")
    wanted |= dict.fromkeys(names)
    if not wanted:
        raise WrongUsage("there is no config in --add-config, --add-config-file or --delete-config")
    return wanted


def resolved(
    wanted: Mapping[str, str | None], providers: Mapping[str, ConfigProvider] | None, ask: Ask
) -> dict[str, str | None]:
    """Returns the values to send, with references replaced and `?` asked for. `providers`: None keeps references.

    Raises WrongUsage for a reference that cannot be resolved, because a broker would take `${…}` for the password.
    """
    values, wrong = dict(wanted), []
    for name, value in wanted.items():
        if value == PROMPT:
            values[name] = ask(name)
        elif value is not None and providers is not None and REFERENCE.search(value):
            entry = resolve(PropertyLine(name, value, 0, value), providers, Findings("--add-config"))
            values[name] = entry.value
            if entry.problem is not None:
                wrong.append(f"{name}: {entry.problem}; --literal keeps it as it is written")
    if wrong:
        raise WrongUsage(*wrong)
    return values


# `--add-config`, `--add-config-file` and `--delete-config` as kafka-configs reads them.
#
# Source: `kafka.admin.ConfigCommand`, `parseConfigsToBeAdded` and `parseConfigsToBeDeleted`. Values in square brackets
# may hold commas and equals signs; brackets are dropped wherever they are, so a value that needs them goes into a file.
# Names that no config can have are refused, as the tool did before Kafka 4. No error repeats a value: any of them may
# be a secret.


OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
COMMA = re.compile(rf",{OUTSIDE_BRACKETS}", re.ASCII)
EQUALS = re.compile(rf"\s*=\s*{OUTSIDE_BRACKETS}", re.ASCII)
BRACKETS = re.compile(r"\[?\]?")
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]*")
TRIMMED = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes."""


def parse_added(text: str) -> dict[str, str]:
    """Parses `k1=v1,k2=[v1,v2],k3=`. The last value of a name wins. Raises WrongUsage."""
    parts = COMMA.split(text)
    while len(parts) > 1 and not parts[-1]:
        # Java's split drops empty strings at the end.
        parts.pop()
    if len(parts) == 1 and not parts[0] and text:
        return {}
    added: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        pair = EQUALS.split(part)
        if len(pair) != 2:
            raise WrongUsage(
                f"--add-config: config {number} is not in the form key=value; write a value that has commas or equals "
                "signs in square brackets, key=[value1,value2], and what has brackets itself into --add-config-file"
            )
        added[pair[0].strip(TRIMMED)] = BRACKETS.sub("", pair[1]).strip(TRIMMED)
    _check_names(added, "--add-config")
    return added


def parse_added_file(data: bytes) -> dict[str, str]:
    """Parses a properties file as `java.util.Properties` does. Raises WrongUsage."""
    try:
        added: dict[str, str] = javaproperties.loads(data.decode("iso-8859-1"))
    except ValueError:
        raise WrongUsage("--add-config-file cannot be read as properties: write a config a line, key=value") from None
    _check_names(added, "--add-config-file")
    return added


def parse_deleted(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the names in `k1,k2`, each once. `texts`: one for each flag."""
    names = (name.strip(TRIMMED) for text in texts for name in text.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _check_names(added: Iterable[str], flag: str) -> None:
    for number, name in enumerate(added, 1):
        if not name or not LEGAL_NAME.fullmatch(name):
            # Not shown: where brackets are missing, a part of a password stands in the place of a name.
            raise WrongUsage(f"{flag}: the name of config {number} is empty or has characters besides a-zA-Z0-9._-")
