"""An event of the audit topic: its fields, its bytes, and what makes one."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Reader, Record
from sinks.ledger.avro import SingleObject
from sinks.ledger.seal import Seal, unsealed
from sinks.model.changes import Key, Kind, Op, Outcome, Value, key_as_json, value_as_json
from sinks.model.plan import Refusal
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

EVENT_SCHEMA = SingleObject("audit-event")

SETTING = "setting"
"""The kind of an event about Lockstep's own properties."""

CREDENTIAL = "credential"
"""The kind of an event about a password that a command wrote to a cluster, the source among them."""

FAILOVER = "failover"
"""The kind of an event about a flow's failover; its key is the command and the step."""

PAUSE, RESUME = "pause", "resume"
"""Operations of events about a kind as a whole, which have no key."""

EVENT_KINDS = (*(kind.value for kind in Kind), SETTING, CREDENTIAL, FAILOVER)


class SettingChange(NamedTuple):
    """A changed line of the properties file. Values of secrets are masked."""

    name: str
    before: str | None
    after: str | None


class CredentialWrite(NamedTuple):
    """A password that was written to a cluster; no event has the password itself. `error`: why the cluster refused
    it."""

    cluster: str
    user: str
    mechanism: str
    iterations: int
    error: str | None = None


UNSIGNED = Seal("audit")
"""Writes events without a signature, and cannot tell whether an event is signed."""


def audit_seal(flow: str, secret: str | None) -> Seal:
    """Returns the seal that signs and checks a flow's events. It uses the ledger's secret, but an entry of the ledger
    does not pass as an event."""
    return Seal(f"audit of {flow}", secret)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the audit topic, with the fields of its schema. `signed`: whether the writer had the flow's secret;
    None if this reader does not have it."""

    at: datetime
    source: str
    target: str
    who: str
    kind: str
    op: str
    key: Key
    before: str | None = None
    after: str | None = None
    digest: str = ""
    result: str = "applied"
    error: str | None = None
    signed: bool | None = None

    @property
    def named_key(self) -> dict[str, Any]:
        """The key's parts by name. Raises ValueError, IndexError for an event of another client or version."""
        if self.kind == SETTING:
            return {"name": self.key[0]}
        if self.kind == CREDENTIAL:
            return dict(zip(("cluster", "user", "mechanism"), self.key, strict=True))
        if self.kind == FAILOVER:
            return dict(zip(("command", "step"), self.key, strict=True))
        return {} if self.op in (PAUSE, RESUME) else key_as_json(Kind(self.kind), self.key)

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields of the schema by name, with the key as a list."""
        names = (name for name in self.__slots__ if name != "signed")
        return {name: getattr(self, name) for name in names} | {"key": list(self.key)}


def of_outcome(outcome: Outcome) -> dict[str, Any]:
    change = outcome.change
    return {
        "kind": change.kind.value,
        "op": change.op.value,
        "key": change.key,
        "before": side(change.before),
        "after": side(change.after),
        "result": outcome.result,
        "error": str(outcome.error) if outcome.error else None,
    }


def of_refusal(refusal: Refusal) -> dict[str, Any]:
    """Returns the fields of an event about a change that was not tried."""
    what = {"kind": refusal.kind.value, "op": refusal.op.value, "key": refusal.key}
    return what | {"result": "refused", "error": refusal.reason}


def result_of(error: str | None) -> str:
    return "applied" if error is None else "failed"


def side(value: Value | None) -> str | None:
    """A value as it stands in an event."""
    return None if value is None else orjson.dumps(value_as_json(value)).decode()


def read_audit(topic: str, reader: Reader, seal: Seal = UNSIGNED) -> list[Event]:
    """Every event there is, oldest first."""
    return events_of(reader.read_log(topic), seal)


def _is_signed(seal: Seal, key: bytes, value: bytes) -> bool | None:
    if not seal.signs:
        return None
    try:
        seal.unwrap(key, value)
    except LedgerUntrusted:
        return False
    return True


def events_of(records: Iterable[Record], seal: Seal = UNSIGNED) -> list[Event]:
    """Returns the events in records of an audit topic. The log says how many records of other programs were skipped."""
    events, foreign = [], 0
    for key, value in records:
        data = unsealed(value)
        if value is None or data is None:
            continue
        try:
            fields = EVENT_SCHEMA.decode(data)
        except LockstepError:
            foreign += 1
        else:
            events.append(Event(**fields | {"key": tuple(fields["key"])}, signed=_is_signed(seal, key, value)))
    if foreign:
        log.warning("%d records of the audit topic are no events of this version, and are left out", foreign)
    return events


def is_event(outcome: Outcome) -> bool:
    """Whether the audit topic gets an event. A group's offset that moves on is content, like a record. Its creation, or
    a failure, is an event."""
    change = outcome.change
    return outcome.error is not None or not change.kind.row.content or change.op is not Op.UPDATE
