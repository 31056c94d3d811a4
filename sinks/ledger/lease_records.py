"""What processes say in a flow's ledger about who leads it: records, their key, their bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

import orjson

from sinks.kafka.ports.cluster import Record
from sinks.ledger.avro import SingleObject
from sinks.ledger.seal import Seal, unsealed
from streaming.errors import LockstepError

LEASE_SCHEMA = SingleObject("leader-lease")
LEASE_KEYS_BEGIN = b'["LEADER",'
"""As the keys of these records are spelt, whose values have a schema of their own."""


MOST_SECONDS = 600.0
"""Longest lease that is accepted. Lockstep's own last 75 at most."""

MOST_TERM = 2**40
"""Highest term that is accepted. Terms count claims, and there is no time for more."""


class Act(str, Enum):
    """What a record says; the schema explains them."""

    CLAIM = "CLAIM"
    RENEWAL = "RENEWAL"
    RELEASE = "RELEASE"
    REQUEST = "REQUEST"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease record, with the fields of its schema. `seconds`: of the lease. `after`, `name`: `holder/number` of a
    record."""

    act: Act
    holder: str
    number: int
    after: str | None
    term: int
    seconds: float
    client: str
    host: str
    since: datetime
    to: str | None = None

    @property
    def name(self) -> str:
        """What other records call this one."""
        return f"{self.holder}/{self.number}"


class ReadRecord(NamedTuple):
    """A record as it was read. Its name is None for a tombstone. Its content is None if it cannot be trusted."""

    name: str | None
    record: LeaseRecord | None


def lease_key(flow: str) -> bytes:
    return orjson.dumps(["LEADER", flow])


def lease_flow(key: bytes) -> str:
    _, flow = orjson.loads(key)
    return str(flow)


def encoded(flow: str, record: LeaseRecord, seal: Seal, at: int) -> Record:
    """Returns the record for the ledger, signed if the ledger is. `at`: in ms since the epoch."""
    fields = {name: getattr(record, name) for name in record.__slots__} | {"act": record.act.value}
    key = lease_key(flow)
    return key, seal.wrap(key, LEASE_SCHEMA.encode(fields), at)


def decoded(flow: str, value: bytes | None, seal: Seal) -> ReadRecord:
    """Returns the content of a record of this flow's key. A record without the required signature keeps only its
    name."""
    if value is None:
        return ReadRecord(None, None)
    key = lease_key(flow)
    try:
        data = unsealed(value)
        record = _record(LEASE_SCHEMA.decode(data)) if data is not None else None
    except (LockstepError, ValueError):
        return ReadRecord("damaged", None)
    if record is None:
        return ReadRecord(None, None)
    try:
        seal.unwrap(key, value)
    except LockstepError:
        return ReadRecord(record.name, None)
    return ReadRecord(record.name, record)


def last_leader(found: ReadRecord) -> LeaseRecord | None:
    """Returns the process that led when the newest record was written; None if no process did, or if it is unknown."""
    record = found.record
    return record if record is not None and record.act in (Act.CLAIM, Act.RENEWAL) else None


def _record(fields: dict[str, Any]) -> LeaseRecord:
    record = LeaseRecord(**fields | {"act": Act(fields["act"])})
    if not 0 < record.seconds <= MOST_SECONDS or not 0 <= record.term < MOST_TERM:
        raise ValueError("no process leads for so long, nor was there ever so high a term")
    return record
