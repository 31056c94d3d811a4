"""Kinds that would delete more than the limits allow write nothing until an operator confirms it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sinks.engine.model import Kind
from sinks.engine.plan import Plan, Refusal
from sinks.flow_settings import Limits


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
        unsafe = {} if force else plan.unsafe(self._limits)
        plan = plan.without(unsafe)
        before = {kind: held for kind, held in self._stopped.items() if kind not in compared}
        now = {
            kind: (reason, tuple(one for one in plan.refused if one.kind is kind)) for kind, reason in unsafe.items()
        }
        self._stopped = before | now
        held = [refusal for _, refusals in before.values() for refusal in refusals]
        return replace(plan, refused=(*plan.refused, *held)) if held else plan
