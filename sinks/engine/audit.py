"""Who changed what, when, and with which outcome: one event per change in a time-retained topic on the target."""

from __future__ import annotations

import getpass
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from sinks.engine.avro import SingleObject
from sinks.engine.ledger import utc_now
from sinks.engine.model import Key, Kind, Op, Outcome, Value, key_as_json, value_as_json
from sinks.engine.plan import Plan, Refusal
from sinks.kafka.ports.cluster import Cluster, Reader, Record
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

CONFIGS: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": str(90 * 24 * 3600 * 1000)}
"""Ninety days; change the topic's own `retention.ms` for another time."""

SCHEMA = SingleObject("audit-event")


SETTING = "setting"
"""The kind of an event about Lockstep's own properties."""

CREDENTIAL = "credential"
"""The kind of an event about a password that a command wrote to a cluster, the source among them."""

FAILOVER = "failover"
"""The kind of an event about a flow's failover; its key is the command and the step."""

EVENT_KINDS = (*(kind.value for kind in Kind), SETTING, CREDENTIAL, FAILOVER)


class SettingChange(NamedTuple):
    """A line of the properties file that is new, gone or another one; values of secrets are masked."""

    name: str
    before: str | None
    after: str | None


class CredentialWrite(NamedTuple):
    """A password that a cluster was given, which is in no event; `error`: why it has not taken it."""

    cluster: str
    user: str
    mechanism: str
    iterations: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the audit topic, with the fields of its schema."""

    at: datetime
    source: str
    target: str
    who: str
    kind: str
    op: str
    key: Key
    before: str | None
    after: str | None
    digest: str
    result: str
    error: str | None

    @property
    def named_key(self) -> dict[str, Any]:
        """The key by names. Raises ValueError, IndexError for an event of another hand, or of another version."""
        if self.kind == SETTING:
            return {"name": self.key[0]}
        if self.kind == CREDENTIAL:
            return dict(zip(("cluster", "user", "mechanism"), self.key, strict=True))
        if self.kind == FAILOVER:
            return dict(zip(("command", "step"), self.key, strict=True))
        return key_as_json(Kind(self.kind), self.key)

    def as_dict(self) -> dict[str, Any]:
        """By field name, the key as a list."""
        return {name: getattr(self, name) for name in self.__slots__} | {"key": list(self.key)}


def process_identity() -> str:
    """`user@host` of this process."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


MOST_WAITING = 10_000
"""Events that wait for the audit topic, at most; beyond that the oldest are dropped, and counted."""


