"""One controller for every kind of which a whole list is polled: ACLs, users, broker configs, quotas."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sinks.faults import NotSupported, RightsMissing
from sinks.ledger.adoption import Alike
from sinks.model.changes import Key, Kind, Op, Outcome
from sinks.model.plan import Plan, Refusal, Unobserved
from sinks.protocol.absence import Absence
from sinks.protocol.controller import Comparison, ControllerStatus, PassContext, Sighting, Wanted
from streaming.flow import Flow

log = logging.getLogger(__name__)


class ListWatch(Protocol):
    """Finds differences of a whole list since its own last poll. Not thread-safe."""

    def changed(self) -> bool:
        """Whether the list differs from that of the last poll; at the first one it does."""

    def forget(self) -> None:
        """The next poll reports a change."""


ASKS_AFTER = 1.5
"""Times its rest, after which a list asks for a pass of its own: one that runs anyway polls it before that."""


@dataclass(frozen=True)
class Surveyed:
    """A plan for all of a kind, the keys of what the target has of it now, and what the flow wants of it; None: not
    seen. `alike`: what of that is just as the source has it.
    """

    plan: Plan
    present: Collection[Key] | None
    wanted: Wanted | None
    alike: Alike = field(default_factory=Alike)


class ListedKind(ABC):
    """A kind whose whole lists are compared, and what differs between such kinds.

    `rest`: seconds between two polls without a signal, `signalled_rest` while the metadata-change signal works and is
    silent, `refused_rest` while something is refused. `needs`: the right without which it cannot be observed.
    """

    kind: Kind
    needs: str
    rest: float = 10.0
    signalled_rest: float = 10.0
    refused_rest: float = 10.0

    def inputs(self, context: PassContext) -> Hashable | None:
        """What the survey depends on besides both lists: another value makes it due. None: it cannot be made yet."""
        return ""

    @abstractmethod
    def survey(self, context: PassContext) -> Surveyed:
        """The plan for all of the kind; what could not be observed is in its `errors`."""

    @abstractmethod
    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `Controller.look_up`."""

    def remember(self, context: PassContext) -> None:  # noqa: B027 - most kinds have nothing to remember
        """What the survey found is settled: the ledger may remember it."""


LAGS = 30.0
"""Seconds for which a broker's lists may be behind those of another one."""


