"""Lines for people while a step waits: what for, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LINE_INTERVAL = 10.0
"""Seconds between two lines of one wait."""


@dataclass
class WaitLines:
    """Of one wait, which begins when this is made. `clock`: seconds that only go on; `within`: how long it may take."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    within: float
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._said = self.clock()

    @property
    def is_over(self) -> bool:
        """Whether it has taken too long."""
        return self.clock() > self.began + self.within

    def go_on(self, what: str) -> None:
        """Says what it waits for, unless it has just done so."""
        now = self.clock()
        if now - self._said >= LINE_INTERVAL:
            self._said = now
            self.say(f"waiting for {what}: {now - self.began:.0f} s, at most {self.within:g} s")
