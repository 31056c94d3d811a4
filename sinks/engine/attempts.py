"""What each controller of a flow was asked for in vain, when it is asked again, and what it must be told then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from sinks.engine.kind_trouble import KindTrouble, stops_flow
from sinks.kinds.controller import Comparison, Controller, PassContext, SignalExplainer
from streaming.errors import LockstepError

T = TypeVar("T")


class Attempts:
    """Asks controllers, so that one's trouble is no other's."""

    def __init__(self) -> None:
        self._failed: dict[int, tuple[RetrySchedule, LockstepError]] = {}
        self._signalled: Counter[int] = Counter()

    def signal(self, controllers: Iterable[Controller], records: int) -> None:
        """So many changes were signalled: owed to each of these until it was polled, for a signal comes once."""
        self._signalled.update(dict.fromkeys(map(id, controllers), records))

    def poll(self, controller: Controller, context: PassContext, trouble: KindTrouble) -> bool:
        """Whether it has anything to compare; it is told of what was signalled since it was polled last, and that no
        other explained. As `ask`."""
        owed = replace(context, signalled=self._signalled[id(controller)])
        answer = self.ask(controller, owed, trouble, controller.poll)
        if answer is not None:
            self._signalled[id(controller)] = 0
            if isinstance(controller, SignalExplainer):
                self._explain(min(owed.signalled, controller.explained))
        return bool(answer)

    def _explain(self, records: int) -> None:
        for other, owed in self._signalled.items():
            self._signalled[other] = max(0, owed - records)

    def compare_claims(self, controllers: Iterable[Controller], context: PassContext) -> list[Comparison]:
        """Polls and compares kinds of which flows claim items from each other, and settles nothing. As `ask`."""
        trouble = KindTrouble()
        claiming = [one for one in controllers if any(kind.row.of_principals for kind in one.kinds)]
        due = [one for one in claiming if self.poll(one, context, trouble)]
        return [made for one in due if (made := self.ask(one, context, trouble, one.compare))]

    def ask(
        self, controller: Controller, context: PassContext, trouble: KindTrouble, step: Callable[[PassContext], T]
    ) -> T | None:
        """One step of a controller. What stops its kinds alone is noted, None comes back, and it is asked again ever
        less often, or where somebody wants to know. Raises what stops the flow."""
        schedule, last = self._failed.get(id(controller), (RetrySchedule(), None))
        wanted = context.everything or bool(context.requested)
        if last is not None and not (wanted or schedule.is_due(context.now)):
            trouble.note(controller.kinds, last)
            return None
        try:
            answer = step(context)
        except LockstepError as error:
            if stops_flow(error):
                raise
            schedule.failed(context.now)
            self._failed[id(controller)] = schedule, error
            trouble.note(controller.kinds, error)
            return None
        if step == controller.compare or not answer:
            self._failed.pop(id(controller), None)
        return answer

    def due(self, controller: Controller) -> float | None:
        """When a controller in trouble is asked again, in monotonic seconds; None without trouble."""
        schedule, _ = self._failed.get(id(controller), (None, None))
        return schedule.not_before if schedule is not None else None


FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds until the second try, and between tries in the end."""


@dataclass
class RetrySchedule:
    """Waits that double from FIRST_WAIT to `longest` while something fails again and again."""

    longest: float = LONGEST_WAIT
    not_before: float = 0.0
    failures: int = 0

    def failed(self, now: float, at_least: float = 0.0) -> float:
        """Notes a failure; returns the seconds until the next try."""
        wait = max(at_least, min(FIRST_WAIT * 2.0 ** min(self.failures, 10), self.longest))
        self.failures += 1
        self.not_before = now + wait
        return wait

    def succeeded(self) -> None:
        """The next failure is the first one."""
        self.failures, self.not_before = 0, 0.0

    def is_due(self, now: float) -> bool:
        """Whether it may be tried now."""
        return now >= self.not_before
