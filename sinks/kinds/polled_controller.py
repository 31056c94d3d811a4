"""The base class of controllers that poll a whole list: ACLs, users, broker configs, quotas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

from sinks.every_kind.comparison import Comparison, Polled, Wanted
from sinks.every_kind.controller import PassContext, Sighting
from sinks.every_kind.kinds_agenda import WHOLE, KindsAgenda
from sinks.faults import NotSupported, RightsMissing
from sinks.kafka.ports.acls import AclWatch
from sinks.ledger.adoption import Alike
from sinks.model.changes import Key, Kind
from sinks.model.plan import Plan, Unobserved
from streaming.flow import Flow

S = TypeVar("S")

REST = 10.0
"""Seconds between two polls of a list without a signal of the metadata log. A plug-in's change gives no signal."""

ASKS_AFTER = 1.5
"""A list asks for a pass of its own after this many times its rest. Usually an earlier pass polls it."""


class PolledController(ABC, Generic[S]):
    """Controller of one kind of one flow that is compared as a whole list. Without watches each poll compares, because
    such lists are short."""

    kind: Kind
    needs: str
    """The right that reading the list needs, for messages."""
    rest: float = REST
    """Seconds between two polls without a signal."""
    signalled_rest: float = REST
    """Seconds between two polls while the signal of the metadata log works and is silent."""
    refused_rest: float = REST
    """Seconds between two polls while a change is refused."""

    def __init__(self, flow: Flow, watches: tuple[AclWatch, AclWatch] | None = None) -> None:
        """`watches`: on the source and on the target; None: each poll compares."""
        self._flow, self._watches = flow, watches
        self.kinds = frozenset({self.kind})
        self._polled: float | None = None
        self._signalled = False

    def inputs(self, context: PassContext) -> Hashable | None:
        """Returns the values that the comparison depends on besides both lists. A new value makes it due. None: unknown
        yet."""
        return ""

    @abstractmethod
    def read(self, context: PassContext) -> S:
        """Read both lists. Raises ClusterUnreachable, RightsMissing, NotSupported."""

    @abstractmethod
    def difference_of(self, context: PassContext, seen: S) -> Comparison:
        """Returns the plan for the whole kind. Its `errors` name what could not be observed. Sends no request to a
        cluster."""

    @abstractmethod
    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns the source's answer about these items, like `Controller.second_look`."""

    def poll(self, context: PassContext, agenda: KindsAgenda) -> Polled:
        """Poll both lists. The result differs if a list or an input changed, or if a refused change is due."""
        kind, now = self.kind, context.now
        # A signal comes once: while the kind rests it is kept.
        self._signalled |= agenda.signalled > 0
        own = None if kind in context.idle else self.inputs(context)
        if own is None:
            # The pass of another kind brings them, or none.
            return Polled(differs=False, possible=False, inputs=agenda.inputs)
        # Another flow that drained topics, or may have, keeps changes from being planned.
        inputs = (own, context.beside)
        # What the target took and did not show counts as ours until a comparison finds that it never will.
        unshown = context.everything and bool(agenda.created.missed)
        doubted = context.everything and agenda.keys.list_in_doubt(now)
        confirms = kind in context.confirming
        also = inputs != agenda.inputs or agenda.backed_off.next_at() <= now or unshown or doubted or confirms
        agenda.keys.begin({WHOLE}, {WHOLE} if also else (), everything=context.everything)
        rest = self.signalled_rest if context.signal_works else self.rest
        refused_rest = max(rest, self.refused_rest)
        rested = self._polled is None or now - self._polled >= (refused_rest if agenda.findings.refused else rest)
        if context.everything or self._signalled or rested:
            self._polled, self._signalled = now, False
            self._poll_sides(context, agenda)
        # What could not be compared in full is compared again with the next poll, not in every pass.
        waits = agenda.rests and self._polled != now and not confirms
        polled = now if self._polled is None else self._polled
        return Polled(
            differs=bool(agenda.keys.dirty) and not waits,
            due=polled + ASKS_AFTER * rest,
            due_if_refused=polled + ASKS_AFTER * refused_rest,
            inputs=inputs,
        )

    def _poll_sides(self, context: PassContext, agenda: KindsAgenda) -> None:
        written, agenda.written = agenda.written, set()
        if self._watches is None:
            agenda.keys.dirty.add(WHOLE)
            return
        if written:
            for watch in self._watches:
                watch.forget()
        source, target = self._watches
        try:
            # Noted one by one: a watch reports a difference once, and the other side may fail.
            for watch in (source, target) if context.everything else (source,):
                if watch.changed():
                    agenda.keys.list_differs(context.now)
        except NotSupported as error:
            agenda.note_unsupported(self.kind, self._flow, str(error))
        except RightsMissing as error:
            agenda.cannot_be_seen(self._denied(error))
        else:
            if context.everything and agenda.findings.unsupported is not None:
                agenda.findings.unsupported = None
                agenda.keys.dirty.add(WHOLE)

    def _denied(self, error: RightsMissing) -> Unobserved:
        return Unobserved(self.kind, f"{error}; {self.needs}")

    def survey(self, context: PassContext, agenda: KindsAgenda) -> S | NotSupported | RightsMissing:
        """Returns both lists, or the error that says why they cannot be read."""
        try:
            return self.read(context)
        except (NotSupported, RightsMissing) as error:
            return error

    def difference(self, context: PassContext, seen: S | NotSupported | RightsMissing) -> Comparison:
        if isinstance(seen, NotSupported):
            return Comparison(Plan(self._flow), wanted=Wanted(self.kind, (), 0, ""), unsupported=str(seen))
        if isinstance(seen, RightsMissing):
            return Comparison(Plan(self._flow, errors=(self._denied(seen),)))
        return self.difference_of(context, seen)

    def alike(self, context: PassContext, compared: Comparison) -> Alike:
        return compared.alike
