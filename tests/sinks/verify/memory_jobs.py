"""`RecordJobs` over lists, with the sums that Spark makes, by another digest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar

from streaming.verify.rows import (
    SOURCE,
    TARGET,
    ContentRow,
    Digest,
    DigestRow,
    Fields,
    KeyRow,
    KeySums,
    LastRecord,
    PairSums,
    PartitionRead,
    RecordRows,
    RunRow,
    SoughtRecord,
    Surplus,
)
from tests.sinks.verify.mirrored_log import Record

Row = TypeVar("Row")

Reads = Sequence[PartitionRead]

SIZE = 64
"""Bytes that a record counts."""


def mixed_up(*values: object) -> int:
    """A digest of 64 bits; Python's own of tuples is too regular for sums."""
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest(), "big", signed=True)


def halves(digest: int) -> tuple[int, int]:
    return digest >> 32, digest & 0xFFFFFFFF


def content(record: Record) -> int:
    return mixed_up(record.key, record.value, record.headers)


def digest(records: Sequence[Record], base: int) -> Digest:
    sums = [0] * 7
    for record in records:
        one = content(record)
        digests = (one, mixed_up(one, record.ms), mixed_up(one, record.offset - base))
        for at, half in enumerate(half for found in digests for half in halves(found)):
            sums[at] += half
        sums[6] ^= mixed_up(2, one)
    times = [record.ms for record in records]
    appended = sum(record.appended for record in records)
    return Digest(
        len(records), sums[0], sums[1], sums[6], *sums[2:6], appended, min(times), max(times), SIZE * len(records)
    )


@dataclass
class MemoryJobs:
    """Records of both sides by topic."""

    source: Mapping[str, Sequence[Record]]
    target: Mapping[str, Sequence[Record]]

    def _cells(self, side: int, reads: Reads) -> Iterator[tuple[PartitionRead, int, list[Record]]]:
        logs = self.source if side == SOURCE else self.target
        for read in reads:
            for cell, (start, end) in enumerate(zip(read.bounds, read.bounds[1:], strict=False)):
                found = [one for one in logs.get(read.topic, ()) if start <= one.offset < end]
                if found:
                    yield read, cell, found

    def digests(self, source: Reads, target: Reads) -> Iterator[DigestRow]:
        for side, reads in ((SOURCE, source), (TARGET, target)):
            for read, cell, records in self._cells(side, reads):
                yield DigestRow(read.id, cell, side, digest(records, read.bounds[cell]))

    def pairs(self, source: Reads, target: Reads, times: bool, most: int) -> RecordRows:
        cells: dict[tuple[int, int], dict[Record, tuple[list[int], list[int]]]] = defaultdict(dict)
        for side, reads in ((SOURCE, source), (TARGET, target)):
            for read, cell, records in self._cells(side, reads):
                if cell % 2 == 0:
                    for one in records:
                        cells[read.id, cell].setdefault(one.without_place(times), ([], []))[side].append(one.offset)
        appended = {
            (read.id, cell, one.without_place(times))
            for read, cell, records in self._cells(TARGET, target)
            for one in records
            if one.appended
        }
        rows = RecordRows([], [], [], [])
        for (number, cell), contents in cells.items():
            pairs = []
            for one, (ours, theirs) in contents.items():
                if len(ours) == len(theirs):
                    pairs += list(zip(ours, theirs, strict=True))
                else:
                    late = (number, cell, one) in appended
                    rows.contents.append(
                        ContentRow(number, cell, ours, theirs, Fields(*fields(one), one.ms if times else None), late)
                    )
            pairs.sort()
            rows.runs.extend(RunRow(number, cell, upstream, downstream, 1) for upstream, downstream in pairs)
            descents = sum(one[1] > other[1] for one, other in pairwise(pairs))
            ends = (*pairs[0], *pairs[-1]) if pairs else ()
            rows.sums.append(PairSums(number, cell, len(pairs), descents, 0, *ends))
        return self._cut_off(rows, most)

    def _cut_off(self, rows: RecordRows, most: int) -> RecordRows:
        contents = first_of_each(
            rows.contents, lambda row: (row.id, row.cell, bool(row.upstreams)), lambda row: first(row), most
        )
        runs = first_of_each(rows.runs, lambda row: (row.id, row.cell), lambda row: row.upstream, most)
        sums: dict[tuple[int, int], Surplus] = {}
        if len(contents) == most:
            for one in rows.contents:
                more = len(one.upstreams) - len(one.downstreams)
                known = sums.get((one.id, one.cell), Surplus(one.id, one.cell, 0, 0, 0))
                sums[one.id, one.cell] = Surplus(
                    one.id, one.cell, known.source + max(0, more), known.target + max(0, -more), known.contents + 1
                )
        return RecordRows(rows.sums, list(sums.values()), contents, runs)

    def find_on_source(self, partitions: Reads, wanted: Sequence[SoughtRecord]) -> dict[SoughtRecord, int]:
        found: dict[SoughtRecord, int] = {}
        for read, _, records in self._cells(SOURCE, partitions):
            for record in reversed(records):
                for ms in (record.ms, None):
                    found[SoughtRecord(read.id, Fields(*fields(record), ms))] = record.offset
        return {one: found[one] for one in wanted if one in found}

    def last_values(self, source: Reads, target: Reads, most: int) -> tuple[list[KeySums], list[KeyRow]]:
        lasts: dict[tuple[int, bytes | None], list[LastRecord | None]] = {}
        keys: dict[int, list[KeyRow]] = defaultdict(list)
        for side, reads in ((SOURCE, source), (TARGET, target)):
            for read, cell, records in self._cells(side, reads):
                for one in records:
                    known = lasts.setdefault((read.id, one.key), [None, None])
                    if side == SOURCE or cell == 1 or (known[SOURCE] or LIVE).tombstone:
                        known[side] = last_record(one)
        for (number, _), (ours, theirs) in lasts.items():
            if ours or theirs:
                keys[number].append(KeyRow(number, ours, theirs))
        odd = [row for rows in keys.values() for row in rows if not agrees(row)]
        brought = first_of_each(odd, lambda row: row.id, lambda row: (row.source or row.target or NOTHING).offset, most)
        return [key_sums(number, rows) for number, rows in keys.items()], brought


