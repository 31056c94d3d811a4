"""Reads the records of both sides, with Spark or from lists in a test, and meters how much was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from streaming.verify.rows import SOURCE, DigestRow, KeyRow, KeySums, PartitionRead, RecordRows, SoughtRecord

Reads = Sequence[PartitionRead]
"""Partitions of one side. Both sides have the same ids and numbers of cells."""


class RecordJobs(Protocol):
    """Reads records and brings sums and differences. Raises what Spark raises."""

    def digests(self, source: Reads, target: Reads) -> Iterable[DigestRow]:
        """Returns a row for each cell and side that has records."""

    def pairs(self, source: Reads, target: Reads, times: bool, most: int) -> RecordRows:
        """Matches the records of the even cells (0, 2, …); odd cells are left out. `times`: timestamps count. Brings at
        most so many contents and runs, the first by offset of each cell."""

    def find_on_source(self, partitions: Reads, wanted: Sequence[SoughtRecord]) -> Mapping[SoughtRecord, int]:
        """Returns for each record that is in these partitions its first offset there."""

    def last_values(self, source: Reads, target: Reads, most: int) -> tuple[Sequence[KeySums], Sequence[KeyRow]]:
        """For compacted topics: returns sums of each partition, and keys whose last records differ, at most `most` of
        them.

        They are the first by offset of each partition. The target's partitions have two cells. The first one is older
        than what is compared, and counts only for keys that the source deletes.
        """


# How many bytes the running job may read for a comparison: `lockstep.verify.rate`, saved up for a while. Pure.

LARGEST_SECONDS = 60.0
"""The largest piece that is read at once, in seconds of the rate."""

UNKNOWN_SIZE = 1024.0
"""Assumed bytes per offset of a topic that was not read yet."""

CAUTIOUS = 10_000
"""Offsets that are read at once of a topic whose size is not known yet."""

LEAST_OFFSETS = 1_000
"""Least offsets of a piece. A smaller one costs more than it is worth."""

LEAST_SIZE = 64.0
"""Least bytes per offset that are assumed, even if transactions and compaction leave offsets without a record."""

NEWEST = 0.5
"""Weight of the newest measurement of a topic's bytes per offset; the older ones weigh the rest of 1."""


class ByteBudget:
    """The bytes that one flow may read of each side. Times are monotonic seconds."""

    def __init__(
        self, rate: int, burst: float, now: float, *, least: int = LEAST_OFFSETS, cautious: int = CAUTIOUS
    ) -> None:
        """`rate`: bytes a second. `burst`: most seconds of the rate that are saved up. `least`: least offsets of a
        piece. `cautious`: offsets that may be read at once in any case."""
        self.rate, self._burst, self._least, self._cautious = rate, burst, least, cautious
        self._level, self._at = rate * burst, now
        self._sizes: dict[str, float] = {}

    def level(self, now: float) -> float:
        """Bytes that may be read now; negative after too much was read."""
        self._level = min(self.rate * self._burst, self._level + self.rate * (now - self._at))
        self._at = now
        return self._level

    def spend(self, size: float) -> None:
        """Take bytes that were read from the budget. `size`: of the side with more of them."""
        self._level -= size

    def measured(self, topic: str, offsets: int, size: int) -> None:
        """Learns a topic's bytes per offset from what was read."""
        if offsets > 0:
            known = self._sizes.get(topic)
            found = max(LEAST_SIZE, size / offsets)
            self._sizes[topic] = found if known is None else NEWEST * found + (1 - NEWEST) * known

    def size(self, topic: str, offsets: int) -> float:
        """Returns the expected bytes of so many offsets of a topic."""
        return self._sizes.get(topic, UNKNOWN_SIZE) * offsets

    def offsets(self, topic: str, size: float) -> int:
        """Returns the expected offsets of a topic in so many bytes, and no fewer than are worth a read."""
        known = self._sizes.get(topic)
        found = min(self._cautious, int(size / UNKNOWN_SIZE)) if known is None else int(size / known)
        return max(self._least, found)

    def largest(self, topic: str) -> int:
        """Most offsets that may be read at once, however long the wait afterwards is."""
        return max(self._cautious, int(LARGEST_SECONDS * self.rate / self._sizes.get(topic, UNKNOWN_SIZE)))


class MeteredJobs:
    """`RecordJobs` that take from a budget what was read, on the side with more of it."""

    def __init__(self, jobs: RecordJobs, budget: ByteBudget) -> None:
        self._jobs, self._budget = jobs, budget

    def digests(self, source: Reads, target: Reads) -> Iterator[DigestRow]:
        """Yields the digests of the jobs, and takes their exact sizes from the budget."""
        sizes: dict[tuple[int, int], int] = {}
        for row in self._jobs.digests(source, target):
            sizes[row.side, row.id] = sizes.get((row.side, row.id), 0) + row.digest.size
            yield row
        for one in source:
            self._budget.measured(one.topic, _offsets(one), sizes.get((SOURCE, one.id), 0))
        sides = [sum(size for (side, _), size in sizes.items() if side == wanted) for wanted in (0, 1)]
        self._budget.spend(max(sides))

    def pairs(self, source: Reads, target: Reads, times: bool, most: int) -> RecordRows:
        self._estimate(source)
        return self._jobs.pairs(source, target, times, most)

    def find_on_source(self, partitions: Reads, wanted: Sequence[SoughtRecord]) -> Mapping[SoughtRecord, int]:
        """Leaves out partitions that are larger than what may be read at once."""
        chosen = [one for one in partitions if _offsets(one) <= self._budget.largest(one.topic)]
        ids = {one.id for one in chosen}
        self._estimate(chosen)
        return self._jobs.find_on_source(chosen, [one for one in wanted if one.id in ids]) if chosen else {}

    def last_values(self, source: Reads, target: Reads, most: int) -> tuple[Sequence[KeySums], Sequence[KeyRow]]:
        """Leaves out partitions whose older part on the target is larger than what may be read at once."""
        chosen = [
            (one, other)
            for one, other in zip(source, target, strict=True)
            if other.bounds[0] == other.bounds[1] or _offsets(other) <= self._budget.largest(one.topic)
        ]
        self._budget.spend(
            sum(self._budget.size(one.topic, max(_offsets(one), _offsets(other))) for one, other in chosen)
        )
        return self._jobs.last_values([one for one, _ in chosen], [other for _, other in chosen], most)

    def _estimate(self, source: Reads) -> None:
        self._budget.spend(sum(self._budget.size(one.topic, _offsets(one)) for one in source))


def _offsets(one: PartitionRead) -> int:
    return one.bounds[-1] - one.bounds[0]
