"""The brokers' cluster-wide configs as a part of the walk: when they are looked at, what is set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sinks.brokers import survey_brokers
from sinks.cluster.levels import LevelReader
from sinks.model import Kind, Outcome
from sinks.parts.base import Moment, Standing
from sinks.plan import Blind, Plan, Refusal
from sinks.resources.brokers import BrokerConfigRules
from sinks.setaside import SetAside
from sinks.settings import FlowSettings

REST = 10.0
"""Seconds between two looks without news of the metadata log."""

REFUSED_REST = 60.0
"""The same while something is refused: to see whether it still is takes all configs of a broker."""


class BrokerPart:
    """The kind `broker-config` of one flow. There are few, so a look is a comparison."""

    def __init__(
        self, settings: FlowSettings, rules: BrokerConfigRules, source: LevelReader, target: LevelReader
    ) -> None:
        self._settings, self._rules, self._source, self._target = settings, rules, source, target
        self._set_aside = SetAside()
        self._compared: float | None = None
        self._again = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Blind, ...] = ()

    def look(self, moment: Moment) -> bool:
        """Whether it is time, or the source's metadata log tells of something."""
        if Kind.BROKER_CONFIG in moment.idle:
            return False
        rest = REFUSED_REST if self._refused else REST
        rested = self._compared is None or moment.now - self._compared >= rest
        due = rested or self._again or moment.everything or moment.news > 0
        return due or self._set_aside.is_due(moment.now)

    def compare(self, moment: Moment) -> Plan:
        """The plan for both cluster-wide defaults, without the changes that are set aside for now."""
        self._compared, self._again = moment.now, False
        owned = moment.ledger.owned(Kind.BROKER_CONFIG)
        plan = survey_brokers(self._settings, self._rules, self._source, self._target, owned)
        self._refused, self._errors = plan.refused, plan.errors
        self._set_aside.retain(plan.changes)
        todo, waiting = self._set_aside.split(plan.changes, moment.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, moment: Moment, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.BROKER_CONFIG]
        self._set_aside.learn(mine, moment.now)
        self._again = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def standing(self, moment: Moment) -> Standing:
        """Configs that the target cannot have, changes that are set aside, and why configs cannot be seen."""
        return Standing(refused=(*self._refused, *self._set_aside.waiting(moment.now)), errors=self._errors)

    def close(self) -> None:
        """Both clients are this part's own."""
        self._source.close()
        self._target.close()
