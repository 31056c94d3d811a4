"""Digests of both sides of a window, and what they prove. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Digest(NamedTuple):
    """Sums over the records of one side. They do not depend on the order, but for `distance_*`.

    `content_*`: of a 64-bit digest of key, value and headers, its upper and lower halves apart, so that nothing
    overflows. `mixed`: another such digest, by exclusive or. `time_*`: of content and timestamp. `distance_*`: of
    content and the distance from the beginning of the window. `appended`: records whose timestamp the broker gave
    (LogAppendTime). `first_ms`, `last_ms`: the least and the greatest timestamp; None without records.
    `size`: bytes of keys, values and headers.
    """

    records: int = 0
    content_high: int = 0
    content_low: int = 0
    mixed: int = 0
    time_high: int = 0
    time_low: int = 0
    distance_high: int = 0
    distance_low: int = 0
    appended: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    size: int = 0

    @property
    def content(self) -> tuple[int, ...]:
        """Which records there are."""
        return self.records, self.content_high, self.content_low, self.mixed

    @property
    def times(self) -> tuple[int, int]:
        """With which timestamps."""
        return self.time_high, self.time_low

    @property
    def distances(self) -> tuple[int, int]:
        """At which distances."""
        return self.distance_high, self.distance_low


NONE = Digest()


class Agreement(Enum):
    """What two digests say."""

    SAME = "the same records at the same distances"
    SAME_RECORDS = "the same records; their order is not known"
    DIFFERENT = "other records"


def compare(source: Digest, target: Digest) -> Agreement:
    """Timestamps count unless the target's broker gave them."""
    if source.content != target.content or (not target.appended and source.times != target.times):
        return Agreement.DIFFERENT
    return Agreement.SAME if source.distances == target.distances else Agreement.SAME_RECORDS


def total(digests: Iterable[Digest]) -> Digest:
    """Of several cells together; their distances say nothing any more."""
    found = list(digests)
    mixed = 0
    for one in found:
        mixed ^= one.mixed
    times = [time for one in found for time in (one.first_ms, one.last_ms) if time is not None]
    return Digest(
        records=sum(one.records for one in found),
        content_high=sum(one.content_high for one in found),
        content_low=sum(one.content_low for one in found),
        mixed=mixed,
        time_high=sum(one.time_high for one in found),
        time_low=sum(one.time_low for one in found),
        appended=sum(one.appended for one in found),
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        size=sum(one.size for one in found),
    )
