"""Writes and reads a flow's audit topic: an event for each change, with who, when and the outcome. The topic is on the
target and keeps events for 90 days."""

from __future__ import annotations

import logging
import os
import pwd
import socket
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import orjson

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Cluster, Reader, Record
from sinks.ledger.adoption import ADOPT, AdoptionPlan
from sinks.ledger.avro import SingleObject
from sinks.ledger.seal import UNSIGNED, Seal, unsealed
from sinks.model.changes import Key, Kind, Op, Outcome, Value, compact_json, key_as_json, value_as_json
from sinks.model.plan import Plan, Refusal
from sinks.model.times import milliseconds, utc_now
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

EVENT_SCHEMA = SingleObject("audit-event")

SETTING = "setting"
"""The kind of an event about a changed property of Lockstep."""

CREDENTIAL = "credential"
"""The kind of an event about a password that a command wrote to the source or the target."""

FAILOVER = "failover"
"""The kind of an event about a flow's failover; its key is the command and the step."""

PAUSE, RESUME = "pause", "resume"
"""Operations of an event about a whole kind. Such an event has no key."""

EVENT_KINDS = (*(kind.value for kind in Kind), SETTING, CREDENTIAL, FAILOVER)


class SettingChange(NamedTuple):
    """A changed property of the file. Values of secrets are masked."""

    name: str
    before: str | None
    after: str | None


class CredentialWrite(NamedTuple):
    """A password that a command wrote to a cluster, without the password itself. `error`: why the cluster refused
    it."""

    cluster: str
    user: str
    mechanism: str
    iterations: int
    error: str | None = None


def audit_seal(flow: str, secret: str | None) -> Seal:
    """Returns the seal that signs and checks a flow's events. It uses the ledger's secret, but a ledger entry does not
    pass as an event."""
    return Seal(f"audit of {flow}", secret)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the audit topic, with the fields of its schema. `signed`: whether it has a valid signature of the
    flow's secret; None if this reader does not have the secret."""

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
    """Returns the fields of an event about a change that Lockstep did not try."""
    what = {"kind": refusal.kind.value, "op": refusal.op.value, "key": refusal.key}
    return what | {"result": "refused", "error": refusal.reason}


def _result_of(error: str | None) -> str:
    return "applied" if error is None else "failed"


def _side(value: Value | None) -> str | None:
    """Returns one side of a change as an event holds it."""
    return None if value is None else orjson.dumps(value_as_json(value)).decode()


def is_event(outcome: Outcome) -> bool:
    """Whether the audit topic gets an event for this outcome. An update of a group's offset gets none, like a record;
    its creation and its failure do."""
    change = outcome.change
    return outcome.error is not None or not change.kind.row.content or change.op is not Op.UPDATE


# The topic.


AUDIT_TOPIC_CONFIGS: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": str(90 * 24 * 3600 * 1000)}
"""Keeps events for ninety days. An operator may set another `retention.ms` on the topic."""


