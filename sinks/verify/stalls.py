"""A partition of the target that stands still while the source's moves: MM2 copies it no more. Pure."""

from __future__ import annotations

STALLS_AFTER = 30.0
"""Seconds without one more record on the target while the source has some that it lacks."""


class Stall:
    """Of one partition. Times in seconds of any clock that only goes on.

    Ends move without records, too: transactions end. So what was read wins over what ends alone say.
    """

    __slots__ = ("_copy_end", "_grew_at", "_source_end")

    def __init__(self, source_end: int, copy_end: int) -> None:
        self._source_end, self._copy_end = source_end, copy_end
        self._grew_at: float | None = None

    def see(self, source_end: int, copy_end: int, now: float) -> None:
        """Both ends as they are now."""
        if copy_end != self._copy_end:
            self._source_end, self._copy_end, self._grew_at = source_end, copy_end, None
        elif source_end > self._source_end and self._grew_at is None:
            self._grew_at = now

    def read(self, source_end: int, pending: int) -> None:
        """All records up to this end were read, and so many are on the source alone."""
        if not pending and source_end >= self._source_end:
            self._source_end, self._grew_at = source_end, None

    def is_stalled(self, now: float) -> bool:
        """Whether the target stands still for too long."""
        return self._grew_at is not None and now - self._grew_at >= STALLS_AFTER
