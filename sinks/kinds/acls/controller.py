"""ACLs as a part of the walk: when they are looked at, whether they differ, what is set aside."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sinks.engine.backoff import Backoff
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Refusal, Unobserved
from sinks.faults import NotSupported, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acls import AclReader, AclWatch
from sinks.kinds.acls.survey import denied, survey_acls
from sinks.kinds.controller import ControllerStatus, PassContext

log = logging.getLogger(__name__)

REST = 2.0
"""Seconds between two looks where no metadata log tells of changes: each look asks a broker for all ACLs."""

REST_WHEN_QUIET = 10.0
"""Seconds between two looks while the metadata log is listened to and quiet; at news there is one at once."""


class AclController:
    """The kind `acl` of one flow. Cluster-wide, so that a difference is one for all of them."""

    def __init__(
        self,
        settings: FlowSettings,
        source: AclReader,
        target: AclReader,
        source_watch: AclWatch,
        target_watch: AclWatch,
    ) -> None:
        self._settings, self._source, self._target = settings, source, target
        self._source_watch, self._target_watch = source_watch, target_watch
        self._backoff = Backoff()
        self._topics: frozenset[str] = frozenset()
        self._looked: float | None = None
        self._dirty = self._fresh = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Unobserved, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._unsupported: str | None = None
        self.principals: Mapping[str, str] | None = None

    def look(self, context: PassContext) -> bool:
        """Whether the ACLs of a side differ from the last look, or topics that they are about came or went."""
        if Kind.ACL in context.idle:
            return False
        topics = frozenset(context.listed.desired.remote)
        self._dirty |= self._fresh or topics != self._topics or self._backoff.is_due(context.now)
        # Compared now and in the next walk, too: the broker that was watched may be ahead of the one that is read.
        self._fresh, self._topics = False, topics
        if self._is_due(context):
            self._looked = context.now
            self._watch(context.everything)
        return self._dirty and not self._unsupported

    def _is_due(self, context: PassContext) -> bool:
        rest = REST_WHEN_QUIET if context.quiet else REST
        return context.everything or context.news > 0 or self._looked is None or context.now - self._looked >= rest

    def _watch(self, both: bool) -> None:
        try:
            changed = self._source_watch.changed()
            if both:
                changed |= self._target_watch.changed()
        except NotSupported as error:
            self._lacks(error)
        except RightsMissing as error:
            self._errors = (denied(error),)
        else:
            if both:
                self._unsupported = None
            self._dirty |= changed
            self._fresh |= changed

    def _lacks(self, error: NotSupported) -> None:
        if self._unsupported is None:
            log.info("%s: ACLs are left alone: %s", self._settings.flow.name, error)
        self._unsupported, self._dirty, self._errors = str(error), False, ()

    def compare(self, context: PassContext) -> Plan:
        """The plan for all ACLs, without the changes that are set aside for now."""
        owned = context.ledger.owned(Kind.ACL)
        try:
            seen = survey_acls(self._settings, self._source, self._target, context.listed, owned)
        except NotSupported as error:
            self._lacks(error)
            return Plan(self._settings.flow)
        plan, self.principals = seen.plan, seen.principals
        self._refused, self._errors = plan.refused, plan.errors
        for note in plan.notes:
            if note not in self._notes:
                log.info("%s: %s", self._settings.flow.name, note)
        self._notes = plan.notes
        self._backoff.retain(plan.changes)
        todo, waiting = self._backoff.split(plan.changes, context.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Forgets both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: an ACL that came
        in between is written now, and revoked it would look as if nothing had happened.
        """
        if any(change.kind is Kind.ACL for change in plan.changes):
            self._source_watch.forget()
            self._target_watch.forget()

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.ACL]
        self._backoff.learn(mine, context.now)
        self._dirty = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def status(self, context: PassContext) -> ControllerStatus:
        """Patterns that cannot be translated, changes that are set aside, and why ACLs cannot be seen."""
        return ControllerStatus(
            refused=(*self._refused, *self._backoff.waiting(context.now)),
            errors=self._errors,
            unsupported={Kind.ACL: self._unsupported} if self._unsupported else {},
        )

    def close(self) -> None:
        """The clusters themselves are the walk's."""
        self._source_watch.close()
        self._target_watch.close()