def process_identity() -> str:
    """Returns `user@host` of this process: the user that it runs as, whatever its environment says, and the host's own
    name."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return f"{user}@{socket.gethostname()}"


APPLIED: dict[str, Any] = {"before": None, "after": None, "result": "applied", "error": None}
"""Fields of an event of a successful change, where its row sets nothing else."""

MOST_WAITING_EVENTS = 10_000
"""Most events that wait for the audit topic. Beyond that the oldest are dropped and counted."""

EVENTS_AT_ONCE = 2000
"""Most events in one write. A first pass on a large cluster has tens of thousands; in parts, none is dropped."""


class Audit:
    """The audit topic of one flow. It is created at the first event, and again if it was deleted.

    An event that could not be written waits for the next write. It may then be in the topic twice. While the process
    lives, no event is lost, up to MOST_WAITING_EVENTS. Each `record…` first writes the waiting events. If that fails it
    raises as `flush`, and its own events wait too.
    """

    def __init__(
        self,
        topic: str,
        writer: Cluster,
        factor: int | None,
        who: str,
        now: Callable[[], datetime] = utc_now,
        seal: Seal = UNSIGNED,
    ) -> None:
        self._seal = seal
        self._topic, self._writer, self._factor, self._who, self._now = topic, writer, factor, who, now
        self._created = False
        self._waiting: deque[Record] = deque(maxlen=MOST_WAITING_EVENTS)
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def prepare(self) -> None:
        """Create the topic if it is missing. Raises as `flush`.

        Called before a pass creates many topics: a broker creates topics in their order, and thousands take minutes.
        """
        if not self._created:
            self._writer.create_log(self._topic, self._factor, AUDIT_TOPIC_CONFIGS)
            self._created = True

    def flush(self) -> None:
        """Write the waiting events. Raises ClusterUnreachable, RightsMissing, LockstepError; the events then keep
        waiting."""
        while self._waiting:
            self.prepare()
            # If it fails, another client may have deleted the topic.
            self._created = False
            written = list(islice(self._waiting, EVENTS_AT_ONCE))
            self._writer.append_log(self._topic, written)
            self._created = True
            for _ in written:
                self._waiting.popleft()
        if self.dropped:
            log.warning("%s: %d events were dropped while it could not be written", self._topic, self.dropped)
            self.dropped = 0

    def close(self) -> None:
        """Write the waiting events. If that fails, they are lost, and the log says so."""
        try:
            self.flush()
        except LockstepError as error:
            log.warning("%s: %d events are lost: %s", self._topic, len(self._waiting), error)

    def record(self, plan: Plan, outcomes: Iterable[Outcome], refused: Iterable[Refusal] = ()) -> None:
        rows = [*map(_of_outcome, outcomes), *map(_of_refusal, refused)]
        self._record(plan.flow, rows, plan.digest if rows else "")

    def record_adoption(self, plan: AdoptionPlan) -> None:
        what = {"kind": plan.kind.value, "op": ADOPT}
        self._record(plan.flow, [what | {"key": key} for key in sorted(plan.items)], plan.digest)

    def record_pause(self, flow: Flow, kind: Kind, *, paused: bool) -> None:
        self._record(flow, [{"kind": kind.value, "op": PAUSE if paused else RESUME, "key": ()}])

    def record_settings(self, flow: Flow, changes: Iterable[SettingChange]) -> None:
        """Write one event per changed line of the properties file."""
        rows = list[dict[str, Any]]()
        for one in changes:
            op = Op.CREATE if one.before is None else Op.DELETE if one.after is None else Op.UPDATE
            row = {"kind": SETTING, "op": op.value, "key": (one.name,)}
            rows.append(row | {"before": _side(one.before), "after": _side(one.after)})
        self._record(flow, rows)

    def record_credentials(self, flow: Flow, writes: Iterable[CredentialWrite]) -> None:
        rows = list[dict[str, Any]]()
        for one in writes:
            what = {"kind": CREDENTIAL, "op": Op.UPDATE.value, "key": (one.cluster, one.user, one.mechanism)}
            after = orjson.dumps({"iterations": one.iterations}).decode()
            rows.append(what | {"after": after, "result": _result_of(one.error), "error": one.error})
        self._record(flow, rows)

    def record_failover(self, flow: Flow, key: Key, before: str, after: str, error: str | None = None) -> None:
        """Write one event for a step of a failover. `before`, `after`: states."""
        what = {"kind": FAILOVER, "op": Op.UPDATE.value, "key": key, "before": _side(before), "after": _side(after)}
        self._record(flow, [what | {"result": _result_of(error), "error": error}])

    def _record(self, flow: Flow, rows: Iterable[dict[str, Any]], digest: str = "") -> None:
        """Write the waiting events, then one event for each of `rows`. A row gets the fields that it lacks from
        `APPLIED`."""
        now, left = self._now(), deque[Record]()
        common = APPLIED | {"at": now, "source": flow.source, "target": flow.target, "who": self._who, "digest": digest}
        for row in rows:
            key = compact_json([row["kind"], *row["key"]])
            left.append((key, self._seal.wrap(key, EVENT_SCHEMA.encode(common | row), milliseconds(now))))
        try:
            self.flush()
            while left:
                self._enqueue([left.popleft() for _ in range(min(EVENTS_AT_ONCE, len(left)))])
                self.flush()
        finally:
            self._enqueue(left)

    def _enqueue(self, records: Collection[Record]) -> None:
        self.dropped += max(0, len(self._waiting) + len(records) - MOST_WAITING_EVENTS)
        self._waiting.extend(records)


def read_audit(topic: str, reader: Reader, seal: Seal = UNSIGNED) -> list[Event]:
    """Returns every event of the topic, oldest first."""
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
    """Returns the events in records of an audit topic. Logs how many records are not events."""
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
        log.warning("Lockstep skips %d records of the audit topic that are not events of this version", foreign)
    return events
