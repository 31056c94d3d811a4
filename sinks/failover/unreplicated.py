"""Finds records that only one of the two clusters has after a takeover. Reads both clusters, writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from sinks.every_kind.listing import Listed
from sinks.failover.cut_reader import AsItWas, TooManyRecords, all_records
from sinks.failover.fenced_topics import fenced_topics, topics_of
from sinks.failover.open_transactions import undecided
from sinks.failover.record_matching import (
    Fingerprint,
    ReadLimits,
    fingerprint_of,
    first_since,
    read_fingerprints,
    read_records,
)
from sinks.failover.scene import Scene, copies_of
from sinks.failover.uncopied_records import WIDER, Arrival, arrivals, pairs_of, unlisted
from sinks.kafka.ports.record_reader import PartitionTime, Record, RecordReader
from sinks.ledger.kept_divergences import NEVER, Divergence, divergences, new_starts, takeover_ends
from sinks.ledger.kept_end_offsets import UNSEEN_END
from streaming.errors import LockstepError
from streaming.message_words import first_names
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import is_written_by_mm2_alone

OPEN = (
    "an open transaction hides the records behind it. Let it end (its producer's transaction.timeout.ms), or end it "
    "with kafka-transactions.sh"
)

SHORTER = "it is shorter than at the takeover: it was recreated, or its log lost its tail"

HAND_ON = "Copy them by other means, delete them from {} with kafka-delete-records.sh, and run the command again"


@dataclass(frozen=True)
class Unreplicated:
    """Records that only one cluster has, by its partition. Partitions without such records are left out.

    `problems`: why partitions could not be checked. Unless `exact`, some of these records may have been copied.
    """

    records: Mapping[TopicPartition, list[Record]]
    problems: Mapping[TopicPartition, str]
    exact: bool = True

    @property
    def count(self) -> int:
        return sum(map(len, self.records.values()))

    def by_topic(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for where, records in self.records.items():
            found[where.topic] += len(records)
        return dict(sorted(found.items()))


def unreplicated(scene: Scene) -> Unreplicated:
    """Returns the source's records that the target lacked at the takeover, and that MM2 has not copied since. Raises
    LockstepError.

    If a partition has no divergence in the ledger, its copy is read: the last records, or all if these do not suffice.
    If it has no copy, none of its records was copied.
    """
    known, listed = divergences(scene.journal.ledger), scene.listed()
    wanted, pairs = _partitions(scene, listed, known)
    try:
        found = _compared(scene, listed, pairs, known)
    except TooManyRecords as error:
        raise LockstepError(f"{error}. {_way_out(error.where, pairs, known)}") from error
    problems = {where: one.problem for where, one in unlisted(listed.source, wanted).items() if one.problem}
    return replace(found, problems={**problems, **found.problems})


def _compared(
    scene: Scene, listed: Listed, pairs: Mapping[TopicPartition, TopicPartition], known: Mapping[str, Divergence]
) -> Unreplicated:
    """Returns what `unreplicated` does, for these partitions of the source. Raises TooManyRecords, LockstepError."""
    taken, names = takeover_ends(known), Counter(pairs.values())
    # Where topics share a copy, its end does not say how far each of them was copied.
    whole = {where for where, copy in pairs.items() if names[copy] > 1}
    absent = {where for where, copy in pairs.items() if copy not in taken and _is_absent(copy, listed)}
    with scene.readers() as (source, target):
        purged = _purged(target, pairs, known) - whole
        told = {where: copy for where, copy in pairs.items() if where not in whole | absent | purged}
        seen = arrivals(source, AsItWas(target, taken), told)
        open_ones = {where for where, copy in told.items() if copy not in taken and not _is_certain(seen[where])}
        seen = {where: one for where, one in seen.items() if where not in open_ones}
        whole |= open_ones
        since = {where: one.behind.since for where, one in seen.items() if one.behind and one.behind.since is not None}
        ends = source.latest(list(pairs))
        exactly = {
            where for where in seen if pairs[where] in taken and where.topic in known and known[where.topic].exact
        }
        # A cleaner may have removed some of the lost ones. Then the records before them were copied.
        compacted = source.compacted({where.topic for where in exactly})
        exactly = {where for where in exactly if where.topic not in compacted or not _then(known, where)[1]}
        least = _since_takeover(source, known, purged | exactly, ends.items)
        sooner = {where for where, at in least.items() if at < since.get(where, _then(known, where)[0])}
        since |= {where: min(at, since.get(where, at)) for where, at in least.items()}
        starts = {copy: taken[copy] for where in since if (copy := pairs[where]) in taken}
        spans = starts | {pairs[where]: 0 for where in whole}
        # A client's open transaction hides what MM2 copied behind it. Asked first: it may end while records are read.
        hidden = undecided(target, target.latest(list(spans)).items)
        unread = undecided(source, ends.items)
        here = all_records(source, since | dict.fromkeys(whole | absent, 0))
        later = all_records(target, spans)
    left = {where: not_among(records, later.get(pairs[where], [])) for where, records in here.items()}
    problems = {where: one.problem for where, one in seen.items() if one.problem}
    problems |= {where: f"on {source.alias}: {ends.errors[where]}" for where in purged & ends.errors.keys()}
    shorter = {where for where in purged & ends.items.keys() if ends.items[where] < _then(known, where)[0]}
    problems |= dict.fromkeys(shorter, SHORTER)
    problems |= dict(unread.unknown) | dict.fromkeys(unread.open, OPEN)
    exact = not (whole or hidden or purged or sooner) and all(
        not one.behind or one.behind.exact for one in seen.values()
    )
    return Unreplicated({where: records for where, records in left.items() if records}, problems, exact)


def _purged(
    target: RecordReader, pairs: Mapping[TopicPartition, TopicPartition], known: Mapping[str, Divergence]
) -> set[TopicPartition]:
    """Returns source partitions whose copy has no record left from before the takeover, because retention deleted them.
    Only those whose end and loss the ledger kept at the takeover."""
    taken = takeover_ends(known)
    logs = target.ends([copy for copy in pairs.values() if taken.get(copy)]).items
    past = {where for where, copy in pairs.items() if copy in logs and logs[copy].start >= taken[copy]}
    return {where for where in past if min(_then(known, where)) >= 0}


def _then(known: Mapping[str, Divergence], where: TopicPartition) -> tuple[int, int]:
    """Returns the source's end offset at the takeover, and how many records before it the target lacked. A negative
    number stands for unknown."""
    one, number = known.get(where.topic), where.partition
    if one is None or number >= len(one.known):
        return UNSEEN_END, UNSEEN_END
    return one.known[number], one.lost[number]


def _since_takeover(
    source: RecordReader,
    known: Mapping[str, Divergence],
    partitions: Collection[TopicPartition],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Returns for each partition the source offset of its first missing record, at the latest. Leaves out partitions
    without missing records. `ends`: the source's ends now.

    That is the end at the takeover, moved back by as many records as were missing then. These records are read, because
    some offsets are markers, aborted records or compacted away. Raises TooManyRecords, LockstepError.
    """
    then = {where: _then(known, where) for where in partitions}
    # A log that is shorter now is another one, or lost its tail.
    then = {where: one for where, one in then.items() if min(one) >= 0 and ends.get(where, UNSEEN_END) >= one[0]}
    found = {where: end for where, (end, lost) in then.items() if not lost and ends[where] > end}
    left = {where: one for where, one in then.items() if one[1]}
    logs, width = source.ends(list(left)).items, 1
    left = {where: one for where, one in left.items() if where in logs}
    while left:
        starts = {where: max(logs[where].start, end - lost * width) for where, (end, lost) in left.items()}
        read = all_records(source, starts, {where: end for where, (end, _) in left.items()})
        for where, (_, lost) in list(left.items()):
            if len(read[where]) >= lost or starts[where] == logs[where].start:
                found[where] = min(one.offset for one in read[where][-lost:]) if read[where] else starts[where]
                del left[where]
        width *= WIDER
    return found


