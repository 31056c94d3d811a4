"""Applies a plan in its order with few requests, and records the outcomes.

Each change has its own outcome, even if others fail. Created items go into the ledger, every outcome into the audit
topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

from sinks.engine.report import stops_flow
from sinks.every_kind.controller import Write
from sinks.faults import CoordinatorUnavailable, IncrementalUnsupported, ItemFault, JavaGone, NoAnswer
from sinks.kafka.ports.cluster import Reader, chunks
from sinks.ledger.audit import Audit, is_event
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Op, Outcome
from sinks.model.plan import Plan
from streaming.errors import LockstepError

CHANGES_IN_A_REQUEST = 500
"""Most changes in one write request, unless the kind's row sets another number."""


Writers = Mapping[Kind, Write]


@dataclass(frozen=True)
class AppliedStep:
    """Outcomes of one request. `stopped`: the error after which this pass writes no more of the kind."""

    kind: Kind
    outcomes: Sequence[Outcome]
    stopped: LockstepError | None = None


def apply_steps(
    plan: Plan,
    writers: Writers,
    goes_on: Callable[[], bool] = lambda: True,
    sends: Callable[[Sequence[Change]], object] = lambda changes: None,
) -> Iterator[AppliedStep]:
    """Send a plan request by request, and yield the outcomes of each, so that the caller can record them at once.

    `goes_on`: asked right before each request. If it returns False, nothing more is sent, and the rest has no outcome.
    `sends`: called with the changes of each request that is sent, whatever its outcome.

    If the target stops answering, the outcome of the request that was sent is unknown, and the rest is not sent. If an
    error concerns one kind, the rest of that kind fails. Raises what stops the flow (`report.stops_flow`) at once, and
    IncrementalUnsupported after the last request.
    """
    silent: ItemFault | None = None
    stopped: dict[Kind, ItemFault] = {}
    raised_at_the_end: LockstepError | None = None
    for kind, changes in _requests(plan):
        fault = silent or stopped.get(kind)
        if fault is not None:
            yield AppliedStep(kind, [Outcome(change, fault) for change in changes])
            continue
        sent = False
        try:
            if not goes_on():
                return
            sent = True
            sends(changes)
            yield AppliedStep(kind, [_naming_right(outcome) for outcome in writers[kind](changes)])
        except LockstepError as error:
            silences = isinstance(error, NoAnswer) and not isinstance(error, CoordinatorUnavailable)
            if not silences and stops_flow(error):
                raise
            # KIP-894's `required`: in ERROR after the other kinds were written, as MM2 is.
            if isinstance(error, IncrementalUnsupported):
                raised_at_the_end = error
            passing = isinstance(error, NoAnswer)
            named = not silences or isinstance(error, JavaGone)
            fault = ItemFault(type(error).__name__ if named else "UNREACHABLE", str(error), retriable=passing)
            silent, stopped[kind] = fault if silences else None, fault
            here = replace(fault, unknown=sent and passing)
            yield AppliedStep(kind, [Outcome(change, here) for change in changes], None if silences else error)
    if raised_at_the_end is not None:
        raise raised_at_the_end


def _naming_right(outcome: Outcome) -> Outcome:
    """Returns the outcome with a fault that names the missing right and its resource, if a right is missing."""
    change, fault = outcome.change, outcome.error
    if fault is None or not fault.is_denied:
        return outcome
    named = dict(zip(change.kind.row.key_fields, change.key, strict=True))
    denied = fault.code.removesuffix("_AUTHORIZATION_FAILED")
    resource = (denied, named[denied.lower()]) if denied.lower() in named else ("CLUSTER", "kafka-cluster")
    return replace(outcome, error=fault.needing(change.kind.row.written_with[change.op], *resource))


def _requests(plan: Plan) -> Iterator[tuple[Kind, Sequence[Change]]]:
    for (kind, _), group in groupby(plan.changes, key=_together):
        for part in chunks(list(group), kind.row.in_a_request or CHANGES_IN_A_REQUEST):
            yield kind, part


def _together(change: Change) -> tuple[Kind, int]:
    # Config changes of a topic go out together, whatever their operation: each topic is all or nothing.
    return change.kind, 0 if change.kind.row.together else change.order[0]


class Recorder:
    """Records the outcomes of one flow. Remembers which refusals the audit topic already has."""

    def __init__(self, audit: Audit, target: Reader) -> None:
        self._audit, self._target = audit, target
        self._recorded: frozenset[tuple[Kind, Op, Key]] = frozenset()

    def record(self, plan: Plan, outcomes: Sequence[Outcome], sent: Iterable[Change], ledger: Ledger) -> None:
        """Write the ledger and the audit topic, each even if the other fails. `sent`: the changes of every sent
        request, also if its outcome is unknown.

        Raises ClusterUnreachable, LockstepError. A change that the ledger could not take stays an intent there. An
        event that the audit topic could not take waits in its queue.
        """
        never_sent = set(plan.changes).difference(sent, (outcome.change for outcome in outcomes))
        done = [outcome.change for outcome in outcomes if not outcome.error]
        created = {change.key[0] for change in done if change.kind.row.data and change.op is Op.CREATE}
        ids: Mapping[str, str] = {}
        try:
            # An id that cannot be read now is learned later.
            with suppress(LockstepError):
                ids = self._target.topic_ids(created) if created else {}
            ledger.record(outcomes, ids, never_sent)
        finally:
            self._audit.record(plan, [outcome for outcome in outcomes if is_event(outcome)])

    def record_refusals(self, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """Record each refusal once, although it stays in the plan until its cause is gone. A change that failed in this
        pass has its event already."""
        known = self._recorded | {(o.change.kind, o.change.op, o.change.key) for o in outcomes}
        lasting = [refusal for refusal in plan.refused if not refusal.passing]
        self._audit.record(plan, (), [refusal for refusal in lasting if refusal.subject not in known])
        self._recorded = frozenset(refusal.subject for refusal in lasting)
