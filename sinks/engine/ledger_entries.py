"""What a ledger's records say: their keys, their values, and what is refused. Pure.

A record whose meaning is not known is never left out, since it may say that something is paused or not ours. Only an
offset history may be: without it, a group gets MM2's own, more careful answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

import orjson

from sinks.compact_json import compact_json
from sinks.engine.avro import SingleObject
from sinks.engine.lease_records import Act, LeaseRecord, decoded, lease_flow
from sinks.engine.model import Key
from sinks.engine.seal import SIGN_COMMAND, TOLERATED_MS, Seal
from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Record
from streaming.errors import LockstepError
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


EntryKey = tuple[Entry, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """The value of an entry and since when it holds."""

    value: str
    since: datetime


@dataclass
class Contents:
    """All that a ledger holds. Offset histories are kept as bytes, since they are needed at a start only; so are the
    records of who leads, by flow, with their signatures: `sinks.engine.lease_log` says what they mean."""

    entries: dict[EntryKey, Remembered] = field(default_factory=dict)
    histories: dict[TopicPartition, bytes] = field(default_factory=dict)
    signed_at: dict[bytes, int] = field(default_factory=dict)
    """When the newest record of each key was signed, in ms, whether it is remembered or forgotten."""
    leases: dict[str, bytes | None] = field(default_factory=dict)
    led: dict[str, LeaseRecord] = field(default_factory=dict)
    """The newest record of the highest term by flow, that is none of who only asks: what is newer may be a replay."""

    def taken(self, records: Iterable[Record], seal: Seal) -> Contents:
        """With the newest value of each key in these. Raises LedgerUntrusted with the first key that is refused."""
        leases, led = dict(self.leases), dict(self.led)
        after = Contents(dict(self.entries), dict(self.histories), dict(self.signed_at), leases, led)
        values: dict[bytes, list[bytes | None]] = {}
        for key, value in records:
            # In the order of the newest of each.
            values[key] = values.pop(key, [])
            values[key].append(value)
        for key, (*older, value) in values.items():
            try:
                found = seal.unwrap(key, value)
                if (flow := lease_flow(key)) is not None:
                    # Their order is that of the log, whatever the clocks of their writers say.
                    after.leases[flow] = value
                    after._take_leases(flow, (*older, value), seal)
                    continue
                after._check_order(key, found.at, seal.newest_at(key, older, found.at + TOLERATED_MS))
                after._take(key, found.data)
            except (LockstepError, ValueError, TypeError) as error:
                raise LedgerUntrusted(f"the record with the key {key!r}: {error}") from error
        return after

    def _check_order(self, key: bytes, at: int, older: int) -> None:
        """Raises LedgerUntrusted where a record was signed long before one that it replaces: `older`, or known."""
        before = max(older, self.signed_at.get(key, 0))
        if at < before - TOLERATED_MS:
            raise LedgerUntrusted(
                f"it was signed {(before - at) // 1000} s before the one that it replaces: an old record was "
                f"written again. {SIGN_COMMAND} shows what was there, and signs that anew"
            )
        if at or before:
            self.signed_at[key] = max(at, before)

    def _take(self, key: bytes, data: bytes | None) -> None:
        try:
            name, rest = _parts(key)
        except (ValueError, TypeError):
            if data is None:
                # How an operator mends what is in no key of ours: with a tombstone.
                return
            raise
        if name == HISTORY_KEY:
            self._take_history(TopicPartition(*rest), data)
            return
        if name not in Entry.__members__:
            if data is None:
                return
            raise LedgerUntrusted("a newer version of Lockstep wrote it, and this one cannot tell what it means")
        entry_key = (Entry(name), tuple(rest))
        if data is None:
            self.entries.pop(entry_key, None)
        else:
            record = ENTRY_SCHEMA.decode(data)
            if (record["entry"], record["key"]) != (name, rest):
                raise LedgerUntrusted("its value is about another key")
            self.entries[entry_key] = Remembered(record["value"], record["since"])

    def _take_leases(self, flow: str, values: Iterable[bytes | None], seal: Seal) -> None:
        for value in values:
            record = decoded(flow, value, seal).record
            known = self.led.get(flow)
            if record and record.act is not Act.REQUEST and (known is None or record.term >= known.term):
                self.led[flow] = record

    def _take_history(self, where: TopicPartition, data: bytes | None) -> None:
        if data is None:
            self.histories.pop(where, None)
        else:
            self.histories[where] = data

    def values(self, entry: Entry) -> dict[Key, str]:
        """All that is remembered under a kind of entry, by key."""
        return {key: found.value for (kept, key), found in self.entries.items() if kept is entry}


def entry_record(entry_key: EntryKey, value: str | None, since: datetime) -> Record:
    """An entry as a record without a signature; None: it is forgotten."""
    entry, key = entry_key
    name = compact_json([entry.value, *key])
    if value is None:
        return name, None
    return name, ENTRY_SCHEMA.encode({"entry": entry.value, "key": list(key), "value": value, "since": since})


def history_record(where: TopicPartition, data: bytes | None) -> Record:
    """The bytes of an offset history as a record without a signature; None: it is forgotten."""
    key = compact_json([HISTORY_KEY, where.topic, where.partition])
    return key, data


def _parts(key: bytes) -> tuple[str, list[Any]]:
    """What a record is about, and of what. Raises ValueError, TypeError where that is no key of a ledger's."""
    name, *rest = orjson.loads(key)
    types = [str, int] if name == HISTORY_KEY else [str] * max(1, len(rest))
    if [type(part) for part in rest] != types:
        raise ValueError("it has other parts than such a key has")
    if orjson.dumps([name, *rest]) != key:
        # Two spellings would be two records of one entry, of which the compaction of one brings back the other.
        raise ValueError("it is spelt otherwise than Lockstep does")
    return name, rest
