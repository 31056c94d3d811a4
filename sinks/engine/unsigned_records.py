"""A ledger's records as they are, trusted or not, and which of them lack the signature of a secret. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from sinks.engine.ledger_entries import ENTRY_SCHEMA, HISTORY_KEY, Entry
from sinks.engine.seal import TOLERATED_MS, Seal, unsealed
from sinks.kafka.ports.cluster import Record
from streaming.errors import LockstepError

DAMAGED = "(cannot be read)"


@dataclass(frozen=True, slots=True)
class Raw:
    """A record's key and its data without any signature; `value` as it stands there."""

    key: bytes
    value: bytes | None
    data: bytes | None

    def row(self) -> tuple[str, str, str]:
        """Entry, key and value for people; the values of overrides may be secrets, and are not shown."""
        try:
            name, *rest = orjson.loads(self.key)
            key = " ".join(map(str, rest))
        except (ValueError, TypeError):
            return DAMAGED, repr(self.key), DAMAGED
        if self.data is None:
            return str(name), key, "(forgotten)"
        if name == HISTORY_KEY:
            return str(name), key, ""
        try:
            value = str(ENTRY_SCHEMA.decode(self.data)["value"])
        except LockstepError:
            value = DAMAGED
        return str(name), key, "(not shown)" if name == Entry.OVERRIDE.value else value


def newest_records(records: Iterable[Record], seal: Seal) -> list[Raw]:
    """The newest record of each key, in the order of their keys; by when they were signed, where that tells that an old
    one was written again: such a one stands there without a value that could be accepted."""
    values: dict[bytes, list[bytes | None]] = {}
    for key, value in records:
        values.setdefault(key, []).append(value)
    return [_newest(key, found, seal) for key, found in sorted(values.items())]


def _newest(key: bytes, values: list[bytes | None], seal: Seal) -> Raw:
    last = Raw(key, values[-1], unsealed(values[-1]))
    if not seal.signs or not _accepted(last, seal):
        return last
    newest = max(values, key=lambda value: seal.newest_at(key, [value]))
    replayed = seal.newest_at(key, [newest]) - TOLERATED_MS > seal.newest_at(key, [last.value])
    return Raw(key, None, unsealed(newest)) if replayed else last


def lacking_signature(records: Iterable[Raw], seal: Seal) -> list[Raw]:
    """Those that the seal would refuse as they are."""
    return [record for record in records if not _accepted(record, seal)]


def _accepted(record: Raw, seal: Seal) -> bool:
    try:
        seal.unwrap(record.key, record.value)
    except LockstepError:
        return False
    return True