def not_copied_back(scene: Scene) -> Unreplicated:
    """Returns records that clients wrote to copies on the target since the takeover, and that MM2 never copies back.

    On the way back to `a`, MM2 skips `a.orders`. A record that the source has as well was copied by MM2, which may go
    on copying and resending after a takeover. If the source lost such a record, it counts here: the number is an upper
    bound. Raises LockstepError.
    """
    known, upstream, copies = _not_led_back(scene)
    # Where an end was not told at the takeover, or the copy is newer, each record is looked for on the source.
    ends = takeover_ends(known)
    # A run of `failback --done` that died may have forgotten the divergences.
    starts = {copy: start for copy, start in new_starts(scene.journal.ledger).items() if start != NEVER}
    taken = {copy: ends.get(copy, starts.get(copy, 0)) for copy in copies}
    with scene.readers() as (source, target):
        seen = target.latest(list(taken))
        grown = {copy: taken[copy] for copy, end in seen.items.items() if end > taken[copy]}
        hidden = undecided(target, {copy: seen.items[copy] for copy in grown})
        came, unread = _records_of_copies(target, grown, ends)
        left = {
            copy: not_among(records, _as_old(source, TopicPartition(upstream[copy.topic], copy.partition), records))
            for copy, records in came.items()
        }
    unseen = unread | {copy: str(fault) for copy, fault in seen.errors.items()}
    unseen |= {copy: SHORTER for copy, end in seen.items.items() if end < taken[copy]}
    problems = unseen | dict(hidden.unknown) | dict.fromkeys(hidden.open, OPEN)
    return Unreplicated({copy: records for copy, records in left.items() if records}, problems, exact=False)