class PolledController:
    """One kind of one flow. Without watches a poll is a comparison: such lists are short."""

    def __init__(self, flow: Flow, listed: ListedKind, watches: tuple[ListWatch, ListWatch] | None = None) -> None:
        """`watches`: on the source and on the target."""
        self._flow, self._listed, self._watches = flow, listed, watches
        self.kinds = frozenset({listed.kind})
        self._inputs: Hashable | None = None
        self._lacks_inputs = False
        self._polled: float | None = None
        self._dirty = self._untried = self._signalled = self._doubtful = False
        # The broker that was watched may be ahead of the one that is read, and a watch reports a difference once. So
        # it is compared in the next pass, too (`_fresh`), and with full comparisons until LAGS after it (`_differed`).
        self._fresh = False
        self._differed: float | None = None
        self._absence = Absence[str]()
        self._last = Plan(flow)
        self._unsupported: str | None = None
        self._alike = Alike()

    def poll(self, context: PassContext) -> bool:
        """Whether a list differs from the last poll, what it is compared by differs, or a refused change is due."""
        # A signal comes once: while the kind rests it is kept.
        self._signalled |= context.signalled > 0
        inputs = None if self._listed.kind in context.idle else self._listed.inputs(context)
        self._lacks_inputs = inputs is None
        if inputs is None:
            return False
        mine = context.agenda.of[self.kinds]
        self._dirty |= inputs != self._inputs or mine.backed_off.is_due(context.now)
        self._inputs = inputs
        # What the target took and did not show counts as ours until a comparison finds that it never will.
        self._dirty |= context.everything and bool(mine.created.missed)
        if context.everything and self._differed is not None:
            self._dirty = True
            if context.now - self._differed >= LAGS:
                self._differed = None
        if self._is_due(context):
            self._polled, self._signalled = context.now, False
            self._poll_sides(context)
        confirms = self._listed.kind in context.confirming
        self._dirty |= confirms
        return self._dirty and (confirms or not self._waits(context))

    def _is_due(self, context: PassContext) -> bool:
        rested = self._polled is None or context.now - self._polled >= self._rest(context)
        return context.everything or self._signalled or rested

    def _rest(self, context: PassContext) -> float:
        rest = self._listed.signalled_rest if context.signal_works else self._listed.rest
        return max(rest, self._listed.refused_rest) if self._last.refused else rest

    def _waits(self, context: PassContext) -> bool:
        """What could not be observed, is not supported, was refused or shows nothing of ours is compared again with
        the next poll, not in every pass."""
        return self._rests() and self._polled != context.now

    def _rests(self) -> bool:
        return bool(self._last.errors or self._unsupported or self._untried or self._doubtful)

    def _poll_sides(self, context: PassContext) -> None:
        if self._watches is None:
            self._dirty = True
            return
        source, target = self._watches
        both = context.everything
        try:
            # Noted one by one: a watch reports a difference once, and the other side may fail.
            for watch in (source, target) if both else (source,):
                if watch.changed():
                    self._dirty = self._fresh = True
                    self._differed = context.now
        except NotSupported as error:
            # Compared all the same at first: other flows wait for what this one wants.
            self._dirty = self._lacks(error)
        except RightsMissing as error:
            self._dirty, self._last = True, self._denied(error)
        else:
            if both and self._unsupported is not None:
                self._unsupported, self._dirty = None, True

    def _lacks(self, error: NotSupported) -> bool:
        """Notes that a cluster has nothing of the kind; whether that is news."""
        is_news = self._unsupported is None
        if is_news:
            log.info("%s: %s is left alone: %s", self._flow.name, self._listed.kind, error)
        self._unsupported, self._dirty, self._fresh, self._last = str(error), False, False, Plan(self._flow)
        return is_news

    def compare(self, context: PassContext) -> Comparison:
        """The plan for all of the kind."""
        self._alike = Alike()
        try:
            seen = self._listed.survey(context)
        except NotSupported as error:
            self._lacks(error)
            return Comparison(Plan(self._flow), wanted=Wanted(self._listed.kind, (), 0, ""))
        except RightsMissing as error:
            seen = Surveyed(self._denied(error), None, None)
        plan = self._without_awaited(seen, context)
        self._unsupported, self._alike = None, seen.alike
        for note in plan.notes:
            if note not in self._last.notes:
                log.info("%s: %s", self._flow.name, note)
        self._last = plan
        return Comparison(plan, self._believed(context, seen.present), seen.wanted)

    def alike(self, context: PassContext) -> Mapping[Kind, Alike]:
        """What the last comparison found."""
        return {self._listed.kind: self._alike}

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """What the source says of these items now."""
        return self._listed.look_up(context, keys)

    def _without_awaited(self, seen: Surveyed, context: PassContext) -> Plan:
        kind, created = self._listed.kind, context.agenda.of[self.kinds].created
        if not kind.row.shown_late or seen.present is None:
            return seen.plan
        awaited = created.awaited(seen.present.__contains__, context.now)
        waiting = {one.key for one in seen.plan.changes if one.op is Op.CREATE and one.key in awaited}
        late = created.unobserved(kind, waiting.__contains__, self._flow.target)
        changes = tuple(one for one in seen.plan.changes if one.key not in waiting)
        return replace(seen.plan, changes=changes, errors=(*seen.plan.errors, *late))

    def _believed(self, context: PassContext, present: Collection[Key] | None) -> dict[Kind, dict[Key, str]]:
        """What of the kind the target has. Where some was ours, nothing is believed only after a while."""
        kind, self._doubtful = self._listed.kind, False
        if present is None:
            return {}
        lacks_ours = not present and bool(context.ledger.owned(kind))
        self._absence.observe({kind.value} if lacks_ours else (), 1, context.now)
        self._doubtful = lacks_ours and not self._absence.lasting()
        missed = context.agenda.of[self.kinds].created.missed
        return {} if self._doubtful else {kind: dict.fromkeys((*present, *missed), "")}

    def _denied(self, error: RightsMissing) -> Plan:
        reason = f"{error}; {self._listed.needs}" if self._listed.needs else str(error)
        return Plan(self._flow, errors=(Unobserved(self._listed.kind, reason),))

    def before_writing(self, plan: Plan) -> None:
        """Forgets both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: an item that came
        in between is written now, and revoked it would look as if nothing had happened.
        """
        if plan.changes and self._watches is not None:
            for watch in self._watches:
                watch.forget()

    def settle(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was compared differs no more, but for what was not written, and what could not be seen."""
        if self._unsupported is not None:
            return
        self._listed.remember(context)
        retried = any(outcome.error is not None and outcome.error.retriable for outcome in outcomes)
        # What was planned and not tried, since the plan was refused, stands out as before.
        self._untried = bool(set(plan.changes) - {outcome.change for outcome in outcomes})
        self._dirty = self._fresh or retried or self._untried or self._doubtful or bool(plan.errors)
        self._fresh = False

    def status(self, context: PassContext) -> ControllerStatus:
        """What the target cannot have, changes that are backed off, and why the kind cannot be observed."""
        unsupported = {self._listed.kind: self._unsupported} if self._unsupported else {}
        refused: tuple[Refusal, ...] = (
            *self._last.refused,
            *context.agenda.of[self.kinds].backed_off.waiting(context.now),
        )
        return ControllerStatus(refused, self._last.errors, unsupported, due=self._due(context))

    def _due(self, context: PassContext) -> float:
        if self._lacks_inputs:
            # Another kind's pass brings them, or none.
            return float("inf")
        if self._dirty and not self._rests():
            return context.now
        polled = context.now if self._polled is None else self._polled
        return min(polled + ASKS_AFTER * self._rest(context), context.agenda.of[self.kinds].backed_off.next_at())

    def close(self) -> None:
        """Nothing is open."""
