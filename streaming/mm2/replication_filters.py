"""What a flow replicates: MM2's filters of topics, groups and config keys, with MM2's own property names.

A list is split at commas and joined to one Java regular expression, which a whole name must match. The names before
KIP-629 (`topics.blacklist` and its like) count where the new one is missing, as Kafka read them up to 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Protocol

from streaming.errors import LockstepError
from streaming.mm2.java_regex import compile_java

DEFAULT_TOPICS = ".*"
DEFAULT_TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
DEFAULT_GROUPS = ".*"
DEFAULT_GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"
CONFIG_PROPERTIES_EXCLUDE = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, "
    "message.timestamp.type, unclean.leader.election.enable, min.insync.replicas"
)
DEPRECATED = {
    "topics.exclude": "topics.blacklist",
    "groups.exclude": "groups.blacklist",
    "config.properties.exclude": "config.properties.blacklist",
}
"""The name that each key had before KIP-629."""

PLAIN = re.compile(r"[\w.-]+", re.ASCII)
"""Matches an entry that may be a literal name: no character but the dot can make it a pattern."""

NO_NAME = re.compile(r"(?!)")
"""Matches nothing."""

BLANK = "".join(map(chr, range(33)))
"""Characters that Java's `String.trim` removes."""


class TopicFilter(Protocol):
    """Kafka's `TopicFilter`."""

    def should_replicate_topic(self, topic: str) -> bool:
        """Whether a topic is replicated. `topic`: its name on the source."""


class GroupFilter(Protocol):
    """Kafka's `GroupFilter`."""

    def should_replicate_group(self, group: str) -> bool:
        """Whether the offsets of a consumer group are synced."""


class ConfigPropertyFilter(Protocol):
    """Kafka's `ConfigPropertyFilter` (KIP-894)."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether a topic config is replicated. Other configs are never touched on the target."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Whether a config at the source's default is set on the target to that value; if not, the target keeps its own
        default."""


class _NameFilter:
    """Matches names against a list of names and patterns, except those in a second list. Matches none before
    `configure`. `plain_names`: literal names in the list."""

    _key: ClassVar[str]
    _defaults: ClassVar[tuple[str, str]]
    """Defaults of the list, and of the exceptions."""

    _include: re.Pattern[str] = NO_NAME
    _exclude: re.Pattern[str] = NO_NAME
    plain_names: tuple[str, ...] = ()

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read both lists. Raises LockstepError for a malformed one; the error names the pattern."""
        include, exclude = self._defaults
        self._include = _patterns(properties, self._key, include)
        self.plain_names = _plain_names(properties, self._key)
        self._exclude = _patterns(properties, f"{self._key}.exclude", exclude)

    def is_excluded(self, name: str) -> bool:
        return self._exclude.fullmatch(name) is not None

    def _lets_through(self, name: str) -> bool:
        return self._include.fullmatch(name) is not None and not self.is_excluded(name)


class DefaultTopicFilter(_NameFilter):
    """Kafka's `DefaultTopicFilter`: `topics` without `topics.exclude`."""

    _key = "topics"
    _defaults = DEFAULT_TOPICS, DEFAULT_TOPICS_EXCLUDE

    def should_replicate_topic(self, topic: str) -> bool:
        return self._lets_through(topic)


class DefaultGroupFilter(_NameFilter):
    """Kafka's `DefaultGroupFilter`: `groups` without `groups.exclude`."""

    _key = "groups"
    _defaults = DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE

    def should_replicate_group(self, group: str) -> bool:
        return self._lets_through(group)


class DefaultConfigPropertyFilter:
    """Kafka's `DefaultConfigPropertyFilter`: all but `config.properties.exclude`. `use.defaults.from` says whose
    defaults count."""

    def __init__(self) -> None:
        self.configure({})

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read the properties. Raises LockstepError for a malformed list. Any `use.defaults.from` but `source` means
        `target`, as in MM2."""
        self._exclude = _patterns(properties, "config.properties.exclude", CONFIG_PROPERTIES_EXCLUDE)
        self._source_defaults = properties.get("use.defaults.from", "target").strip(BLANK) == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        return self._exclude.fullmatch(name) is None

    def should_replicate_source_default(self, name: str) -> bool:
        return self._source_defaults


def _patterns(properties: Mapping[str, str], key: str, default: str) -> re.Pattern[str]:
    """Returns the list of a key as one pattern. An empty list matches nothing (`MirrorUtils`)."""
    deprecated = DEPRECATED.get(key, key)
    written = deprecated if key not in properties and deprecated in properties else key
    text = properties.get(written, default).strip(BLANK)
    if not text:
        return NO_NAME
    # As ConfigDef's LIST: white space is ASCII's, and a name that stands there twice counts once.
    parts = dict.fromkeys(re.split(r"\s*,\s*", text, flags=re.ASCII))
    if "" in parts:
        raise LockstepError(f"{written}: {text!r} has nothing between two commas, or at an end: take that comma out")
    try:
        return compile_java("|".join(parts))
    except LockstepError as error:
        raise LockstepError(f"{written}: {error}") from error


def _plain_names(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Returns the entries of a list that are literal names. A dot may be part of a name."""
    parts = (part.strip(BLANK) for part in properties.get(key, "").split(","))
    return tuple(dict.fromkeys(part for part in parts if PLAIN.fullmatch(part)))
