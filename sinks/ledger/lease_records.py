"""The lease records that processes write to a flow's ledger: their key, their fields, their bytes. Pure."""

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
"""Begins the keys of lease records. Their values have a schema of their own."""


MOST_SECONDS = 600.0
"""Longest lease that a reader accepts, in seconds. Lockstep's own leases last 75 s at most."""

MOST_TERM = 2**40
"""Highest term that a reader accepts. Terms count claims, and so many claims never happen."""


class Act(str, Enum):
    """The statement of a lease record: a claim, a renewal, a release or a request; see `sinks.ledger.lease`."""

    CLAIM = "CLAIM"
    RENEWAL = "RENEWAL"
    RELEASE = "RELEASE"
    REQUEST = "REQUEST"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease record, with the fields of its schema. `seconds`: length of the lease. `after`, `name`: `holder/number`
    of a record."""

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
        """Returns the name by which other records refer to this one."""
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
    """Returns the record for the ledger, signed if the ledger is. `at`: now, in ms since the epoch."""
    fields = {name: getattr(record, name) for name in record.__slots__} | {"act": record.act.value}
    key = lease_key(flow)
    return key, seal.wrap(key, LEASE_SCHEMA.encode(fields), at)


def decoded(flow: str, value: bytes | None, seal: Seal) -> ReadRecord:
    """Returns a record of this flow's key, decoded. A record without the required signature keeps only its name."""
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
    """Returns the lease record of the process that led when `found` was written; None if no process led, or if that is
    unknown."""
    record = found.record
    return record if record is not None and record.act in (Act.CLAIM, Act.RENEWAL) else None


def _record(fields: dict[str, Any]) -> LeaseRecord:
    record = LeaseRecord(**fields | {"act": Act(fields["act"])})
    if not 0 < record.seconds <= MOST_SECONDS or not 0 <= record.term < MOST_TERM:
        raise ValueError("its lease is too long, or its term too high")
    return record
