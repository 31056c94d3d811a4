"""All that a ledger's records say, and what is refused. Pure.

A record whose meaning is not known is never left out, since it may say that something is paused or not ours. Only an
offset history may be: without it, a group gets MM2's own, more careful answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Record
from sinks.ledger.lease_records import Act, LeaseRecord, decoded, lease_flow
from sinks.ledger.ledger_entries import ENTRY_SCHEMA, HISTORY_KEY, Entry, EntryKey, KeptEntries, Remembered, parts_of
from sinks.ledger.seal import SIGN_COMMAND, TOLERATED_MS, Seal
from sinks.model.changes import Key
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

Take = Callable[[], None]
"""Takes in what a key says; raises nothing."""

_Meaning = tuple[EntryKey | TopicPartition | None, Remembered | bytes | None]
"""What a record is about, None: nothing of ours; what it says, None: that this is forgotten."""


@dataclass
class Contents:
    """All that a ledger holds.

    Offset histories are kept as bytes, because only a start needs them. Lease records are kept as bytes with their
    signatures, by flow. `sinks.ledger.lease_log` says what they mean.
    """

    entries: KeptEntries = field(default_factory=KeptEntries)
    histories: dict[TopicPartition, bytes] = field(default_factory=dict)
    signed_at: dict[bytes, int] = field(default_factory=dict)
    """When the newest record of each key was signed, in ms, whether it is remembered or forgotten."""
    leases: dict[str, bytes | None] = field(default_factory=dict)
    led: dict[str, LeaseRecord] = field(default_factory=dict)
    """The newest record of the highest term by flow, without requests. A newer record may be a replay."""

    def take(self, records: Iterable[Record], seal: Seal) -> None:
        """Takes in the newest value of each key in these, of all or of none.

        Raises LedgerUntrusted with the first key that is refused.
        """
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
        *older, value = values
        found = seal.unwrap(key, value)
        if (flow := lease_flow(key)) is not None:
            # Their order is that of the log, whatever the clocks of their writers say.
            led = [decoded(flow, one, seal).record for one in values]
            return partial(self._take_leases, flow, value, led)
        before = seal.newest_at(key, older, found.at + TOLERATED_MS) if older else 0
        at = self._in_order(key, found.at, before)
        return partial(self._take, key, at, _meaning(key, found.data))

    def _in_order(self, key: bytes, at: int, older: int) -> int:
        """When it counts as signed. Raises LedgerUntrusted where that was long before one that it replaces: `older`,
        or known."""
        before = max(older, self.signed_at.get(key, 0))
        if at < before - TOLERATED_MS:
            raise LedgerUntrusted(
                f"it was signed {(before - at) // 1000} s before the one that it replaces: an old record was "
                f"written again. {SIGN_COMMAND} shows what was there, and signs that anew"
            )
        return max(at, before)

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

    def values(self, entry: Entry) -> dict[Key, str]:
        """All that is remembered under an entry, by key."""
        return {key: found.value for key, found in self.entries.of(entry).items()}


def _meaning(key: bytes, data: bytes | None) -> _Meaning:
    """What a record is about, and what it says of that. Raises LedgerUntrusted, ValueError, TypeError."""
    try:
        name, rest = parts_of(key)
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
