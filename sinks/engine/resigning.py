"""A ledger's records as they are, trusted or not, and which of them lack the signature of a secret. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from sinks.engine.ledger_entries import HISTORY_KEY, SCHEMA, Entry
from sinks.engine.seal import Seal, unsealed
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
            value = str(SCHEMA.decode(self.data)["value"])
        except LockstepError:
            value = DAMAGED
        return str(name), key, "(not shown)" if name == Entry.OVERRIDE.value else value


def newest_records(records: Iterable[Record]) -> list[Raw]:
    """The newest record of each key, in the order of their keys."""
    return [Raw(key, value, unsealed(value)) for key, value in sorted(dict(records).items())]


def resigned(records: Iterable[Raw], seal: Seal) -> list[Raw]:
    """Those that the seal would refuse as they are."""
    return [record for record in records if not _accepted(record, seal)]


def _accepted(record: Raw, seal: Seal) -> bool:
    try:
        seal.unwrap(record.key, record.value)
    except LockstepError:
        return False
    return True
