"""SCRAM users as a part of the walk: those whom the ACLs name, when they are looked at, what is set aside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sinks.engine.backoff import Backoff
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Refusal, Unobserved
from sinks.faults import NotSupported
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.users import UserReader
from sinks.kinds.controller import ControllerStatus, PassContext
from sinks.kinds.users.credentials import CredentialProvider
from sinks.kinds.users.survey import survey_users

log = logging.getLogger(__name__)

REST = 10.0
"""Seconds between two looks without news of the metadata log: a password that the provider knows anew is no news."""

Principals = Callable[[], Mapping[str, str] | None]
"""Those whose ACLs are synced, the name on the source to that on the target; None while they are not known."""


class UserController:
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
        self._backoff = Backoff()
        self._compared: float | None = None
        self._named: Mapping[str, str] | None = None
        self._again = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Unobserved, ...] = ()
        self._unsupported: str | None = None

    def look(self, context: PassContext) -> bool:
        """Whether it is time, or the ACLs name other users."""
        named = self._principals()
        if Kind.SCRAM_USER in context.idle or named is None:
            return False
        rested = self._compared is None or context.now - self._compared >= REST
        due = rested or self._again or context.everything or context.news > 0 or named != self._named
        return due or self._backoff.is_due(context.now)

    def compare(self, context: PassContext) -> Plan:
        """The plan for all users that the ACLs name, without the changes that are set aside for now."""
        self._compared, self._named, self._again = context.now, self._principals(), False
        if self._named is None:
            return Plan(self._settings.flow)
        try:
            plan = survey_users(self._settings, self._source, self._target, self._named, self._provider, context.ledger)
        except NotSupported as error:
            if self._unsupported is None:
                log.info("%s: SCRAM users are left alone: %s", self._settings.flow.name, error)
            self._unsupported, self._refused, self._errors = str(error), (), ()
            return Plan(self._settings.flow)
        self._unsupported, self._refused, self._errors = None, plan.refused, plan.errors
        self._backoff.retain(plan.changes)
        todo, waiting = self._backoff.split(plan.changes, context.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.SCRAM_USER]
        self._backoff.learn(mine, context.now)
        self._again = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def status(self, context: PassContext) -> ControllerStatus:
        """Users whose password nobody knows, changes that are set aside, and why users cannot be seen."""
        return ControllerStatus(
            refused=(*self._refused, *self._backoff.waiting(context.now)),
            errors=self._errors,
            unsupported={Kind.SCRAM_USER: self._unsupported} if self._unsupported else {},
        )

    def close(self) -> None:
        """The clusters themselves are the walk's."""
        self._provider.close()
