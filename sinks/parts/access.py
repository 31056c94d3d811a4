"""ACLs as a part of the walk: when they are looked at, whether they differ, what is set aside."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sinks.access import denied, survey_acls
from sinks.cluster.acls import AclReader, AclWatch
from sinks.errors import NotSupported, RightsMissing
from sinks.model import Kind, Outcome
from sinks.parts.base import Moment, Standing
from sinks.plan import Blind, Plan, Refusal
from sinks.setaside import SetAside
from sinks.settings import FlowSettings

log = logging.getLogger(__name__)

REST = 2.0
"""Seconds between two looks where no metadata log tells of changes: each look asks a broker for all ACLs."""

REST_WHEN_QUIET = 10.0
"""Seconds between two looks while the metadata log is listened to and quiet; at news there is one at once."""


class AclPart:
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
        self._set_aside = SetAside()
        self._topics: frozenset[str] = frozenset()
        self._looked: float | None = None
        self._dirty = self._fresh = False
        self._refused: tuple[Refusal, ...] = ()
        self._errors: tuple[Blind, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._unsupported: str | None = None
        self.principals: Mapping[str, str] | None = None

    def look(self, moment: Moment) -> bool:
        """Whether the ACLs of a side differ from the last look, or topics that they are about came or went."""
        if Kind.ACL in moment.idle:
            return False
        topics = frozenset(moment.listed.desired.remote)
        self._dirty |= self._fresh or topics != self._topics or self._set_aside.is_due(moment.now)
        # Compared now and in the next walk, too: the broker that was watched may be ahead of the one that is read.
        self._fresh, self._topics = False, topics
        if self._is_due(moment):
            self._looked = moment.now
            self._watch(moment.everything)
        return self._dirty and not self._unsupported

    def _is_due(self, moment: Moment) -> bool:
        rest = REST_WHEN_QUIET if moment.quiet else REST
        return moment.everything or moment.news > 0 or self._looked is None or moment.now - self._looked >= rest

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

    def compare(self, moment: Moment) -> Plan:
        """The plan for all ACLs, without the changes that are set aside for now."""
        owned = moment.ledger.owned(Kind.ACL)
        try:
            seen = survey_acls(self._settings, self._source, self._target, moment.listed, owned)
        except NotSupported as error:
            self._lacks(error)
            return Plan(self._settings.flow)
        plan, self.principals = seen.plan, seen.principals
        self._refused, self._errors = plan.refused, plan.errors
        for note in plan.notes:
            if note not in self._notes:
                log.info("%s: %s", self._settings.flow.name, note)
        self._notes = plan.notes
        self._set_aside.retain(plan.changes)
        todo, waiting = self._set_aside.split(plan.changes, moment.now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Forgets both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: an ACL that came
        in between is written now, and revoked it would look as if nothing had happened.
        """
        if any(change.kind is Kind.ACL for change in plan.changes):
            self._source_watch.forget()
            self._target_watch.forget()

    def learn(self, moment: Moment, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.ACL]
        self._set_aside.learn(mine, moment.now)
        self._dirty = any(outcome.error is not None and outcome.error.retriable for outcome in mine)

    def standing(self, moment: Moment) -> Standing:
        """Patterns that cannot be translated, changes that are set aside, and why ACLs cannot be seen."""
        return Standing(
            refused=(*self._refused, *self._set_aside.waiting(moment.now)),
            errors=self._errors,
            unsupported={Kind.ACL: self._unsupported} if self._unsupported else {},
        )

    def close(self) -> None:
        """The clusters themselves are the walk's."""
        self._source_watch.close()
        self._target_watch.close()
