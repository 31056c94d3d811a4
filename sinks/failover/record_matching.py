"""Counts a partition's records that are not on the target yet: finds the target's last record on the source.

MM2 keeps a partition's order. So the records behind the target's last record were not copied. Records are compared by
timestamp, key and value. With `LogAppendTime` on the target they are compared without the timestamp. Transaction
markers do not count.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, RecordReader, Span, Stamp, Why
from streaming.mm2.records import TopicPartition

# Reads stretches of partitions, and passes each record to a function.


class ReadLimits(NamedTuple):
    """Limits of a reading. `most`: records of each partition. `seconds`: time for all partitions together."""

    most: int
    seconds: float


def read_records(
    reader: RecordReader,
    spans: Mapping[TopicPartition, tuple[int, int | None]],
    limits: ReadLimits,
    take: Callable[[TopicPartition, Record], object],
) -> dict[TopicPartition, Ending]:
    """Calls `take` for each record of the stretches [start, stop), and returns how reading each one ended. Without a
    stop, it ends with the log. Raises ClusterUnreachable."""

    def taker(where: TopicPartition) -> Callable[[Record], bool]:
        def taken(record: Record) -> bool:
            take(where, record)
            return False

        return taken

    wanted = [Span(where, start, stop, limits.most, taker(where)) for where, (start, stop) in spans.items()]
    endings = reader.scan(wanted, limits.seconds) if wanted else {}
    return {span.where: ending for span, ending in endings.items()}


TAIL_RECORDS = 16
"""How many records at the end of a log are compared. One is not enough, because neighbours may be equal."""


class Fingerprint(NamedTuple):
    """What is compared of a record. `timestamp`: ms. `appended`: the broker set it. `digest`: of key and value."""

    offset: int
    timestamp: int
    appended: bool
    digest: bytes


def fingerprint_of(record: Record) -> Fingerprint:
    hashed = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value):
        hashed.update(b"-" if part is None else len(part).to_bytes(8, "big") + part)
    return Fingerprint(record.offset, record.timestamp, record.stamp is Stamp.APPEND, hashed.digest())


def same(here: Fingerprint, there: Fingerprint) -> bool:
    """Whether `there` is the copy of `here`. A copy has its original's timestamp, unless the target sets its own."""
    timed = here.timestamp == there.timestamp or there.appended
    return timed and here.digest == there.digest


class Behind(NamedTuple):
    """The source's records behind the target's last record, which the target lacks."""

    records: int
    """Their number. Unless `exact`, an upper bound."""
    oldest: int | None
    """Timestamp (ms) of the first of them."""
    exact: bool
    since: int | None = None
    """Offset of the first of them on the source."""


def _rest(rest: Sequence[Fingerprint], *, exact: bool) -> Behind:
    first = rest[0] if rest else None
    return Behind(len(rest), first.timestamp if first else None, exact, first.offset if first else None)


def behind(
    source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, whole: bool = True, window: int = TAIL_RECORDS
) -> Behind | None:
    """Returns the source's records behind the target's last record. None if that record is not among `source`.

    `source`: the source's last records. `target`: the target's last records. If the last record occurs more than once,
    the place counts where most records before it match, too. Of equal places the first counts, so the result is never
    too small. `whole`: `source` has all records of the log. If not, returns None if earlier records may change the
    place, because fewer than `window` records match.
    """
    if not target:
        return _rest(source, exact=True)
    candidates = [(_alike(source[: at + 1], target), at) for at, one in enumerate(source) if same(one, target[-1])]
    if not candidates:
        return None
    most = max(alike for alike, _ in candidates)
    if not whole and not _is_decided(candidates, most, window):
        return None
    best = [at for alike, at in candidates if alike == most]
    rest = source[best[0] + 1 :]
    return _rest(rest, exact=len(best) == 1)


def _is_decided(candidates: Sequence[tuple[int, int]], most: int, window: int) -> bool:
    """Whether earlier records cannot change the result: one place matches `window` records, and all others differ
    before that."""
    return most >= window and sum(alike in (most, at + 1) for alike, at in candidates) == 1


def _alike(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> int:
    """Returns how many last records of both lists are the same."""
    pairs = zip(reversed(source), reversed(target), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: same(*pair), pairs))