def _records_of_copies(
    target: RecordReader, grown: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, list[Record]], dict[TopicPartition, str]]:
    """Returns the records of copies from the offsets `grown` on, and why copies made after the takeover could not be
    read. `ends`: the copies' ends at the takeover. Raises LockstepError."""
    unread = dict[TopicPartition, str]()
    try:
        came = all_records(target, {copy: start for copy, start in grown.items() if copy in ends})
    except TooManyRecords as error:
        raise LockstepError(f"{error}. {HAND_ON.format('the target')}") from error
    for copy in sorted(grown.keys() - ends.keys()):
        try:
            came |= all_records(target, {copy: grown[copy]})
        except TooManyRecords as error:
            unread[copy] = str(error)
    return came, unread


def _not_led_back(scene: Scene) -> tuple[dict[str, Divergence], dict[str, str], list[TopicPartition]]:
    """Returns the copies that MM2 does not copy back: divergences by source topic, source topics by the names of their
    copies, and the copies' partitions. Copies that the target does not list are included, unless it confirms that they
    are gone."""
    policy, alias, listed = scene.settings.policy, scene.settings.flow.source, scene.listed().target
    counts = dict[str, int]()
    known = {
        topic: one
        for topic, one in divergences(scene.journal.ledger).items()
        if is_written_by_mm2_alone(policy, alias, topic)
    }
    upstream = {one.remote: topic for topic, one in known.items()}
    for topic, (name, partitions) in copies_of(scene.settings, listed).items():
        if is_written_by_mm2_alone(policy, alias, topic):
            upstream[name], counts[name] = topic, partitions
    gone = scene.target.cluster.confirmed_absent(upstream.keys() - listed.keys())
    for one in (one for one in known.values() if one.remote not in gone):
        at_takeover = (number + 1 for number, end in enumerate(one.ends) if end >= 0)
        counts[one.remote] = max([1, listed.get(one.remote, 0), *at_takeover])
    copies = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    return known, upstream, copies


def _as_old(source: RecordReader, where: TopicPartition, records: Sequence[Record]) -> list[Record]:
    """Returns the records of a source partition that may be as old as `records`: from the first with their oldest
    timestamp on. Returns none if that offset is unknown, or if there are too many."""
    if not records:
        return []
    start = first_since(source, {where: min(record.timestamp for record in records)}).get(where)
    try:
        return [] if start is None else all_records(source, {where: start})[where]
    except TooManyRecords:
        return []


