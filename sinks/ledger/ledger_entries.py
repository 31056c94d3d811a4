"""What a ledger remembers: its entries, and the keys and values of their records. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any

import orjson

from sinks.compact_json import compact_json
from sinks.kafka.ports.cluster import Record
from sinks.ledger.avro import SingleObject
from sinks.model.changes import Key
from streaming.mm2.records import TopicPartition

ENTRY_SCHEMA = SingleObject("ledger-entry")
HISTORY_KEY = "HISTORY"
"""Begins the keys of offset histories, whose values have a schema of their own."""


class Entry(str, Enum):
    """The kinds of entries. A ledger that has others was written by a newer version, and is refused."""

    CLUSTER_ID = "CLUSTER_ID"
    OWNED = "OWNED"
    INTENT = "INTENT"
    PAUSED = "PAUSED"
    VERSION = "VERSION"
    TOPIC_IDS = "TOPIC_IDS"
    OVERRIDE = "OVERRIDE"
    FAILOVER = "FAILOVER"
    FENCE = "FENCE"
    STAGED = "STAGED"
    SOURCE_ENDS = "SOURCE_ENDS"
    DIVERGENCE = "DIVERGENCE"
    EXACT_OFFSETS = "EXACT_OFFSETS"
    DRILL = "DRILL"
    CLAIMED = "CLAIMED"
    LOST = "LOST"
    TRUNCATED = "TRUNCATED"


EntryKey = tuple[Entry, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """The value of an entry and since when it holds."""

    value: str
    since: datetime


OF_A_KIND = frozenset({Entry.OWNED, Entry.INTENT, Entry.VERSION})
"""Entries whose keys begin with a kind's name."""


class KeptEntries(MutableMapping[EntryKey, Remembered]):
    """Entries, apart by what they are about: a pass asks for a few kinds of them, of tens of thousands in all."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[Entry, str], dict[Key, Remembered]] = {}

    def of(self, entry: Entry) -> Mapping[Key, Remembered]:
        """All of an entry, by key."""
        if entry not in OF_A_KIND:
            return MappingProxyType(self._shelves.get((entry, ""), {}))
        kinds = {kind for kept, kind in self._shelves if kept is entry}
        return {(kind, *key): found for kind in kinds for key, found in self._shelves[entry, kind].items()}

    def of_kind(self, entry: Entry, kind: str) -> Mapping[Key, Remembered]:
        """What an entry has of one kind, by the item's own key."""
        return MappingProxyType(self._shelves.get((entry, kind), {}))

    def __getitem__(self, entry_key: EntryKey) -> Remembered:
        shelf, key = _place(entry_key)
        return self._shelves.get(shelf, {})[key]

    def __setitem__(self, entry_key: EntryKey, value: Remembered) -> None:
        shelf, key = _place(entry_key)
        self._shelves.setdefault(shelf, {})[key] = value

    def __delitem__(self, entry_key: EntryKey) -> None:
        shelf, key = _place(entry_key)
        del self._shelves.get(shelf, {})[key]

    def __iter__(self) -> Iterator[EntryKey]:
        for (entry, kind), shelf in self._shelves.items():
            yield from ((entry, (kind, *key) if entry in OF_A_KIND else key) for key in shelf)

    def __len__(self) -> int:
        return sum(map(len, self._shelves.values()))


def _place(entry_key: EntryKey) -> tuple[tuple[Entry, str], Key]:
    entry, key = entry_key
    return ((entry, key[0]), key[1:]) if entry in OF_A_KIND else ((entry, ""), key)


FAILOVER_STATE: EntryKey = (Entry.FAILOVER, ("state",))
"""How far a flow's failover is."""


def entry_key_bytes(entry_key: EntryKey) -> bytes:
    """The key of an entry's records."""
    entry, key = entry_key
    return compact_json([entry.value, *key])


def entry_record(entry_key: EntryKey, value: str | None, since: datetime) -> Record:
    """An entry as a record without a signature; None: it is forgotten."""
    entry, key = entry_key
    name = entry_key_bytes(entry_key)
    if value is None:
        return name, None
    return name, ENTRY_SCHEMA.encode({"entry": entry.value, "key": list(key), "value": value, "since": since})


def history_record(where: TopicPartition, data: bytes | None) -> Record:
    """The bytes of an offset history as a record without a signature; None: it is forgotten."""
    key = compact_json([HISTORY_KEY, where.topic, where.partition])
    return key, data


def parts_of(key: bytes) -> tuple[str, list[Any]]:
    """What a record is about, and of what. Raises ValueError, TypeError where that is no key of a ledger's."""
    name, *rest = orjson.loads(key)
    types = [str, int] if name == HISTORY_KEY else [str] * max(1, len(rest))
    if [type(part) for part in rest] != types:
        raise ValueError("it has other parts than such a key has")
    if orjson.dumps([name, *rest]) != key:
        # Two spellings would be two records of one entry. Compacting one would bring back the other.
        raise ValueError("it is spelt otherwise than Lockstep does")
    return name, rest
