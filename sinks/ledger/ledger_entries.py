"""The entries of a ledger, the keys and values of their records, and the records that Lockstep refuses. Pure.

Lockstep refuses a record that it cannot read, because the record may say that a kind is paused or that an item is not
Lockstep's. It skips only an unreadable offset history: the group then gets MM2's own, more careful offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import partial
from types import MappingProxyType

import orjson

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Record
from sinks.ledger.avro import SingleObject
from sinks.ledger.lease_records import LEASE_KEYS_BEGIN, Act, LeaseRecord, decoded, lease_flow
from sinks.ledger.seal import SIGN_COMMAND, TOLERATED_MS, Seal
from sinks.model.changes import Key, compact_json
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

ENTRY_SCHEMA = SingleObject("ledger-entry")
HISTORY_KEY = "HISTORY"
"""Begins the keys of offset histories. Their values have a schema of their own."""


class Entry(str, Enum):
    """The kinds of entries. Lockstep refuses a ledger with other kinds, because a newer version wrote it."""

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
    """The value of an entry, and the time since which it holds."""

    value: str
    since: datetime


OF_A_KIND = frozenset({Entry.OWNED, Entry.INTENT, Entry.VERSION})
"""Entries whose keys begin with a kind's name."""


class KeptEntries(MutableMapping[EntryKey, Remembered]):
    """Entries by kind of entry. A pass asks for a few kinds among tens of thousands of entries."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[Entry, str], dict[Key, Remembered]] = {}

    def of(self, entry: Entry, kind: str | None = None) -> Mapping[Key, Remembered]:
        """Returns the entries by key. With a `kind` of resource: only entries about it, by the item's own key."""
        if entry not in OF_A_KIND or kind is not None:
            return MappingProxyType(self._shelves.get((entry, kind or ""), {}))
        kinds = {kept_kind for kept, kept_kind in self._shelves if kept is entry}
        return {(one, *key): found for one in kinds for key, found in self._shelves[entry, one].items()}

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
"""The entry that holds the state of a flow's failover."""


def entry_key_bytes(entry_key: EntryKey) -> bytes:
    entry, key = entry_key
    return compact_json([entry.value, *key])


def entry_record(entry_key: EntryKey, value: str | None, since: datetime) -> Record:
    """Returns an entry as an unsigned record. A `value` of None deletes the entry."""
    entry, key = entry_key
    name = entry_key_bytes(entry_key)
    if value is None:
        return name, None
    return name, ENTRY_SCHEMA.encode({"entry": entry.value, "key": list(key), "value": value, "since": since})


Take = Callable[[], None]
"""Notes the value of a key; raises nothing."""

_Meaning = tuple[EntryKey | TopicPartition | None, Remembered | bytes | None]
"""The entry or partition of a record (None: of another program), and its value (None: deleted)."""