def _way_out(
    where: TopicPartition, pairs: Mapping[TopicPartition, TopicPartition], known: Mapping[str, Divergence]
) -> str:
    """Returns in words what to do about a partition `where`, of either cluster, with too many records to read."""
    topics = {one.topic for one, copy in pairs.items() if where in (one, copy)}
    if topics & known.keys():
        return f"They were written after the failover. {HAND_ON.format('the source')}"
    return (
        f"No job had seen {first_names(sorted(topics))} before the failover, so each of its records must be compared. "
        "Compare it by other means, add it to topics.exclude in the file, and run the command again"
    )


def counted_topics(scene: Scene) -> list[str]:
    wanted, pairs = _partitions(scene, scene.listed(), divergences(scene.journal.ledger))
    return sorted({*wanted, *topics_of(pairs)})


def _partitions(
    scene: Scene, listed: Listed, known: Mapping[str, Divergence]
) -> tuple[list[str], dict[TopicPartition, TopicPartition]]:
    """Returns the topics that producers write on the source now, and source partitions with their copies.

    The partitions belong to these topics and to topics with a divergence. Partitions that only the target had at the
    takeover are left out."""
    remote = {**listed.desired.remote, **listed.desired.shared}
    wanted = fenced_topics(scene.settings, remote)
    names = {topic: remote[topic] for topic in wanted} | {topic: one.remote for topic, one in known.items()}
    counts = {topic: listed.source.get(topic) or 0 for topic in names}
    for topic, one in known.items():
        counts[topic] = max([counts[topic], *(number + 1 for number, end in enumerate(one.known) if end != UNSEEN_END)])
    return wanted, pairs_of(names, counts, names)


def _is_absent(copy: TopicPartition, listed: Listed) -> bool:
    """Whether the target lacks this partition. A topic that is listed without partitions exists."""
    partitions = listed.target.get(copy.topic)
    return partitions is None or 0 < partitions <= copy.partition


def _is_certain(one: Arrival) -> bool:
    return one.behind is not None and one.behind.exact


def not_among(records: list[Record], copied: list[Record]) -> list[Record]:
    """Returns the `records` that are not in `copied`, compared by timestamp, key and value."""
    later = Counter((one.timestamp, one.digest) for one in map(fingerprint_of, copied))
    left = []
    for record in records:
        mark = (fingerprint_of(record).timestamp, fingerprint_of(record).digest)
        if later[mark]:
            later[mark] -= 1
        else:
            left.append(record)
    return left


# Finds what moved clients wrote to copies since those were drained.
#
# Growth of a copy is no evidence: MM2 resends records after a restart, and continues once a fence is lifted. A record
# of a client equals no record of the source, and none that the copy had when it was drained.


LIMITS = ReadLimits(most=100_000, seconds=30.0)
"""Limits of each reading for `written_on_target`. They are low, because an operator who lifts a fence waits."""


@dataclass(frozen=True)
class WrittenSince:
    """Partitions of copies. `foreign`: a client other than MM2 wrote to them. `unknown`: that could not be checked."""

    foreign: Collection[TopicPartition] = ()
    unknown: Collection[TopicPartition] = ()


