"""Records what a pass did: what was created goes into the ledger, every outcome into the audit topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sinks.ledger.audit import Audit
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Op, Outcome
from sinks.model.plan import Plan
from streaming.errors import LockstepError


class TopicIdReader(Protocol):
    """Tells the ids of topics on the target."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """By name."""


class Recorder:
    """Of one flow. Remembers which refusals are events already."""

    def __init__(self, audit: Audit, target: TopicIdReader) -> None:
        self._audit, self._target = audit, target
        self._recorded: frozenset[tuple[Kind, Op, Key]] = frozenset()

    def record(self, plan: Plan, outcomes: Sequence[Outcome], sent: Iterable[Change], ledger: Ledger) -> None:
        """Both are written, whatever becomes of the other. `sent`: the changes of every request that left, also of one
        whose outcome is not known. Raises ClusterUnreachable, LockstepError.

        What the ledger could not take stays an intent there, and what the audit could not take waits in its queue.
        """
        never_sent = set(plan.changes).difference(sent, (outcome.change for outcome in outcomes))
        try:
            ledger.record(outcomes, self._ids_of(outcomes), never_sent)
        finally:
            self._audit.record(plan, [outcome for outcome in outcomes if is_event(outcome)])

    def _ids_of(self, outcomes: Sequence[Outcome]) -> Mapping[str, str]:
        """Of what was created just now and has an id. One that cannot be read is learned later."""
        created = {
            outcome.change.key[0]
            for outcome in outcomes
            if outcome.change.kind.row.data and outcome.change.op is Op.CREATE and not outcome.error
        }
        try:
            return self._target.topic_ids(created) if created else {}
        except LockstepError:
            return {}

    def record_refusals(self, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """A refusal stands in the plan until it is mended, but is an event once; what failed now is one already."""
        known = self._recorded | {(o.change.kind, o.change.op, o.change.key) for o in outcomes}
        lasting = [refusal for refusal in plan.refused if not refusal.passing]
        self._audit.record(plan, (), [refusal for refusal in lasting if refusal.subject not in known])
        self._recorded = frozenset(refusal.subject for refusal in lasting)


def is_event(outcome: Outcome) -> bool:
    """That a group's offset moves on is content, like records; that it is there at all, or could not move, is one."""
    change = outcome.change
    return outcome.error is not None or not change.kind.row.content or change.op is not Op.UPDATE
