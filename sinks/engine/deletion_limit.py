"""Kinds that would delete more than the limits allow write nothing until an operator confirms it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sinks.engine.model import Kind, Op, count_by
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
