"""What keeps a plan's deletions from being applied: too many of a kind, and what is not Lockstep's any more. Pure.

Kinds that would delete more than the limits allow write nothing until an operator confirms it. And what is about to be
deleted must be ours now: `lockstep apply` deletes an ACL that is ours and lets go of it, an operator adds the same by
hand, and the running job, which reads the ledger once per full comparison, would take that for its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sinks.engine.ledger import Ledger
from sinks.engine.model import Change, Kind, Op, count_by
from sinks.engine.plan import Plan, Refusal
from sinks.flow_settings import Limits


def beyond_limit(plan: Plan, limits: Limits) -> dict[Kind, str]:
    """Kinds of which the plan deletes more than the limits allow, each with the figures and the remedy."""
    found = {}
    for kind, counts in count_by(plan.changes).items():
        existing, deletes = plan.existing.get(kind, 0), counts[Op.DELETE]
        if kind.row.limited and deletes > limits.allowed(existing):
            found[kind] = (
                f"{plan.flow.name}: the plan deletes {deletes} of {existing} of the kind {kind}, more than "
                f"lockstep.limits.max.delete.percent={limits.max_delete_percent:g} allows "
                f"({limits.allowed(existing)}); nothing of this kind was written. If this is meant, run "
                "`lockstep apply --force`"
            )
    return found


class DeletionLimit:
    """Of one flow. A kind that is stopped stays so, with all that is refused, until it is compared again."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._stopped: dict[Kind, tuple[str, tuple[Refusal, ...]]] = {}

    @property
    def reasons(self) -> Mapping[Kind, str]:
        """Why, of the kinds that are stopped now."""
        return {kind: reason for kind, (reason, _) in self._stopped.items()}

    def check(self, plan: Plan, compared: Collection[Kind], *, force: bool) -> Plan:
        """The plan without these changes. `compared`: the kinds that it is about; `force`: nothing is stopped."""
        beyond = {} if force else beyond_limit(plan, self._limits)
        plan = plan.without(beyond)
        before = {kind: held for kind, held in self._stopped.items() if kind not in compared}
        now = {
            kind: (reason, tuple(one for one in plan.refused if one.kind is kind)) for kind, reason in beyond.items()
        }
        self._stopped = before | now
        held = [refusal for _, refusals in before.values() for refusal in refusals]
        return replace(plan, refused=(*plan.refused, *held)) if held else plan


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