@dataclass
class Contents:
    """The content of a ledger.

    Offset histories are kept as bytes, because only a start needs them. Lease records are kept as bytes with their
    signatures, by flow; see `sinks.ledger.lease`.
    """

    entries: KeptEntries = field(default_factory=KeptEntries)
    histories: dict[TopicPartition, bytes] = field(default_factory=dict)
    signed_at: dict[bytes, int] = field(default_factory=dict)
    """When the newest record of each key was signed, in ms since the epoch; also of deleted entries."""
    begun_at: int = 0
    """When the first record that the topic still has was signed, in ms since the epoch."""
    leases: dict[str, bytes | None] = field(default_factory=dict)
    led: dict[str, LeaseRecord] = field(default_factory=dict)
    """The newest lease record of the highest term that is not a request, by flow. A newer record may be a replay."""

    def take(self, records: Iterable[Record], seal: Seal) -> None:
        """Note the newest value of each key in these records, of all or of none. Raises LedgerUntrusted, which names
        the first refused key."""
        values: dict[bytes, list[bytes | None]] = {}
        for key, value in records:
            # In the order of the newest of each.
            values[key] = values.pop(key, [])
            values[key].append(value)
        steps: list[Take] = []
        for key, all_of_key in values.items():
            try:
                steps.append(self._checked(key, all_of_key, seal))
            except (LockstepError, ValueError, TypeError) as error:
                raise LedgerUntrusted(f"the record with the key {key!r}: {error}") from error
        for step in steps:
            step()

    def _checked(self, key: bytes, values: Sequence[bytes | None], seal: Seal) -> Take:
        """Returns a function that notes the newest of these values. Raises LedgerUntrusted if that value was signed
        long before a record that it replaces, or before the whole ledger."""
        *older, value = values
        found = seal.unwrap(key, value)
        if key.startswith(LEASE_KEYS_BEGIN):
            flow = lease_flow(key)
            # Their order is that of the log, whatever the clocks of their writers say.
            led = [decoded(flow, one, seal).record for one in values]
            return partial(self._take_leases, flow, value, led)
        self.begun_at = self.begun_at or found.at
        newest = seal.newest_at(key, older, found.at + TOLERATED_MS) if older else 0
        before = max(newest, self.signed_at.get(key, 0))
        if found.at < before - TOLERATED_MS:
            raise LedgerUntrusted(
                f"it was signed {(before - found.at) // 1000} s before the one that it replaces: an old record was "
                f"written again. {SIGN_COMMAND} shows what was there, and signs that anew"
            )
        if found.at < self.begun_at - TOLERATED_MS:
            raise LedgerUntrusted(
                f"it was signed {(self.begun_at - found.at) // 1000} s before the first record that the topic has: a "
                f"record of an earlier ledger was written again. {SIGN_COMMAND} shows what was there, and signs that "
                "anew"
            )
        return partial(self._take, key, max(found.at, before), _meaning(key, found.data))

    def _take(self, key: bytes, at: int, meaning: _Meaning) -> None:
        if at:
            self.signed_at[key] = at
        where, kept = meaning
        if isinstance(where, TopicPartition):
            if isinstance(kept, bytes):
                self.histories[where] = kept
            else:
                self.histories.pop(where, None)
        elif where is not None:
            if isinstance(kept, Remembered):
                self.entries[where] = kept
            else:
                self.entries.pop(where, None)

    def _take_leases(self, flow: str, newest: bytes | None, records: Iterable[LeaseRecord | None]) -> None:
        self.leases[flow] = newest
        for record in records:
            known = self.led.get(flow)
            if record and record.act is not Act.REQUEST and (known is None or record.term >= known.term):
                self.led[flow] = record


def _meaning(key: bytes, data: bytes | None) -> _Meaning:
    """Returns a record's key and value. Raises LedgerUntrusted, ValueError, TypeError."""
    try:
        name, *rest = orjson.loads(key)
        types = [str, int] if name == HISTORY_KEY else [str] * max(1, len(rest))
        if [type(part) for part in rest] != types:
            raise ValueError("its key has parts of the wrong number or type")
        if orjson.dumps([name, *rest]) != key:
            # Two spellings would be two records of one entry. Compacting one would bring back the other.
            raise ValueError("its key is not written as Lockstep writes keys")
    except (ValueError, TypeError):
        if data is None:
            # How an operator mends what is in no key of ours: with a tombstone.
            return None, None
        raise
    if name == HISTORY_KEY:
        return TopicPartition(*rest), data
    if name not in Entry.__members__:
        if data is None:
            return None, None
        raise LedgerUntrusted("a newer version of Lockstep wrote it, and this one cannot tell what it means")
    if data is None:
        return (Entry(name), tuple(rest)), None
    record = ENTRY_SCHEMA.decode(data)
    if (record["entry"], record["key"]) != (name, rest):
        raise LedgerUntrusted("its value is about another key")
    return (Entry(name), tuple(rest)), Remembered(record["value"], record["since"])
