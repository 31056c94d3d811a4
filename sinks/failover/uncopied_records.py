"""Finds records that are not on the target yet, by the last records of a partition on both sides. Writes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from sinks.failover.cut_reader import AsItWas
from sinks.failover.record_matching import (
    TAIL_RECORDS,
    Behind,
    Fingerprint,
    Pairs,
    ReadLimits,
    behind,
    behind_at_most,
    compacted_on_a_side,
    fingerprint_of,
    first_since,
    lacking,
    read_records,
    without_resent,
)
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader, Why
from sinks.ledger.kept_divergences import divergences, takeover_ends
from sinks.ledger.kept_end_offsets import UNSEEN_END, KnownPosition
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition

ARRIVAL_LIMITS = ReadLimits(most=200_000, seconds=60.0)
"""How far the source is read to search the target's last record. Beyond, unread offsets count as records."""

CLOCKS_DIFFER_MS = 10_000
"""Largest difference between the clocks of two clusters, in ms, that is tolerated."""

LONG_TAIL_RECORDS = 2_000
"""Records at the end of a copy that are compared if the source may hold the same records twice."""

WIDER = 8
"""Factor by which the stretch of offsets that is read grows if it held too few records."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """How many records of one source partition have not arrived on the target."""

    where: TopicPartition
    behind: Behind | None = None
    """The records that have not arrived."""
    problem: str | None = None
    """Why `behind` is unknown."""
    positioned: bool = True
    """Whether it is known how far the partition was copied. If not, `behind` counts all offsets of its log."""

    @property
    def arrived(self) -> bool:
        """Whether the target certainly has the source's last record."""
        return self.behind is not None and self.behind.records == 0 and self.behind.exact


def pairs_of(
    remote: Mapping[str, str], source: Mapping[str, int], topics: Iterable[str]
) -> dict[TopicPartition, TopicPartition]:
    """Returns the partitions of these source topics with their copies. `remote`: target names. `source`: counts."""
    return {
        TopicPartition(topic, number): TopicPartition(remote[topic], number)
        for topic in topics
        for number in range(source.get(topic, 0))
    }


def unlisted(source: Mapping[str, int], topics: Iterable[str]) -> dict[TopicPartition, Arrival]:
    """Returns a problem for each topic that the source lists no partition of. `source`: its partition counts."""
    return {
        where: Arrival(where, problem="the source lists no partition of this topic")
        for topic in topics
        if not source.get(topic)
        for where in [TopicPartition(topic, 0)]
    }


def sharing(shared: Mapping[str, str], source: Mapping[str, int]) -> dict[TopicPartition, Arrival]:
    """Returns a problem for each partition of source topics that share one name on the target.

    `shared`: that name, by topic. `source`: partition counts.
    """
    return {
        where: Arrival(where, problem=f"another topic of the source has the same name on the target, {name}")
        for topic, name in shared.items()
        for where in [TopicPartition(topic, number) for number in range(source.get(topic) or 1)]
    }


def arrivals(source: RecordReader, target: RecordReader, pairs: Pairs) -> dict[TopicPartition, Arrival]:
    """Returns, for each source partition, how many records the target lacks. Reads the target first, so a record that
    MM2 copies meanwhile counts as missing.

    `source` reads with MM2's isolation level. Raises ClusterUnreachable, RightsMissing.
    """
    there = _tails(target, pairs.values())
    here = _tails(source, pairs)
    # Of an empty log nothing is missing, whether its copy exists or not.
    empty = {where for where, log in here.logs.items() if log.start == log.end and where not in here.problems}
    pairs = {where: copy for where, copy in pairs.items() if where not in empty}
    found: dict[TopicPartition, Arrival] = {}
    deep: list[TopicPartition] = []
    for where, copy in pairs.items():
        if problem := here.problems.get(where) or there.problems.get(copy):
            found[where] = Arrival(where, problem=problem)
            continue
        tail, whole = there.tails[copy], where in here.whole
        known = behind(here.tails[where], tail, whole=whole) if tail else None
        if known is not None and known.exact:
            found[where] = Arrival(where, known)
        elif not here.tails[where]:
            found[where] = Arrival(where, ALL_THERE)
        else:
            deep.append(where)
    # Only these rest on a part of the source's log.
    partly = {
        where: there.tails[copy] for where, copy in pairs.items() if where not in here.whole and copy in there.tails
    }
    doubted = _may_stand_earlier(source, found, partly, here.tails)
    certain, longer = _by_more_records(source, target, {where: pairs[where] for where in doubted})
    found |= {where: Arrival(where, one) for where, one in certain.items()}
    tails = {where: longer.get(where, there.tails[pairs[where]]) for where in [*deep, *longer]}
    found |= _searched(source, tails, here.logs, recent=longer)
    deep += longer
    for where in deep:
        # The target's retention took all that it had.
        if (known := found[where].behind) and not there.tails[pairs[where]] and there.logs[pairs[where]].end:
            found[where] = Arrival(where, known._replace(exact=not known.records))
    found = _recounted(source, target, pairs, found, here.tails, there.tails)
    found |= {where: Arrival(where, ALL_THERE) for where in empty}
    return {where: _with_hidden(one, here.hidden.get(where)) for where, one in found.items()}


