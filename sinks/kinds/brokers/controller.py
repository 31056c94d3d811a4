"""The brokers' cluster-wide configs as a part of the walk: when they are looked at, what is set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sinks.engine.backoff import Backoff
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Refusal, Unobserved
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.config_levels import LevelReader
from sinks.kinds.brokers.rules import BrokerConfigRules
from sinks.kinds.brokers.survey import survey_brokers
from sinks.kinds.controller import ControllerStatus, PassContext

REST = 10.0
"""Seconds between two looks without news of the metadata log."""

REFUSED_REST = 60.0
"""The same while something is refused: to see whether it still is takes all configs of a broker."""


class BrokerController:
    """The kind `broker-config` of one flow. There are few, so a look is a comparison."""

    def __init__(
        self, settings: FlowSettings, rules: BrokerConfigRules, source: LevelReader, target: LevelReader
    ) -> None:
        self._settings, self._rules, self._source, self._target = settings, rules, source, target
        self._backoff = Backoff()
        self._compared: float | None = None
        self._again = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Unobserved, ...] = ()

    def look(self, context: PassContext) -> bool:
        """Whether it is time, or the source's metadata log tells of something."""
        if Kind.BROKER_CONFIG in context.idle:
            return False
        rest = REFUSED_REST if self._refused else REST
        rested = self._compared is None or context.now - self._compared >= rest
        due = rested or self._again or context.everything or context.news > 0
        return due or self._backoff.is_due(context.now)

    def compare(self, context: PassContext) -> Plan:
        """The plan for both cluster-wide defaults, without the changes that are set aside for now."""
        self._compared, self._again = context.now, False
        owned = context.ledger.owned(Kind.BROKER_CONFIG)
        plan = survey_brokers(self._settings, self._rules, self._source, self._target, owned)
        self._refused, self._errors = plan.refused, plan.errors
        self._backoff.retain(plan.changes)
        todo, waiting = self._backoff.split(plan.changes, context.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.BROKER_CONFIG]
        self._backoff.learn(mine, context.now)
        self._again = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def status(self, context: PassContext) -> ControllerStatus:
        """Configs that the target cannot have, changes that are set aside, and why configs cannot be seen."""
        return ControllerStatus(refused=(*self._refused, *self._backoff.waiting(context.now)), errors=self._errors)

    def close(self) -> None:
        """Both clients are this part's own."""
        self._source.close()
        self._target.close()
