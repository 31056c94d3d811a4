"""What the jobs of a comparison are asked for, and the rows that they bring to the driver. Plain values, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SOURCE, TARGET = 0, 1
"""Numbers of the two sides."""


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """The cells of one partition. Cell n has the offsets [`bounds[n]`, `bounds[n + 1]`) of its side. `id`: the same on
    both sides, unique in a read."""

    id: int
    topic: str
    partition: int
    bounds: Sequence[int]


class Digest(NamedTuple):
    """Sums over the records of one side. Only `distance_*` depends on the order.

    `content_*`: sums of a 64-bit digest of key, value and headers, in halves so that nothing overflows. `mixed`:
    another such digest, by exclusive or. `time_*`: of content and timestamp. `distance_*`: of content and the distance
    from the start of the window. `appended`: records with a timestamp by the broker (LogAppendTime). `first_ms`,
    `last_ms`: the least and the greatest timestamp; None without records. `size`: bytes of keys, values and headers.
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
        """The sums that say which records there are."""
        return self.records, self.content_high, self.content_low, self.mixed

    @property
    def times(self) -> tuple[int, int]:
        """The sums that say which timestamps they have."""
        return self.time_high, self.time_low

    @property
    def distances(self) -> tuple[int, int]:
        """The sums that say at which distances they are."""
        return self.distance_high, self.distance_low


class DigestRow(NamedTuple):
    """The digest of a cell on one side."""

    id: int
    cell: int
    side: int
    digest: Digest


class RunRow(NamedTuple):
    """Equal records at successive offsets of both sides."""

    id: int
    cell: int
    upstream: int
    downstream: int
    length: int


class Fields(NamedTuple):
    """Digests of a record's fields; `timestamp` in ms, None where it is left out."""

    key: int
    value: int
    headers: int
    timestamp: int | None


class ContentRow(NamedTuple):
    """A content whose counts differ between the sides: its offsets on each side, ascending. `appended`: whether the
    target's broker set a timestamp (LogAppendTime)."""

    id: int
    cell: int
    upstreams: Sequence[int]
    downstreams: Sequence[int]
    fields: Fields
    appended: bool = False


class SoughtRecord(NamedTuple):
    """A record to look for on the source."""

    id: int
    fields: Fields


class DifferingRecord(NamedTuple):
    """A record that differs: the partition's `id`, its offset, and what is wrong with it. `fields`: those that
    differ."""

    id: int
    offset: int
    difference: str
    fields: str


class Surplus(NamedTuple):
    """How many records of a cell have no equal on the other side, and how many contents they have."""

    id: int
    cell: int
    source: int
    target: int
    contents: int


class PairSums(NamedTuple):
    """Sums of a cell: how many records have an equal on the other side, and the greatest timestamp.

    In the source's order: how often the target's offset goes back, and its first and last offset (meaningless without
    any).
    """

    id: int
    cell: int
    records: int
    descents: int
    last_ms: int | None
    first_upstream: int = 0
    first_downstream: int = 0
    last_upstream: int = 0
    last_downstream: int = 0


@dataclass(frozen=True)
class RecordRows:
    """Paired records. `contents` and `runs` of a cell may be cut off after the first ones. Then `surplus` has the
    number of contents, and `sums` what all runs add up to, with their beginning and end."""

    sums: list[PairSums]
    surplus: list[Surplus]
    contents: list[ContentRow]
    runs: list[RunRow]


class KeySums(NamedTuple):
    """Sums of a partition: number of keys, number of keys that do not agree, and the greatest offsets and times that
    do.

    `appended`: records of the target whose timestamp the broker set. `last_ms`: the source's newest timestamp.
    `deletion`: the least offset of a tombstone of the source whose key is missing in what was read of the target.
    """

    id: int
    keys: int
    different: int
    agreed: int | None
    appended: int
    last_ms: int | None
    deletion: int | None = None


class LastRecord(NamedTuple):
    """The last record of a key on one side."""

    offset: int
    value: int
    headers: int
    ms: int
    tombstone: bool


class KeyRow(NamedTuple):
    """A key whose last records do not agree. `ours`, `theirs`: None if that side has no record of the key."""

    id: int
    source: LastRecord | None
    target: LastRecord | None
