"""Audits who changed what, when, and with which outcome: an event per change in a time-retained topic on the target."""

from __future__ import annotations

import logging
import os
import pwd
import socket
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import orjson

from sinks.kafka.ports.cluster import Cluster, Record
from sinks.ledger.adoption import ADOPT, AdoptionPlan
from sinks.ledger.audit_events import (
    CREDENTIAL,
    EVENT_SCHEMA,
    FAILOVER,
    PAUSE,
    RESUME,
    SETTING,
    UNSIGNED,
    CredentialWrite,
    Event,
    SettingChange,
    of_outcome,
    of_refusal,
    result_of,
    side,
)
from sinks.ledger.seal import Seal
from sinks.model.changes import Key, Kind, Op, Outcome, compact_json
from sinks.model.plan import Plan, Refusal
from sinks.model.times import milliseconds, utc_now
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

AUDIT_TOPIC_CONFIGS: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": str(90 * 24 * 3600 * 1000)}
"""Ninety days; change the topic's own `retention.ms` for another time."""


def process_identity() -> str:
    """Returns `user@host` of this process: the user that it runs as, whatever its environment says, and the host's own
    name."""
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return f"{user}@{socket.gethostname()}"


MOST_WAITING_EVENTS = 10_000
"""Events that wait for the audit topic, at most; beyond that the oldest are dropped, and counted."""

EVENTS_AT_ONCE = 2000
"""Events of one write. A first pass on a large cluster has tens of thousands. Written in parts, none is dropped."""


class Audit:
    """The audit topic of one flow. It is created at the first event, and again if it was deleted.

    An event that could not be written waits for the next write. It may then be in the topic twice. No event is lost
    while the process lives, up to MOST_WAITING_EVENTS. Each `record…` writes waiting events first. It raises as
    `flush`, and its own events then wait, too.
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
        """Write the events that wait. Raises ClusterUnreachable, RightsMissing, LockstepError; the events then go on
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
        """Write the events that wait. If that fails, they are lost, and the log says so."""
        try:
            self.flush()
        except LockstepError as error:
            log.warning("%s: %d events are lost: %s", self._topic, len(self._waiting), error)

    def record(self, plan: Plan, outcomes: Iterable[Outcome], refused: Iterable[Refusal] = ()) -> None:
        self._record(plan.flow, [*map(of_outcome, outcomes), *map(of_refusal, refused)], plan.digest)

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
            rows.append(row | {"before": side(one.before), "after": side(one.after)})
        self._record(flow, rows)

    def record_credentials(self, flow: Flow, writes: Iterable[CredentialWrite]) -> None:
        rows = list[dict[str, Any]]()
        for one in writes:
            what = {"kind": CREDENTIAL, "op": Op.UPDATE.value, "key": (one.cluster, one.user, one.mechanism)}
            after = orjson.dumps({"iterations": one.iterations}).decode()
            rows.append(what | {"after": after, "result": result_of(one.error), "error": one.error})
        self._record(flow, rows)

    def record_failover(self, flow: Flow, key: Key, before: str, after: str, error: str | None = None) -> None:
        """Write one event for a step of a failover. `before`, `after`: states."""
        what = {"kind": FAILOVER, "op": Op.UPDATE.value, "key": key, "before": side(before), "after": side(after)}
        self._record(flow, [what | {"result": result_of(error), "error": error}])

    def _record(self, flow: Flow, rows: Iterable[dict[str, Any]], digest: str = "") -> None:
        """`rows`: fields of the events, besides what all events of this call have."""
        now, left = self._now(), deque[Record]()
        for row in rows:
            event = Event(at=now, source=flow.source, target=flow.target, who=self._who, digest=digest, **row)
            key = compact_json([event.kind, *event.key])
            left.append((key, self._seal.wrap(key, EVENT_SCHEMA.encode(event.as_dict()), milliseconds(now))))
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
