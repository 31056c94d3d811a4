"""What MM2 wrote before a process began, read a piece at a time, so that no other kind waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sinks.engine.ledger import Ledger
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_records import MirrorTopics, ReadSoFar


class FirstReading:
    """Of one flow's memory. A topic of which nothing was ever read can hold millions of offset-syncs or
    checkpoints, since brokers do not compact its newest segment."""

    def __init__(self, memory: OffsetMemory, topics: MirrorTopics, seconds: float, clock: Callable[[], float]) -> None:
        """`seconds`: how long it may take at a time."""
        self._memory, self._topics, self._seconds, self._clock = memory, topics, seconds, clock
        self._loading: Iterator[ReadSoFar] | None = None
        self._read = ReadSoFar("offset-syncs", 0)

    def is_done(self, ledger: Ledger) -> bool:
        """Reads on; whether that was all. Raises ClusterUnreachable, RightsMissing, and goes on the next time."""
        loading, self._loading = self._loading or self._memory.loading(ledger, self._topics), None
        until = self._clock() + self._seconds
        for self._read in loading:
            if self._clock() >= until:
                self._loading = loading
                return False
        return True

    @property
    def reason(self) -> str | None:
        """Why nothing is known yet, while it is so."""
        if self._loading is None:
            return None
        return f"MM2's {self._read.what} are being read, {self._read.offsets:,} so far: no offset is written before"

    def close(self) -> None:
        """Lets go of the consumer of a reading that did not come to its end."""
        self._loading = None
