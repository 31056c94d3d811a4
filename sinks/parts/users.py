"""SCRAM users as a part of the walk: those whom the ACLs name, when they are looked at, what is set aside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sinks.access import survey_users
from sinks.cluster.users import UserReader
from sinks.credentials import CredentialProvider
from sinks.errors import NotSupported
from sinks.model import Kind, Outcome
from sinks.parts.base import Moment, Standing
from sinks.plan import Blind, Plan, Refusal
from sinks.setaside import SetAside
from sinks.settings import FlowSettings

log = logging.getLogger(__name__)

REST = 10.0
"""Seconds between two looks without news of the metadata log: a password that the provider knows anew is no news."""

Principals = Callable[[], Mapping[str, str] | None]
"""Those whose ACLs are synced, the name on the source to that on the target; None while they are not known."""


class UserPart:
    """The kind `scram-user` of one flow. There are few, so a look is a comparison."""

    def __init__(
        self,
        settings: FlowSettings,
        source: UserReader,
        target: UserReader,
        provider: CredentialProvider,
        principals: Principals,
    ) -> None:
        self._settings, self._source, self._target = settings, source, target
        self._provider, self._principals = provider, principals
        self._set_aside = SetAside()
        self._compared: float | None = None
        self._named: Mapping[str, str] | None = None
        self._again = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Blind, ...] = ()
        self._unsupported: str | None = None

    def look(self, moment: Moment) -> bool:
        """Whether it is time, or the ACLs name other users."""
        named = self._principals()
        if Kind.SCRAM_USER in moment.idle or named is None:
            return False
        rested = self._compared is None or moment.now - self._compared >= REST
        due = rested or self._again or moment.everything or moment.news > 0 or named != self._named
        return due or self._set_aside.is_due(moment.now)

    def compare(self, moment: Moment) -> Plan:
        """The plan for all users that the ACLs name, without the changes that are set aside for now."""
        self._compared, self._named, self._again = moment.now, self._principals(), False
        if self._named is None:
            return Plan(self._settings.flow)
        try:
            plan = survey_users(self._settings, self._source, self._target, self._named, self._provider, moment.ledger)
        except NotSupported as error:
            if self._unsupported is None:
                log.info("%s: SCRAM users are left alone: %s", self._settings.flow.name, error)
            self._unsupported, self._refused, self._errors = str(error), (), ()
            return Plan(self._settings.flow)
        self._unsupported, self._refused, self._errors = None, plan.refused, plan.errors
        self._set_aside.retain(plan.changes)
        todo, waiting = self._set_aside.split(plan.changes, moment.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, moment: Moment, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.SCRAM_USER]
        self._set_aside.learn(mine, moment.now)
        self._again = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def standing(self, moment: Moment) -> Standing:
        """Users whose password nobody knows, changes that are set aside, and why users cannot be seen."""
        return Standing(
            refused=(*self._refused, *self._set_aside.waiting(moment.now)),
            errors=self._errors,
            unsupported={Kind.SCRAM_USER: self._unsupported} if self._unsupported else {},
        )

    def close(self) -> None:
        """The clusters themselves are the walk's."""
        self._provider.close()