def _recounted(
    source: RecordReader,
    target: RecordReader,
    pairs: Pairs,
    found: Mapping[TopicPartition, Arrival],
    here: Mapping[TopicPartition, list[Fingerprint]],
    there: Mapping[TopicPartition, list[Fingerprint]],
) -> dict[TopicPartition, Arrival]:
    """Returns the arrivals without records that MM2 resent, and with records that the target lacks between its last
    ones. `here`, `there`: last records on source and target."""
    counted = {
        where: one.behind for where, one in found.items() if one.behind and not _is_appended(there[pairs[where]])
    }
    counted = without_resent(source, target, pairs, counted, ARRIVAL_LIMITS)
    again = {where: replace(one, behind=counted.get(where, one.behind)) for where, one in found.items()}
    exact = {where: one.behind for where, one in again.items() if one.behind and one.behind.exact}
    holes = {where: lost for where in exact if (lost := lacking(here[where], there[pairs[where]]))}
    # Cleaners make holes as well.
    for where in holes.keys() - (compacted_on_a_side(source, target, pairs, holes) if holes else ()):
        records, first = exact[where].records + len(holes[where]), holes[where][0]
        known = Behind(records, first.timestamp, exact=False, since=first.offset)
        again[where] = replace(again[where], behind=known)
    return again


def _may_stand_earlier(
    source: RecordReader,
    found: Mapping[TopicPartition, Arrival],
    targets: Mapping[TopicPartition, list[Fingerprint]],
    tails: Mapping[TopicPartition, list[Fingerprint]],
) -> list[TopicPartition]:
    """Returns partitions whose source may hold the target's last records a second time, before the tail that was read.

    A producer that resends a batch appends the same records with the same timestamps. The broker's time index tells
    whether the log has such timestamps before the tail. If the target sets the timestamps, a source record that is
    younger than its supposed copy cannot be its original. `targets`, `tails`: last records on target and source.
    """
    counted = {where: one.behind for where, one in found.items() if one.behind and targets.get(where) and tails[where]}
    appended = {where for where in counted if _is_appended(targets[where])}
    first = _first_as_old(source, {where: targets[where] for where in counted})
    doubted = [where for where, offset in first.items() if offset < tails[where][0].offset]
    for where in appended:
        original = tails[where][len(tails[where]) - counted[where].records - 1]
        if original.timestamp > targets[where][-1].timestamp + CLOCKS_DIFFER_MS:
            doubted.append(where)
    return doubted


