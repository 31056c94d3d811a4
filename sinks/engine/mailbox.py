"""What other threads ask of a flow, until its next pass takes it: a pass, other settings, calls of plug-ins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sinks.engine.audit_events import SettingChange
from sinks.engine.reconcile import FlowReconcile

Build = Callable[[], FlowReconcile]
"""Makes what a flow is made of."""


@dataclass(frozen=True)
class Mail:
    """What one pass takes. `everything`: it compares all. `build`: it begins by creating the flow again. `calls`:
    of plug-ins that take other values. `changes`: settings to be audited. `number`: of the pass."""

    requested: frozenset[str]
    everything: bool
    build: Build | None
    calls: tuple[Callable[[], None], ...]
    changes: tuple[SettingChange, ...]
    number: int


class Mailbox:
    """May be called from any thread. What could not be done is given back, and comes again with the next pass."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requested: set[str] = set()
        self._everything = False
        self._owed_topics: set[str] = set()
        self._owed_everything = False
        self._build: Build | None = None
        self._owed_build: Build | None = None
        self._calls: list[Callable[[], None]] = []
        self._changes: list[SettingChange] = []
        self._begun = self._done = 0

    def renew(self, build: Build, changes: Sequence[SettingChange]) -> None:
        """The next pass begins by creating the flow again, and audits the changes."""
        with self._changed:
            self._build, self._owed_build = build, None
            # They were for plug-ins of what is replaced, and closed, before they could be made.
            self._calls = []
            self._changes += changes

    def add_call(self, call: Callable[[], None], changes: Sequence[SettingChange]) -> None:
        """The next pass begins with this call, audits the changes, and compares everything."""
        with self._changed:
            self._calls.append(call)
            self._changes += changes
            self._everything = True

    def add_changes(self, changes: Sequence[SettingChange]) -> None:
        """The next pass audits them."""
        with self._changed:
            self._changes += changes

    def take(self) -> Mail:
        """All that waits, for the pass that begins now."""
        with self._changed:
            self._begun += 1
            mail = Mail(
                frozenset(self._requested | self._owed_topics),
                self._everything or self._owed_everything,
                self._build or self._owed_build,
                tuple(self._calls),
                tuple(self._changes),
                self._begun,
            )
            self._requested, self._everything = set(), False
            self._build = self._owed_build = None
            self._owed_topics, self._owed_everything = set(), False
            self._calls, self._changes = [], []
            return mail

    def give_back(
        self, build: Build | None, calls: Sequence[Callable[[], None]], changes: Sequence[SettingChange]
    ) -> None:
        """What the pass could not do, before all that came meanwhile. Of a build and calls, a newer build counts
        alone: what they were for is replaced."""
        with self._changed:
            if self._build is None:
                self._owed_build = build
                self._calls = [*calls, *self._calls]
            self._changes = [*changes, *self._changes]

    def owe(self, mail: Mail) -> None:
        """The pass failed: the next one, whenever that comes, compares what this one should have."""
        with self._changed:
            self._owed_topics |= mail.requested
            self._owed_everything |= mail.everything

    def has_request(self) -> bool:
        """Whether a pass was requested; what a failed one owes comes with the next, whenever that is due."""
        with self._changed:
            return bool(self._requested) or self._everything or self._build is not None

    def done(self, number: int) -> None:
        """The pass of this number came to its end."""
        with self._changed:
            self._done = number
            self._changed.notify_all()

    def request_pass(self, topics: Collection[str], wait: float, wake: Callable[[], None] = lambda: None) -> bool:
        """Asks for a pass that compares these upstream topics (none: all); whether one was done within `wait` s.

        `wake`: called once the request is in."""
        with self._changed:
            self._requested.update(topics)
            self._everything |= not topics
            goal = self._begun + 1
            wake()
            return self._changed.wait_for(lambda: self._done >= goal, timeout=wait)