class Audit:
    """The audit topic of one flow; made at the first event.

    An event that could not be written waits, and is written before the next ones: an event may then stand there twice,
    but none is lost while the process lives, up to MOST_WAITING.
    """

    def __init__(
        self,
        topic: str,
        writer: Cluster,
        factor: int | None,
        who: str,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._topic, self._writer, self._factor, self._who, self._now = topic, writer, factor, who, now
        self._created = False
        self._waiting: deque[Record] = deque(maxlen=MOST_WAITING)
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """Events that are not written yet."""
        return len(self._waiting)

    def flush(self) -> None:
        """Writes what waits. Raises ClusterUnreachable, RightsMissing, LockstepError: then it goes on waiting."""
        if not self._waiting:
            return
        if not self._created:
            self._writer.create_log(self._topic, self._factor, CONFIGS)
            self._created = True
        self._writer.append_log(self._topic, list(self._waiting))
        self._waiting.clear()
        if self.dropped:
            log.warning("%s: %d events were dropped while it could not be written", self._topic, self.dropped)
            self.dropped = 0

    def close(self) -> None:
        """Writes what waits. What cannot be written now is lost, and the log says so."""
        try:
            self.flush()
        except LockstepError as error:
            log.warning("%s: %d events are lost: %s", self._topic, len(self._waiting), error)

    def record(self, plan: Plan, outcomes: Iterable[Outcome], refused: Iterable[Refusal] = ()) -> None:
        """Writes what waits, and one event per outcome and refusal. Raises as `flush`; the events wait then."""
        base = self._base(plan.flow, plan.digest)
        events = [Event(**base, **_of_outcome(outcome)) for outcome in outcomes]
        events += [Event(**base, **_of_refusal(refusal)) for refusal in refused]
        self._append(events)

    def record_settings(self, flow: Flow, changes: Iterable[SettingChange]) -> None:
        """Writes what waits, and one event per line of the properties file. Raises as `flush`; the events wait then."""
        base = self._base(flow, "")
        self._append([Event(**base, **_of_setting(change)) for change in changes])

    def record_credentials(self, flow: Flow, writes: Iterable[CredentialWrite]) -> None:
        """Writes what waits, and one event per password. Raises as `flush`; the events wait then."""
        base = self._base(flow, "")
        self._append([Event(**base, **_of_credential(one)) for one in writes])

    def record_failover(self, flow: Flow, key: Key, before: str, after: str, error: str | None = None) -> None:
        """One event for a step of a failover; `before` and `after` are states. Raises as `flush`; it waits then."""
        sides = {"kind": FAILOVER, "op": Op.UPDATE.value, "key": key, "before": _side(before), "after": _side(after)}
        outcome = {"result": "failed" if error else "applied", "error": error}
        self._append([Event(**self._base(flow, "") | sides | outcome)])

    def _base(self, flow: Flow, digest: str) -> dict[str, Any]:
        return {"at": self._now(), "source": flow.source, "target": flow.target, "who": self._who, "digest": digest}

    def _append(self, events: Sequence[Event]) -> None:
        self.dropped += max(0, len(self._waiting) + len(events) - MOST_WAITING)
        self._waiting.extend((_key(event), SCHEMA.encode(event.as_dict())) for event in events)
        self.flush()


def _of_outcome(outcome: Outcome) -> dict[str, Any]:
    change = outcome.change
    return {
        "kind": change.kind.value,
        "op": change.op.value,
        "key": change.key,
        "before": _side(change.before),
        "after": _side(change.after),
        "result": outcome.result,
        "error": str(outcome.error) if outcome.error else None,
    }


def _of_refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "kind": refusal.kind.value,
        "op": refusal.op.value,
        "key": refusal.key,
        "before": None,
        "after": None,
        "result": "refused",
        "error": refusal.reason,
    }


def _of_setting(change: SettingChange) -> dict[str, Any]:
    op = Op.CREATE if change.before is None else Op.DELETE if change.after is None else Op.UPDATE
    return {
        "kind": SETTING,
        "op": op.value,
        "key": (change.name,),
        "before": _side(change.before),
        "after": _side(change.after),
        "result": "applied",
        "error": None,
    }


def _of_credential(one: CredentialWrite) -> dict[str, Any]:
    return {
        "kind": CREDENTIAL,
        "op": Op.UPDATE.value,
        "key": (one.cluster, one.user, one.mechanism),
        "before": None,
        "after": orjson.dumps({"iterations": one.iterations}).decode(),
        "result": "applied" if one.error is None else "failed",
        "error": one.error,
    }


def _side(value: Value | None) -> str | None:
    return None if value is None else orjson.dumps(value_as_json(value)).decode()


def _key(event: Event) -> bytes:
    return orjson.dumps([event.kind, *event.key])


def read_audit(topic: str, reader: Reader) -> list[Event]:
    """Every event there is, oldest first."""
    return events_of(reader.read_log(topic))


def events_of(records: Iterable[Record]) -> list[Event]:
    """The events in records of an audit topic; what is none, for others may write there, is counted in the log."""
    events, foreign = [], 0
    for _, value in records:
        if value is None:
            continue
        try:
            fields = SCHEMA.decode(value)
        except LockstepError:
            foreign += 1
        else:
            events.append(Event(**fields | {"key": tuple(fields["key"])}))
    if foreign:
        log.warning("%d records of the audit topic are no events of this version, and are left out", foreign)
    return events
