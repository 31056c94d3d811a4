"""What was created a moment ago, and the target does not show yet: it is not created once more. Pure.

A broker that makes 10,000 partitions shows what it acknowledged minutes later. What was shown once and is missing then
was deleted, and is created at once; so is what is not shown for longer than `LAGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sinks.engine.model import Key, Kind, Op, Outcome
from sinks.engine.plan import Unobserved

LAGS = 300.0
"""Seconds after which what was created and never shown counts as missing."""

NOT_SHOWN = "{} took {} creations and does not show them yet; they are tried again if it does not within minutes"


class RecentCreations:
    """Of one kind of a flow. Times are monotonic seconds."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._created: dict[Key, float] = {}
        self._missed: frozenset[Key] = frozenset()

    def note(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Takes in what was created."""
        done = (outcome.change for outcome in outcomes if outcome.error is None and outcome.change.op is Op.CREATE)
        self._created |= {change.key: now for change in done if change.kind is self._kind}

    def awaited(self, is_shown: Callable[[Key], bool], now: float) -> Collection[Key]:
        """What must not be created again yet. `is_shown`: whether the target shows it now."""
        kept = ((key, at) for key, at in self._created.items() if now - at < LAGS and not is_shown(key))
        self._created = dict(kept)
        self._missed = frozenset(self._created)
        return self._missed

    @property
    def missed(self) -> Collection[Key]:
        """What was awaited when that was asked last; not what was created since."""
        return self._missed

    def unobserved(self, wanted: Callable[[Key], bool], alias: str) -> list[Unobserved]:
        """Says of what is still wanted, and was missed, that the target of this alias does not show it yet."""
        waiting = sum(map(wanted, self._missed))
        return [Unobserved(self._kind, NOT_SHOWN.format(alias, waiting))] if waiting else []