def _by_more_records(
    source: RecordReader, target: RecordReader, pairs: Pairs
) -> tuple[dict[TopicPartition, Behind], dict[TopicPartition, list[Fingerprint]]]:
    """Compares up to LONG_TAIL_RECORDS at the ends of both logs. Returns the counts that are certain by now. For the
    other partitions, returns the target's last records.

    Producers with timestamps of events, which are in no order, make many a partition doubtful.
    """
    there, here = _tails(target, pairs.values(), LONG_TAIL_RECORDS), _tails(source, pairs, LONG_TAIL_RECORDS)
    certain, left = dict[TopicPartition, Behind](), dict[TopicPartition, list[Fingerprint]]()
    for where, copy in pairs.items():
        tail, records = there.tails.get(copy, []), here.tails.get(where, [])
        # MM2 may have resent some of them, so not all must match.
        window = min(len(tail), LONG_TAIL_RECORDS // 2)
        known = behind(records, tail, whole=where in here.whole, window=window)
        if known is not None and known.exact:
            certain[where] = known
        else:
            left[where] = tail
    return certain, left


def _with_hidden(one: Arrival, hidden: range | None) -> Arrival:
    """Returns the arrival with the `hidden` offsets counted as missing. They lie behind an open transaction, and a
    reader of committed records does not get them. Any of them may be a record that commits."""
    if hidden is None or one.behind is None:
        return one
    known = one.behind
    since = hidden.start if known.since is None else known.since
    return replace(one, behind=known._replace(records=known.records + len(hidden), exact=False, since=since))


def _searched(
    source: RecordReader,
    targets: Mapping[TopicPartition, list[Fingerprint]],
    logs: Mapping[TopicPartition, LogRange],
    recent: Collection[TopicPartition],
) -> dict[TopicPartition, Arrival]:
    """Returns how many records the target lacks. Reads the source from where the target's last records begin. `recent`:
    partitions whose newest records hold them for certain, so no more than ARRIVAL_LIMITS are read."""
    if not targets:
        return {}
    starts = _starts(source, targets, logs)
    late = {where: logs[where].end - ARRIVAL_LIMITS.most + 1 for where in recent}
    cut = {where: start for where, start in late.items() if start > starts[where]}
    starts |= cut
    read = _read(source, {where: (starts[where], logs[where].end) for where in targets})
    return {
        where: _compared(where, *read[where][:2], tail, starts[where], logs[where], cut=where in cut)
        for where, tail in targets.items()
    }


def _starts(
    source: RecordReader, targets: Mapping[TopicPartition, list[Fingerprint]], logs: Mapping[TopicPartition, LogRange]
) -> dict[TopicPartition, int]:
    """Returns the source offsets to read from, by the oldest timestamp of the target's last records. If the target sets
    timestamps itself, reading starts ARRIVAL_LIMITS before the end."""
    appended = {where for where, tail in targets.items() if _is_appended(tail)}
    starts = {where: logs[where].start for where in targets}
    starts |= {where: max(starts[where], logs[where].end - ARRIVAL_LIMITS.most) for where in appended}
    return starts | _first_as_old(source, targets)


def _first_as_old(
    source: RecordReader, targets: Mapping[TopicPartition, list[Fingerprint]]
) -> dict[TopicPartition, int]:
    """Returns the first source offset that is not older than the oldest of the target's last records. Leaves out
    partitions without such an offset, and those where the target sets the timestamps."""
    times = {
        where: min(one.timestamp for one in tail) for where, tail in targets.items() if tail and not _is_appended(tail)
    }
    return first_since(source, times)


def _is_appended(tail: Iterable[Fingerprint]) -> bool:
    return any(one.appended for one in tail)


def _compared(
    where: TopicPartition,
    records: list[Fingerprint],
    why: Why,
    tail: list[Fingerprint],
    start: int,
    log: LogRange,
    *,
    cut: bool,
) -> Arrival:
    """`cut`: earlier records than those from `start` on may match as well."""
    if why in (Why.TIME, Why.FAULT):
        return Arrival(where, problem=f"its records could not be read to the end ({why.value})")
    partly = (cut or _is_appended(tail)) and start > log.start
    known = behind(records, tail, whole=not partly)
    if known is not None and why is Why.MOST:
        # Offsets that were not read count as records.
        unread = log.end - records[-1].offset - 1
        return Arrival(where, known._replace(records=known.records + unread, exact=False))
    if known is None and (cut or _is_appended(tail) or why is Why.MOST):
        return Arrival(where, problem="the last record on the target was not found among those that were read")
    known = known or behind_at_most(records, tail, before=start - log.start)
    if known.exact or known.records:
        return Arrival(where, known)
    return Arrival(where, problem="the source has neither the last record of the target nor any later one")


@dataclass(frozen=True)
class _Tails:
    """The last records of partitions on one cluster."""

    tails: Mapping[TopicPartition, list[Fingerprint]]
    logs: Mapping[TopicPartition, LogRange]
    problems: Mapping[TopicPartition, str]
    """Why the last records of a partition could not be read."""
    whole: Collection[TopicPartition]
    """Partitions with so few records that `tails` has all."""
    hidden: Mapping[TopicPartition, range]
    """Offsets from the last stable offset on, which a reader of committed records does not get."""


def _tails(reader: RecordReader, partitions: Collection[TopicPartition], most: int = TAIL_RECORDS) -> _Tails:
    """Reads the last records of each partition, at most `most`."""
    seen = reader.ends(partitions)
    logs, tails = seen.items, dict[TopicPartition, list[Fingerprint]]()
    problems = {where: f"on {reader.alias}: {fault}" for where, fault in seen.errors.items()}
    width, left, whole, hidden = most, set(logs), set[TopicPartition](), dict[TopicPartition, range]()
    while left:
        spans = {where: (max(logs[where].start, logs[where].end - width), logs[where].end) for where in left}
        for where, (records, why, position) in _read(reader, spans, most).items():
            if why is Why.END and position < logs[where].end:
                hidden[where] = range(position, logs[where].end)
            if why in (Why.TIME, Why.FAULT):
                problems[where] = f"on {reader.alias}: its last records could not be read ({why.value})"
            elif spans[where][0] > logs[where].start:
                if len(records) < most:
                    continue
            elif len(records) < most or spans[where][1] - spans[where][0] == len(records):
                whole.add(where)
            tails[where] = records
            left.discard(where)
        width *= WIDER
    return _Tails(tails, logs, problems, whole, hidden)


def _read(
    reader: RecordReader, spans: Mapping[TopicPartition, tuple[int, int]], most: int | None = None
) -> dict[TopicPartition, tuple[list[Fingerprint], Why, int]]:
    """Returns the last `most` records of each stretch [start, stop), why reading ended, and at which offset."""
    found: dict[TopicPartition, deque[Fingerprint]] = {where: deque(maxlen=most) for where in spans}
    endings = read_records(
        reader, spans, ARRIVAL_LIMITS, lambda where, record: found[where].append(fingerprint_of(record))
    )
    return {where: (list(found[where]), ending.why, ending.position) for where, ending in endings.items()}


def with_seen_ends(
    found: Mapping[TopicPartition, Arrival],
    ends: Mapping[TopicPartition, int],
    seen: Mapping[TopicPartition, int],
) -> dict[TopicPartition, Arrival]:
    """Returns the arrivals with offsets counted as missing that a job saw, but that lie behind the source's end now.

    `ends`: the source's ends now. `seen`: the highest ends that a job saw. A leader that is cut off from its controller
    reports an old end, or a log lost its tail. Either way the target may lack records that the job saw.
    """
    return {
        where: one
        if one.behind is None or (short := seen.get(where, 0) - ends.get(where, 0)) <= 0 or where not in ends
        else replace(one, behind=one.behind._replace(records=one.behind.records + short, exact=False))
        for where, one in found.items()
    }


AGE_LIMITS = ReadLimits(most=1, seconds=5.0)


def with_ages(
    found: Mapping[TopicPartition, Arrival], open_uncommitted: Callable[[], RecordReader]
) -> Mapping[TopicPartition, Arrival]:
    """Returns the arrivals with the age of the first record behind an open transaction. Raises ClusterUnreachable."""
    ageless = {
        where: one.behind
        for where, one in found.items()
        if one.behind and one.behind.records and one.behind.oldest is None and one.behind.since is not None
    }
    if not ageless:
        return found
    first: dict[TopicPartition, int] = {}
    spans = {where: (one.since or 0, None) for where, one in ageless.items()}
    with closing(open_uncommitted()) as uncommitted:
        read_records(uncommitted, spans, AGE_LIMITS, lambda where, record: first.update({where: record.timestamp}))
    aged = {where: replace(found[where], behind=ageless[where]._replace(oldest=at)) for where, at in first.items()}
    return {**found, **aged}


ALL_THERE = Behind(0, None, True)


@dataclass(frozen=True)
class ArrivalsSeen:
    """The arrivals by source partition, and the logs of both sides as they were before any record was read."""

    arrivals: Mapping[TopicPartition, Arrival]
    source: Mapping[TopicPartition, LogRange]
    target: Mapping[TopicPartition, LogRange]
    """Logs by partition of the target."""
    read: int
    """Number of partitions whose records were read."""
    positions: Mapping[TopicPartition, KnownPosition]
    """How far source partitions were copied, if the count is exact."""


class ArrivalMemory:
    """Remembers which partitions of one flow had arrived. Those whose logs did not change since are not read again."""

    def __init__(self) -> None:
        self._arrived: dict[TopicPartition, tuple[object, ...]] = {}

    def observe(
        self, source: RecordReader, target: RecordReader, pairs: Pairs, ids: Mapping[str, tuple[str, str]]
    ) -> ArrivalsSeen:
        """Returns the arrivals of all `pairs`, and reads only partitions that changed. `ids`: topic ids on the source
        and the target, by source topic. A new id means a new log.

        Raises ClusterUnreachable, RightsMissing.
        """
        there, here = target.ends(list(pairs.values())).items, source.ends(list(pairs)).items
        # Before open transactions: their records may still commit or abort.
        readable = source.readable(list(pairs)).items
        logs = {
            where: (copy, here[where], there[copy], ids.get(where.topic))
            for where, copy in pairs.items()
            if where in here and copy in there
        }
        moved = {
            where: copy for where, copy in pairs.items() if where not in logs or self._arrived.get(where) != logs[where]
        }
        cuts = [{where: log.end for where, log in logs.items()} for logs in (readable, there)]
        read = arrivals(AsItWas(source, cuts[0]), AsItWas(target, cuts[1]), moved) if moved else {}
        found = {where: Arrival(where, ALL_THERE) for where in pairs} | read
        self._arrived = {where: logs[where] for where, one in found.items() if one.arrived and where in logs}
        waiting = {where.topic for where, one in found.items() if one.behind is not None and one.behind.records}
        # MM2 may have read records that compaction removed since. It may still copy them.
        compacted = source.compacted(waiting) if waiting else set()
        positions = {
            where: KnownPosition(readable[where].end, there[copy].end, behind.records)
            for where, copy in pairs.items()
            if where in readable and copy in there and (behind := found[where].behind) is not None
            # Other counts may be too small: retention may have deleted the last copied record on the source.
            if behind.exact and (not behind.records or where.topic not in compacted)
        }
        hidden = {
            where: range(readable[where].end, log.end)
            for where, log in here.items()
            if where in readable and readable[where].end < log.end
        }
        shown = {where: _with_hidden(one, hidden.get(where)) for where, one in found.items()}
        return ArrivalsSeen(shown, here, there, len(moved), positions)


# The target as it was when it took over.


def as_at_takeover(ledger: Ledger, target: RecordReader) -> AsItWas:
    """Returns a reader of the target that hides records written after the takeover. Raises LockstepError."""
    return AsItWas(target, takeover_ends(divergences(ledger)))


def arrivals_at_takeover(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, Arrival]:
    """Returns the same as `arrivals`, but compares a copy with a recorded divergence as it was at that takeover.

    MM2 may have copied a record since. If the copy is certainly complete now, it counts as complete.
    Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    taken, same = takeover_ends(divergences(ledger)), still_drained(ledger, source, target, pairs)
    others = {where: copy for where, copy in pairs.items() if where not in same}
    found = arrivals(source, AsItWas(target, taken), others)
    later = {where: copy for where, copy in others.items() if copy in taken and not found[where].arrived}
    now = arrivals(source, target, later) if later else {}
    arrived = {where: Arrival(where, ALL_THERE) for where in same}
    return arrived | found | {where: one for where, one in now.items() if one.arrived}


def still_drained(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, int]:
    """Returns source partitions that were drained without a loss and have not grown since, with their copies' ends at
    the drain.

    Only the last record is compared again, because the copy's retention goes on. If it differs, a log was recreated or
    lost its tail. In a compacted topic only a record right before the end is compared, because clients that moved
    overwrite keys of the copy.
    Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    known, drained = divergences(ledger), dict[TopicPartition, tuple[int, int]]()
    for where in pairs:
        one, number = known.get(where.topic), where.partition
        if one is not None and one.exact and number < len(one.ends) and one.lost[number] == 0 <= one.ends[number]:
            drained[where] = one.known[number], one.ends[number]
    if not drained:
        return {}
    here, there = source.latest(list(drained)).items, target.latest([pairs[where] for where in drained]).items
    same = {
        where: ends
        for where, ends in drained.items()
        if here.get(where) == ends[0] and there.get(pairs[where], UNSEEN_END) >= ends[1]
    }
    compacted = compacted_on_a_side(source, target, pairs, same)
    ours = _last_before(source, {where: end for where, (end, _) in same.items()}, compacted)
    theirs = _last_before(
        target, {pairs[where]: end for where, (_, end) in same.items()}, {pairs[where] for where in compacted}
    )
    return {where: end for where, (_, end) in same.items() if _are_alike(ours[where], theirs[pairs[where]])}


def _last_before(
    reader: RecordReader, ends: Mapping[TopicPartition, int], compacted: Collection[TopicPartition]
) -> dict[TopicPartition, Fingerprint | Why | None]:
    """Returns the last record before each end; None without one, a `Why` if it could not be read. In `compacted`
    partitions only the record right before the end counts."""
    right_before = {where: (end - 1, end) for where, end in ends.items() if where in compacted and end > 0}
    found: dict[TopicPartition, Fingerprint | Why | None] = {
        where: records[-1] if records else None if why in (Why.STOP, Why.END) else why
        for where, (records, why, _) in _read(reader, right_before, 1).items()
    }
    others = _tails(AsItWas(reader, ends), ends.keys() - right_before.keys(), 1)
    found |= {where: records[-1] if records else None for where, records in others.tails.items()}
    return found | dict.fromkeys(others.problems, Why.FAULT)


def _are_alike(ours: Fingerprint | Why | None, theirs: Fingerprint | Why | None) -> bool:
    """Whether both may be the same record. Retention or compaction may have deleted either of them."""
    if isinstance(ours, Fingerprint) and isinstance(theirs, Fingerprint):
        return ours.digest == theirs.digest
    return not isinstance(ours, Why) and not isinstance(theirs, Why)