def written_on_target(scene: Scene, known: Mapping[str, Divergence]) -> WrittenSince:
    """Finds copies that clients other than MM2 wrote to after the drain. `known`: divergences by source topic, with the
    copies' ends at the drain. Raises ClusterUnreachable, RightsMissing."""
    drained = takeover_ends(known)
    pairs = {
        TopicPartition(topic, number): TopicPartition(one.remote, number)
        for topic, one in known.items()
        for number in range(len(one.ends))
    }
    with (
        closing(scene.target.records("read_uncommitted")) as target,
        closing(scene.source.records("read_uncommitted")) as source,
    ):
        seen = target.ends(list(drained))
        grown = {copy for copy, log in seen.items.items() if log.end > drained[copy]}
        found, cut = read_fingerprints(target, {copy: drained[copy] for copy in grown}, LIMITS)
        unknown = cut | seen.errors.keys()
        came = {where: found[copy] for where, copy in pairs.items() if copy in grown - unknown}
        # Read last, so that records copied meanwhile are found.
        new = _new_on(source, AsItWas(target, drained), pairs, came)
        unknown |= {pairs[where] for where in came.keys() - new.keys()}
        maybe_taken = {pairs[where] for where in _maybe_taken(source, new)}
    return WrittenSince(
        {pairs[where] for where, one in new.items() if one.newest is not None} - maybe_taken, unknown | maybe_taken
    )


class _New(NamedTuple):
    """What the new records of a copy showed."""

    newest: int | None
    """Latest timestamp (ms) of new records that neither the source nor the old copy has; None without such records."""
    read_to: int | None
    """Latest timestamp (ms) of the source's records that were compared; None without any."""


def _new_on(
    source: RecordReader,
    before: RecordReader,
    pairs: Mapping[TopicPartition, TopicPartition],
    came: Mapping[TopicPartition, list[Fingerprint]],
) -> dict[TopicPartition, _New]:
    """Returns the result for each source partition that could be compared. `before`: reads the copies as they were when
    drained. `came`: the new records of the copies."""
    # If the target sets timestamps itself, it is unknown how far back to read.
    timed = {where: prints for where, prints in came.items() if not any(one.appended for one in prints)}
    ours, unread = _since(source, {where: prints for where, prints in timed.items() if prints})
    left = {where: _without(prints, ours.get(where, ())) for where, prints in timed.items() if where not in unread}
    # Records that the copy had already were resent, even if the source has lost them.
    copied, _ = _since(before, {pairs[where]: prints for where, prints in left.items() if prints})
    return {
        where: _New(_latest(_without(prints, copied.get(pairs[where], ()))), _latest(ours.get(where, ())))
        for where, prints in left.items()
    }


def _since(
    reader: RecordReader, prints: Mapping[TopicPartition, list[Fingerprint]]
) -> tuple[dict[TopicPartition, list[Fingerprint]], set[TopicPartition]]:
    """Returns each log's records since the oldest of `prints`, and the partitions that could not be read."""
    times = [PartitionTime(where, min(one.timestamp for one in found)) for where, found in prints.items()]
    seen = reader.offsets_for_times(times)
    begins = {context.where: offset for context, offset in seen.items.items() if offset is not None}
    found, cut = read_fingerprints(reader, begins, LIMITS)
    return found, cut | {context.where for context in seen.errors}


def _without(prints: Iterable[Fingerprint], others: Iterable[Fingerprint]) -> list[Fingerprint]:
    known = {(one.timestamp, one.digest) for one in others}
    return [one for one in prints if (one.timestamp, one.digest) not in known]


def _latest(prints: Iterable[Fingerprint]) -> int | None:
    return max((one.timestamp for one in prints), default=None)


def _maybe_taken(source: RecordReader, new: Mapping[TopicPartition, _New]) -> set[TopicPartition]:
    """Returns partitions whose new records may all be MM2's: the source may have had them until retention or compaction
    deleted them there.

    Includes partitions that the source does not show."""
    newest = {where: one.newest for where, one in new.items() if one.newest is not None}
    logs = source.ends(list(newest)).items
    first: dict[TopicPartition, Record] = {}
    cut = {where: (log.start, log.end) for where, log in logs.items() if log.start}
    read_records(source, cut, LIMITS._replace(most=1), first.setdefault)
    compacted = source.compacted({where.topic for where in newest})
    # Compaction keeps the log's last record.
    replaced = {where for where in newest if where.topic in compacted and newest[where] <= (new[where].read_to or 0)}
    retired = {where for where in cut if where not in first or newest[where] < first[where].timestamp}
    return retired | replaced | (newest.keys() - logs.keys())
