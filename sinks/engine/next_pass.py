"""When a flow wants its next pass, where nothing else asks for one, and which kinds rest until then. Pure.

Times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sinks.engine.attempts import Attempts
from sinks.engine.model import Kind
from sinks.kinds.controller import Controller, ControllerStatus

NEVER = float("inf")


def due_at(
    controllers: Sequence[Controller],
    status: Iterable[ControllerStatus],
    attempts: Attempts,
    idle: Collection[Kind],
    others: Iterable[float],
) -> float:
    """The earliest of what controllers want, what is tried again, and `others`.

    A controller whose kinds are all `idle` wants nothing: what it could not do now it cannot do before they wake.
    """
    wanted = list(others)
    for controller, one in zip(controllers, status, strict=True):
        retry = attempts.due(controller)
        if retry is not None:
            wanted.append(retry)
        elif not controller.kinds <= set(idle):
            wanted.append(one.due)
    return min(wanted, default=NEVER)


class KindIntervals:
    """Of one flow."""

    def __init__(self, intervals: Mapping[Kind, float]) -> None:
        """`intervals`: seconds between two polls, of the kinds that have any."""
        self._intervals = intervals
        self._polled_at: dict[Kind, float] = {}

    def resting(self, now: float) -> frozenset[Kind]:
        """Kinds whose interval is not over."""
        polled = self._polled_at
        return frozenset(k for k, wait in self._intervals.items() if k in polled and now - polled[k] < wait)

    def polled(self, kinds: Collection[Kind], now: float) -> None:
        """These were read. One that could not be read is due again in the next pass."""
        self._polled_at |= dict.fromkeys(kinds, now)

    def waking(self, kinds: Collection[Kind], now: float) -> list[float]:
        """When those of these kinds that rest now are due again."""
        resting = self.resting(now) & set(kinds)
        return sorted(self._polled_at[kind] + self._intervals[kind] for kind in resting)
