"""What MM2 wrote and a flow does not know, read a piece at a time, so that no other kind waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import ReadSoFar
from sinks.ledger.ledger import Ledger


class PacedReading:
    """Of one flow's memory: the first reading, and whatever has to be read later."""

    def __init__(self, reading: MirrorReading, seconds: float, clock: Callable[[], float]) -> None:
        """`seconds`: how long it may take at a time."""
        self._reading, self._seconds, self._clock = reading, seconds, clock
        self._loaded = self._owes_rest = False
        self._under_way: Iterator[ReadSoFar] | None = None
        self._read = ReadSoFar("offset-syncs", 0)

    def is_done(self, ledger: Ledger, to_the_end: bool) -> bool:
        """Reads on; whether that was all. Raises ClusterUnreachable, RightsMissing, and goes on the next time.

        `to_the_end`: also what the stream may have missed.
        """
        self._owes_rest |= to_the_end
        under_way, self._under_way = self._under_way or self._all(ledger), None
        until = self._clock() + self._seconds
        for self._read in under_way:
            if self._clock() >= until:
                self._under_way = under_way
                return False
        self._owes_rest = False
        return True

    def _all(self, ledger: Ledger) -> Iterator[ReadSoFar]:
        if not self._loaded:
            yield from self._reading.loading(ledger)
            self._loaded = True
        yield from self._reading.rereading()
        if self._owes_rest:
            yield from self._reading.catching_up()

    @property
    def breaks_off(self) -> bool:
        """Whether what the stream may have missed was begun and not read to its end: what it told since lies behind a
        gap. Where it told too much, nothing of that waits any more."""
        return self._owes_rest

    @property
    def reason(self) -> str | None:
        """Why nothing is known for certain, while it is so."""
        if self._under_way is None:
            return None
        return f"MM2's {self._read.what} are being read, {self._read.offsets:,} so far: no offset is written before"

    def close(self) -> None:
        """Lets go of the consumer of a reading that did not come to its end."""
        self._under_way = None