def lacking(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> list[Fingerprint]:
    """Returns the source's records that the target lacks between two neighbours in `target`. `source`, `target`: the
    last records of both sides.

    Both neighbours must occur exactly once in `source`. Otherwise a record that MM2 resent could look like a gap.
    """
    here: dict[bytes, list[int]] = {}
    for at, one in enumerate(source):
        here.setdefault(one.digest, []).append(at)
    places = [[at for at in here.get(copy.digest, ()) if same(source[at], copy)] for copy in target]
    known = [found[0] if len(found) == 1 else None for found in places]
    lost: list[Fingerprint] = []
    for before, after in itertools.pairwise(known):
        between = source[before + 1 : after] if before is not None and after is not None and before < after else ()
        lost += [one for one in between if not any(same(one, copy) for copy in target)]
    return lost


def behind_at_most(source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, before: int) -> Behind:
    """Returns an upper bound of the records behind the target's last record, if the source no longer has that record.

    Counts the source's records behind the last one that both sides have. Without such a record, counts all of the
    source, with the `before` offsets that were not read. Timestamps are no help, because producers set them in any
    order. The target must keep the source's timestamps.
    """
    for one in reversed(target):
        if (at := next((at for at, here in enumerate(source) if same(here, one)), None)) is not None:
            return _rest(source[at + 1 :], exact=False)
    rest = _rest(source, exact=False)
    since = None if rest.since is None else rest.since - before
    return rest._replace(records=rest.records + before, since=since)


# Finds records that look missing, but that the target has already, because MM2 resent others behind them.


Pairs = Mapping[TopicPartition, TopicPartition]
"""Partitions of the source, each with its copy on the target."""


def without_resent(
    source: RecordReader, target: RecordReader, pairs: Pairs, found: Mapping[TopicPartition, Behind], limits: ReadLimits
) -> dict[TopicPartition, Behind]:
    """Returns `found` without records that the target has before resent ones.

    Searches copies with records as young as the first that seems to be missing. Copies must have the source's
    timestamps. Raises ClusterUnreachable, RightsMissing.
    """
    behind = {where: one for where, one in found.items() if one.records and one.oldest is not None}
    there = first_since(target, {pairs[where]: one.oldest or 0 for where, one in behind.items()})
    young = {where: one for where, one in behind.items() if pairs[where] in there}
    if not young:
        return dict(found)
    here = first_since(source, {where: one.oldest or 0 for where, one in young.items()})
    theirs, cut_there = read_fingerprints(target, {pairs[where]: there[pairs[where]] for where in young}, limits)
    starts = {where: min(here.get(where, one.since or 0), one.since or 0) for where, one in young.items()}
    ours, cut_here = read_fingerprints(source, starts, limits)
    compacted, counted = compacted_on_a_side(source, target, pairs, young), {}
    for where, one in young.items():
        if where in cut_here or pairs[where] in cut_there:
            counted[where] = one._replace(exact=False)
            continue
        exact = one.exact and where not in compacted
        again = still_missing(ours[where], theirs[pairs[where]], one.since or 0, exact=exact)
        # If none of them is there, MM2 resent nothing.
        counted[where] = again if again.records < one.records else one
    return {**found, **counted}


def compacted_on_a_side(
    source: RecordReader, target: RecordReader, pairs: Pairs, partitions: Collection[TopicPartition]
) -> set[TopicPartition]:
    """Returns partitions whose topic is compacted on the source or on the target."""
    topics = source.compacted({where.topic for where in partitions})
    copies = target.compacted({pairs[where].topic for where in partitions})
    return {where for where in partitions if where.topic in topics or pairs[where].topic in copies}


def still_missing(source: Sequence[Fingerprint], target: Iterable[Fingerprint], since: int, *, exact: bool) -> Behind:
    """Returns the source's records from offset `since` on that have no copy in `target`. Pure.

    A record that the source has more than once always counts as missing, because one copy may have been resent. The
    number is an upper bound then.
    """
    copies = {(one.timestamp, one.digest) for one in target}
    times = Counter((one.timestamp, one.digest) for one in source)
    left, exactly = list[Fingerprint](), exact
    for one in source:
        mark = (one.timestamp, one.digest)
        if one.offset >= since and (mark not in copies or times[mark] > 1):
            left.append(one)
            exactly = exactly and mark not in copies
    return _rest(left, exact=exactly)


def first_since(reader: RecordReader, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns each partition's first offset with at least this timestamp (ms). Partitions without one are left out."""
    seen = reader.offsets_for_times([PartitionTime(where, at) for where, at in times.items()]).items
    return {context.where: offset for context, offset in seen.items() if offset is not None}


def read_fingerprints(
    reader: RecordReader, starts: Mapping[TopicPartition, int], limits: ReadLimits
) -> tuple[dict[TopicPartition, list[Fingerprint]], set[TopicPartition]]:
    """Returns the records from `starts` to the ends of the logs, and partitions that were not read to their end.

    Raises ClusterUnreachable, RightsMissing.
    """
    found: dict[TopicPartition, list[Fingerprint]] = {where: [] for where in starts}
    ends = reader.ends(list(starts)).items
    spans = {where: (start, ends[where].end) for where, start in starts.items() if where in ends}
    endings = read_records(reader, spans, limits, lambda where, record: found[where].append(fingerprint_of(record)))
    whole = {where for where, ending in endings.items() if ending.why in (Why.END, Why.STOP)}
    return found, set(starts) - whole


# Counts records that came to copies since a position and were not there before. Resent records count once.
#
# Only the target is read. A resent record has the timestamp, key and value of an earlier copy. So the search covers
# records that are as young as the oldest new one. Markers of transactions do not count.


NEW_COPIES_LIMITS = ReadLimits(most=200_000, seconds=30.0)
"""Limits of each of the two readings, of new and of earlier records. Records beyond them count as absent."""


@dataclass
class _Came:
    """The new records of one copy, from offset `since` on: their hashes, their number, and who set their timestamps."""

    since: int
    contents: set[int] = field(default_factory=set)
    records: int = 0
    oldest: int | None = None
    stamps: set[Stamp] = field(default_factory=set)

    @property
    def appended(self) -> bool:
        return Stamp.APPEND in self.stamps

    def take(self, record: Record) -> None:
        self.stamps.add(record.stamp)
        self.oldest = record.timestamp if self.oldest is None else min(self.oldest, record.timestamp)
        self.records += 1
        self.contents.add(content_of(record, timed=not self.appended))

    def discard(self, record: Record) -> None:
        self.contents.discard(content_of(record, timed=not self.appended))


def content_of(record: Record, *, timed: bool) -> int:
    """Returns a hash that identifies a record. It covers the timestamp if `timed`: not if the target set it."""
    return hash((record.timestamp if timed else None, fingerprint_of(record).digest))


def new_copies(
    target: RecordReader,
    since: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, LogRange],
    limits: ReadLimits = NEW_COPIES_LIMITS,
) -> dict[TopicPartition, int]:
    """Returns a lower bound of the new records in each copy. `since`: the offset to count from. `logs`: the offset to
    count to, and the log start.

    Equal records count as one. Raises ClusterUnreachable, RightsMissing.
    """
    came = {where: _Came(max(start, logs[where].start)) for where, start in since.items() if start < logs[where].end}
    spans = {where: (one.since, logs[where].end) for where, one in came.items()}
    read_records(target, spans, limits, lambda where, record: came[where].take(record))
    came = {where: one for where, one in came.items() if one.records}
    starts = _starts(target, came, logs)
    earlier = {where: (start, came[where].since) for where, start in starts.items() if start < came[where].since}
    endings = read_records(target, earlier, limits, lambda where, record: came[where].discard(record))
    unsure = {where for where, ending in endings.items() if ending.why not in (Why.END, Why.STOP)}
    unsure |= {where for where, one in came.items() if where not in starts or len(one.stamps) > 1}
    # Retention may have removed them as well.
    unsure |= {where for where, start in starts.items() if 0 < logs[where].start >= start}
    # Compaction may have removed earlier copies of records that are not visible any more.
    again = {where for where, one in came.items() if one.records > len(one.contents)}
    compacted = target.compacted({where.topic for where in again})
    unsure |= {where for where in again if where.topic in compacted}
    return {where: len(one.contents) for where, one in came.items() if where not in unsure}


def _starts(
    target: RecordReader, came: Mapping[TopicPartition, _Came], logs: Mapping[TopicPartition, LogRange]
) -> dict[TopicPartition, int]:
    """Returns the offset from which on earlier copies of the new records may be found; leaves out unknown ones."""
    times = {where: one.oldest for where, one in came.items() if one.oldest is not None and not one.appended}
    return first_since(target, times) | {where: logs[where].start for where, one in came.items() if one.appended}
