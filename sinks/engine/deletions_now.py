"""What is about to be deleted must be ours now: another process may have written the ledger since it was read.

`lockstep apply` deletes an ACL that is ours and lets go of it, an operator adds the same by hand, and the running job,
which reads the ledger once per full comparison, would take that for its own.
"""

from __future__ import annotations

from sinks.engine.ledger import Ledger
from sinks.engine.model import Change, Op
from sinks.engine.plan import Plan

GIVEN_UP = "the ledger says by now that it is not Lockstep's, or that the kind is paused: it is compared again"


def only_ours(plan: Plan, ledger: Ledger) -> Plan:
    """The plan with the deletions refused that the ledger, as it was read right now, does not allow any more."""
    kinds = {change.kind for change in plan.changes if _needs_ownership(change)}
    if not kinds:
        return plan
    paused = ledger.paused()
    owned = {kind: ledger.owned(kind) for kind in kinds - paused}
    lost = [
        change for change in plan.changes if _needs_ownership(change) and change.key not in owned.get(change.kind, ())
    ]
    return plan.refusing(lost, GIVEN_UP)


def _needs_ownership(change: Change) -> bool:
    return change.op is Op.DELETE and change.kind.row.owned