NOTHING = LastRecord(0, 0, 0, 0, tombstone=True)
LIVE = NOTHING._replace(tombstone=False)


def last_record(one: Record) -> LastRecord:
    _, value, headers = fields(one)
    return LastRecord(one.offset, value, headers, one.ms, one.value is None)


def agrees(row: KeyRow) -> bool:
    ours, theirs = row.source or NOTHING, row.target or NOTHING
    return (ours.tombstone and theirs.tombstone) or ours[1:] == theirs[1:]


def key_sums(number: int, rows: Sequence[KeyRow]) -> KeySums:
    both = [row.source.offset for row in rows if row.source and row.target and agrees(row)]
    times = [row.source.ms for row in rows if row.source]
    odd = sum(not agrees(row) for row in rows)
    gone = [row.source.offset for row in rows if row.source and row.source.tombstone and not row.target]
    most = (max(both, default=None), 0, max(times, default=None), min(gone, default=None))
    return KeySums(number, len(rows), odd, *most)


def first(row: ContentRow) -> int:
    return (row.upstreams or row.downstreams)[0]


def first_of_each(rows: Sequence[Row], of: Callable[[Row], Any], by: Callable[[Row], int], most: int) -> list[Row]:
    """As `record_pairs.first_of_each`."""
    ranks: Counter[Any] = Counter()
    ranked = []
    for row in sorted(rows, key=by):
        ranks[of(row)] += 1
        ranked.append((ranks[of(row)], row))
    return [row for _, row in sorted(ranked, key=lambda one: one[0])[:most]]


def fields(record: Record) -> tuple[int, int, int]:
    key, value = record.key, record.value
    return 0 if key is None else mixed_up(key), 0 if value is None else mixed_up(value), mixed_up(record.headers)
