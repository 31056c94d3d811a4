"""Whether something has stopped changing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Still(Generic[T]):
    """A condition for `wait_for`: what `look` gives, `seen` last, has been the same for so many seconds."""

    def __init__(self, look: Callable[[], T], seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._look, self._seconds, self._now = look, seconds, now
        self.seen, self._since = look(), now()

    def __call__(self) -> bool:
        """Looks again."""
        seen = self._look()
        if seen != self.seen:
            self.seen, self._since = seen, self._now()
        return self._now() - self._since >= self._seconds
