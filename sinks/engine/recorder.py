"""Records what a pass did: what was created goes into the ledger, every outcome into the audit topic."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.audit import Audit
from sinks.engine.ledger import Ledger
from sinks.engine.model import Key, Kind, Op, Outcome
from sinks.engine.plan import Plan


class Recorder:
    """Of one flow. Remembers which refusals are events already."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._told: frozenset[tuple[Kind, Op, Key]] = frozenset()

    def record(self, plan: Plan, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        """Both are written, whatever becomes of the other. Raises ClusterUnreachable, LockstepError."""
        try:
            ledger.record(outcomes)
        finally:
            self._audit.record(plan, [outcome for outcome in outcomes if is_event(outcome)])

    def record_refusals(self, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """A refusal stands in the plan until it is mended, but is an event once; what failed now is one already."""
        known = self._told | {(o.change.kind, o.change.op, o.change.key) for o in outcomes}
        self._audit.record(plan, (), [refusal for refusal in plan.refused if refusal.place not in known])
        self._told = frozenset(refusal.place for refusal in plan.refused)


def is_event(outcome: Outcome) -> bool:
    """That a group's offset moves on is content, like records; that it is there at all, or could not move, is one."""
    change = outcome.change
    return outcome.error is not None or not change.kind.row.content or change.op is not Op.UPDATE
