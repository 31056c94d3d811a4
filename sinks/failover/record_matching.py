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

# Reads stretches of partitions, and hands on each record with its partition.


class ReadLimits(NamedTuple):
    """`most`: records to read of one partition. `seconds`: for all partitions together."""

    most: int
    seconds: float


def read_records(
    reader: RecordReader,
    spans: Mapping[TopicPartition, tuple[int, int | None]],
    limits: ReadLimits,
    take: Callable[[TopicPartition, Record], object],
) -> dict[TopicPartition, Ending]:
    """Returns how reading each stretch [start, stop) ended. Without a stop it ends with the log. Raises
    ClusterUnreachable."""

    def taker(where: TopicPartition) -> Callable[[Record], bool]:
        def taken(record: Record) -> bool:
            take(where, record)
            return False

        return taken

    wanted = [Span(where, start, stop, limits.most, taker(where)) for where, (start, stop) in spans.items()]
    endings = reader.scan(wanted, limits.seconds) if wanted else {}
    return {span.where: ending for span, ending in endings.items()}


TAIL_RECORDS = 16
"""Records at the end of a log that are compared. Several, because neighbours may be equal."""


class Fingerprint(NamedTuple):
    """The parts of a record that are compared. `timestamp` in ms."""

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
    """Records behind the target's last. `records`: their number, `exact` or an upper bound. The timestamp (ms) is that
    of the first of them; `since` is its offset on the source."""

    records: int
    oldest: int | None
    exact: bool
    since: int | None = None


def _rest(rest: Sequence[Fingerprint], *, exact: bool) -> Behind:
    first = rest[0] if rest else None
    return Behind(len(rest), first.timestamp if first else None, exact, first.offset if first else None)


def behind(source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, whole: bool = True) -> Behind | None:
    """Returns what lies behind the target's last record; None if that record is not among the source's.

    `source`: the source's records, to its end. `target`: the last records on the target. The last record may occur more
    than once. Then the place counts where most of the records before it match as well. Of equal places the first
    counts, so that the result is never too small. Not `whole`: the source has earlier records. Returns None also where
    those may decide.
    """
    if not target:
        return _rest(source, exact=True)
    candidates = [(_alike(source[: at + 1], target), at) for at, one in enumerate(source) if same(one, target[-1])]
    if not candidates:
        return None
    most = max(alike for alike, _ in candidates)
    if not whole and not _is_decided(candidates, most):
        return None
    best = [at for alike, at in candidates if alike == most]
    rest = source[best[0] + 1 :]
    return _rest(rest, exact=len(best) == 1)


def _is_decided(candidates: Sequence[tuple[int, int]], most: int) -> bool:
    """Whether earlier records cannot change the result: one place matches a whole window, and all others differ within
    the records at hand."""
    return most >= TAIL_RECORDS and sum(alike in (most, at + 1) for alike, at in candidates) == 1


def _alike(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> int:
    """Returns how many records at the ends of both are the same."""
    pairs = zip(reversed(source), reversed(target), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: same(*pair), pairs))


def lacking(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> list[Fingerprint]:
    """Returns records that the target lost between two neighbours of its last records. `source`, `target`: the last
    records of both.

    The neighbours must occur once among the source's: MM2 sends records again after a restart, and equal records stand
    for each other.
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
    """Returns what can lie behind the target's last record, which the source lost. An upper bound.

    Timestamps say nothing of it: producers set them, and their order is not that of the log. What lies behind the
    newest record that both have is counted. Without such a record all of the source is, the `before` offsets that were
    not read as well. The target's timestamps must be the source's.
    """
    for one in reversed(target):
        if (at := next((at for at, here in enumerate(source) if same(here, one)), None)) is not None:
            return _rest(source[at + 1 :], exact=False)
    rest = _rest(source, exact=False)
    since = None if rest.since is None else rest.since - before
    return rest._replace(records=rest.records + before, since=since)


# Finds records that MM2 resent after a restart: they look missing, but the target has them already.


Pairs = Mapping[TopicPartition, TopicPartition]
"""Partitions of the source with their copies."""


def without_resent(
    source: RecordReader, target: RecordReader, pairs: Pairs, found: Mapping[TopicPartition, Behind], limits: ReadLimits
) -> dict[TopicPartition, Behind]:
    """Counts again where the target has records as young as the first one that seems to be missing.

    The copies must have the source's timestamps. Raises ClusterUnreachable, RightsMissing.
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
    """Returns the source's records from offset `since` on without a copy. Pure.

    A record that the source has more than once counts as missing: one of its copies that was resent stands for no other
    one. Then the number is an upper bound.
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
    """Returns the first offset that is not older than the time. Partitions without one are left out."""
    seen = reader.offsets_for_times([PartitionTime(where, at) for where, at in times.items()]).items
    return {context.where: offset for context, offset in seen.items() if offset is not None}


def read_fingerprints(
    reader: RecordReader, starts: Mapping[TopicPartition, int], limits: ReadLimits
) -> tuple[dict[TopicPartition, list[Fingerprint]], set[TopicPartition]]:
    """Returns the records from there to the log's end, and partitions that were not read to their end.

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
# Reads the target alone. A resent record has the timestamp, key and value of an earlier copy. So the search covers
# records that are as young as the oldest new one. Markers of transactions do not count.


NEW_COPIES_LIMITS = ReadLimits(most=200_000, seconds=30.0)
"""For each of the two readings. Records beyond these limits count as absent."""


@dataclass
class _Came:
    """Records of one partition since `since`: contents, number, and which side set their timestamps."""

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
    """Returns a hash that identifies a record. Not `timed`: without the timestamp, because the target set it."""
    return hash((record.timestamp if timed else None, fingerprint_of(record).digest))


def new_copies(
    target: RecordReader,
    since: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, LogRange],
    limits: ReadLimits = NEW_COPIES_LIMITS,
) -> dict[TopicPartition, int]:
    """Counts by partition on the target, never too many. `since`: offsets of the positions; `logs`: where counting
    ends.

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
    """Returns where earlier copies of new records can begin. Partitions where this is unknown are left out."""
    times = {where: one.oldest for where, one in came.items() if one.oldest is not None and not one.appended}
    return first_since(target, times) | {where: logs[where].start for where, one in came.items() if one.appended}
