"""Counts what an unplanned failover loses, or predicts it for partitions that the source does not answer for.

For these the ledger says how far each partition was copied at some moment (its position). Since then the job saw the
source log grow by some offsets, and the copy grew by some new records. The difference is the most that can be missing.
It also counts transaction markers, compacted records, and records that cannot be read on the target. Records that came
after the source was last seen are unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from sinks.every_kind.listing import Listed
from sinks.failover.fenced_topics import fenced_topics, is_copy
from sinks.failover.readiness_facts import untold
from sinks.failover.record_matching import Behind, new_copies
from sinks.failover.scene import Scene, copies_of
from sinks.failover.source_end_offsets import EndOffsets
from sinks.failover.uncopied_records import (
    ALL_THERE,
    Arrival,
    arrivals_at_takeover,
    as_at_takeover,
    pairs_of,
    sharing,
    unlisted,
    with_seen_ends,
)
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.file_warnings import forgotten_copies
from sinks.ledger.kept_divergences import NEVER, divergences, keep_new_starts, new_starts
from sinks.ledger.kept_end_offsets import (
    UNSEEN_END,
    KeptEndOffsets,
    KnownPosition,
    absent_topics,
    by_partition,
    by_topic,
    kept_end_offsets,
    most_missing,
    with_ends,
)
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import is_written_by_mm2_alone

TYPED_UNKNOWN = "unknown"
"""What the operator types after --accept-loss or --discard to accept an unknown number."""

ANY_LOSS = math.inf
"""The accepted loss of an operator who accepts any, even an unknown one."""


@dataclass(frozen=True)
class Prediction:
    """The predicted loss of a failover."""

    arrivals: Mapping[TopicPartition, Arrival]
    """What the target lacks, by source partition."""
    known: EndOffsets
    """The source's ends, by source topic."""
    remote: Mapping[str, str]
    """Names on the target, by source topic."""
    at_ms: int | None
    """When ends that the source does not show now were seen, in ms since the epoch. None: all are current."""
    is_known: bool = True
    """False if the ledger has no ends of the source."""
    unanswered: Collection[TopicPartition] = ()
    """Partitions for which the source answered, but without an end."""

    @property
    def whole(self) -> bool:
        """Whether the source itself answered for all partitions."""
        return self.at_ms is None and self.is_known and not self.unanswered

    @property
    def unknown(self) -> dict[TopicPartition, str]:
        """Partitions whose loss is unknown, with the reason."""
        return untold(self.arrivals.values())

    @property
    def without_position(self) -> list[TopicPartition]:
        """Partitions without a known copy position. All their records count as lost."""
        return sorted(where for where, one in self.arrivals.items() if not one.positioned)

    @property
    def records(self) -> int | None:
        """Upper bound of all lost records that came before the source was last seen. None: unknown."""
        if not self.is_known or self.unknown:
            return None
        return sum(one.behind.records for one in self.arrivals.values() if one.behind)

    @property
    def exact(self) -> bool:
        """Whether the number of lost records is exact. It never is without the source."""
        return self.is_known and all(one.behind is not None and one.behind.exact for one in self.arrivals.values())

    @property
    def typed(self) -> str:
        """What the operator types after --accept-loss to accept this loss."""
        return TYPED_UNKNOWN if self.records is None else str(self.records)


def predict(scene: Scene) -> Prediction:
    """Returns what an unplanned failover would lose now. Writes nothing.

    If only some brokers of the source answer, the last seen ends count for the other partitions. Raises
    ClusterUnreachable if the target does not answer, RightsMissing, LockstepError.
    """
    if not scene.source_answers:
        return _remembered(scene)
    try:
        found = counted(scene)
    except ClusterUnreachable:
        # Either cluster may have failed. Without the target this raises again.
        return _remembered(scene)
    return _completed(scene, found) if found.unknown else found


def counted(scene: Scene, wanted: Collection[str] | None = None) -> Prediction:
    """Counts the records that the source has now and the target lacks. `wanted`: source topics. None stands for all
    that producers write, even if the file forgot them, because a failover ends the flow of all. Raises
    ClusterUnreachable, RightsMissing, LockstepError.
    """
    listed, settings = scene.listed(), scene.settings
    shared, remote = listed.desired.shared, {**listed.desired.remote, **listed.desired.shared}
    if wanted is None:
        forgotten = forgotten_copies(settings, listed)
        remote |= {topic: settings.policy.format_remote_topic(settings.flow.source, topic) for topic in forgotten}
    written = fenced_topics(settings, remote)
    topics = [topic for topic in written if wanted is None or topic in wanted]
    pairs = pairs_of(remote, listed.source, topics)
    told = {where: copy for where, copy in pairs.items() if where.topic not in shared}
    mixed = sharing({topic: shared[topic] for topic in topics if topic in shared}, listed.source)
    with scene.readers() as (source, target):
        # Each request to a dead broker takes the whole time limit. Wait for that only once.
        before = source.latest(list(pairs))
        faults = before.errors
        alive = {where: copy for where, copy in told.items() if where not in faults}
        found = arrivals_at_takeover(scene.journal.ledger, source, target, alive)
        now = source.latest(list(before.items)).items
    # What came while the records were counted lies behind these ends.
    ends = {where: min(end, now[where]) for where, end in before.items.items() if where in now}
    found = with_seen_ends(found, ends, by_partition(kept_end_offsets(scene.journal.ledger))[1])
    counts = {where.topic: listed.source[where.topic] for where in pairs}
    found |= {where: Arrival(where, problem=f"on {source.alias}: {faults[where]}") for where in told.keys() & faults}
    found |= unlisted(listed.source, topics)
    hidden = _hidden(scene, listed) if wanted is None else {}
    found |= {where: one for where, (one, _) in hidden.items()}
    remote |= {where.topic: name for where, (_, name) in hidden.items()}
    unanswered = [where for where in found if where not in ends]
    return Prediction(found | mixed, by_topic(ends, counts, UNSEEN_END), remote, None, unanswered=unanswered)


def _hidden(scene: Scene, listed: Listed) -> dict[TopicPartition, tuple[Arrival, str]]:
    """Returns a problem and the copy's name for each partition of topics that the source hides (`Scene.hidden`)."""
    alias, found = scene.settings.flow.source, dict[TopicPartition, tuple[Arrival, str]]()
    kept = {topic: len(one.ends) for topic, one in kept_end_offsets(scene.journal.ledger).items()}
    for topic in scene.hidden(listed):
        name = scene.settings.policy.format_remote_topic(alias, topic)
        for number in range(max(1, listed.target.get(name, 0), kept.get(topic, 0))):
            where = TopicPartition(topic, number)
            problem = f"{alias} does not list its topic, but does not report it as deleted either"
            found[where] = Arrival(where, problem=problem), name
    return found


def _completed(scene: Scene, found: Prediction) -> Prediction:
    """Returns `found`, completed from the ledger for uncounted partitions and for topics that the source does not list.
    A topic may exist although one listing lacks it. A partition without a known position may lose all its records."""
    seen = _remembered(scene, found.known)
    ends = {TopicPartition(topic, number): end for topic, of in found.known.items() for number, end in enumerate(of)}
    arrivals, shared = dict(found.arrivals), _sharing_a_name(found.remote)
    for where in [where for where in found.unknown if where.topic not in shared]:
        if where in seen.arrivals:
            arrivals[where] = seen.arrivals[where]
        elif ends.get(where, UNSEEN_END) != UNSEEN_END:
            arrivals[where] = Arrival(where, Behind(ends[where], None, False))
    if not found.unanswered:
        return replace(found, arrivals=arrivals)
    arrivals |= {where: one for where, one in seen.arrivals.items() if where not in arrivals}
    known, remote = {**found.known, **seen.known}, {**seen.remote, **found.remote}
    return replace(found, arrivals=arrivals, known=known, remote=remote, at_ms=seen.at_ms)


def _remembered(scene: Scene, seen: EndOffsets = MappingProxyType({})) -> Prediction:
    return remembered(scene.journal.ledger, scene.settings, scene.target, seen)


def seen_last(ledger: Ledger, settings: FlowSettings) -> dict[str, KeptEndOffsets]:
    """Returns the end offsets that the ledger keeps, by source topic. Skips topics that MM2 writes on the source."""
    return {topic: one for topic, one in kept_end_offsets(ledger).items() if not is_copy(settings, topic)}


def remembered(
    ledger: Ledger,
    settings: FlowSettings,
    target: ClusterPorts,
    seen: EndOffsets = MappingProxyType({}),
) -> Prediction:
    """Predicts the loss of a failover from the ledger and the copies on the target. `seen`: ends that the source still
    shows. Raises ClusterUnreachable, RightsMissing, LockstepError."""
    last = seen_last(ledger, settings)
    kept = {topic: with_ends(one, seen.get(topic, ())) for topic, one in last.items()}
    if not kept:
        return Prediction({}, {}, {}, None, is_known=False)
    remote = {topic: settings.policy.format_remote_topic(settings.flow.source, topic) for topic in kept}
    # Readers never see the records of MM2's transactions that were not committed.
    with closing(target.records("read_committed")) as records:
        # Moved clients may have written to copies. Their records are not the source's.
        alone = {topic for topic in kept if is_written_by_mm2_alone(settings.policy, settings.flow.source, topic)}
        found = predicted(kept, as_at_takeover(ledger, records), remote, alone, new_starts(ledger))
        ends = {topic: one.ends for topic, one in kept.items()}
        never_seen = _never_seen(ledger, settings, target, ends, seen)
        there = records.ends(
            [TopicPartition(name, number) for name, numbers in never_seen.values() for number in numbers]
        )
    shared = _sharing_a_name(remote)
    found |= sharing(shared, {topic: len(kept[topic].ends) for topic in shared})
    # A copy may have more partitions than its topic. They are empty.
    empty = {where for where, log in there.items.items() if not log.end}
    for topic, (name, numbers) in never_seen.items():
        new = [TopicPartition(topic, one) for one in numbers if TopicPartition(name, one) not in empty]
        found |= {where: Arrival(where, problem=NEVER_SEEN) for where in new}
        if new:
            ends[topic], remote[topic] = (*ends.get(topic, ()), *[UNSEEN_END] * len(numbers)), name
    return Prediction(found, ends, remote, min(one.at_ms for one in kept.values()))


def _never_seen(
    ledger: Ledger, settings: FlowSettings, target: ClusterPorts, kept: EndOffsets, seen: EndOffsets
) -> dict[str, tuple[str, range]]:
    """Returns, by source topic, names of copies and their partitions that no job saw on the source. Leaves out topics
    in `seen`, and topics that the source did not have at the job's last reading. `kept`: ends in the ledger."""
    others, absent = copies_of(settings, target.cluster.list_topics()), absent_topics(ledger)
    return {
        topic: (name, range(len(kept.get(topic, ())), partitions))
        for topic, (name, partitions) in others.items()
        if topic not in seen and topic not in absent and partitions > len(kept.get(topic, ()))
    }


def keep_moved_ends(scene: Scene) -> None:
    """Writes to the ledger where copies with a divergence end, because clients that moved may have written to them.
    Called before the divergences are forgotten. An unreadable end is no error, for the fence is already lifted. Raises
    LockstepError."""
    known = divergences(scene.journal.ledger)
    if not known:
        return
    listed = scene.target.cluster.list_topics()
    counts = {one.remote: max(len(one.ends), listed.get(one.remote, 0)) for one in known.values()}
    copies = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    ends: Mapping[TopicPartition, int] = {}
    with suppress(ClusterUnreachable, RightsMissing), closing(scene.target.records("read_uncommitted")) as records:
        ends = records.latest(copies).items
    keep_new_starts(scene.journal.ledger, {copy: ends.get(copy, NEVER) for copy in copies})


def _sharing_a_name(remote: Mapping[str, str]) -> dict[str, str]:
    names = Counter(remote.values())
    return {topic: name for topic, name in remote.items() if names[name] > 1}


NEVER_SEEN = "no job saw the end of its log on the source"


def predicted(
    kept: Mapping[str, KeptEndOffsets],
    target: RecordReader,
    remote: Mapping[str, str],
    alone: Collection[str],
    starts: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, Arrival]:
    """Returns the predicted loss of each source partition. `remote`: names on the target. `target` reads committed
    records only.

    New records in a copy show that MM2 copied, but only for the topics `alone`, whose copies MM2 alone writes. Records
    before the offsets `starts` do not count either, because moved clients may have written them. A partition without a
    known position may lose all its records. If its end was never seen, its loss is unknown.
    Raises ClusterUnreachable, RightsMissing.
    """
    ends = {
        TopicPartition(topic, number): end for topic, one in kept.items() for number, end in enumerate(one.ends) if end
    }
    copies = {where: TopicPartition(remote[where.topic], where.partition) for where in ends}
    logs = target.ends(list(copies.values())).items
    positions = {
        where: position
        for where in ends
        if (position := _position(where, kept[where.topic], logs.get(copies[where]))) is not None
    }
    since = {
        copies[where]: max(position.target, starts.get(copies[where], 0))
        for where, position in positions.items()
        if copies[where] in logs and where.topic in alone and most_missing(position, ends[where], 0) > 0
    }
    came = new_copies(target, since, logs)
    found = {
        where: Arrival(where, problem=NEVER_SEEN)
        if end == UNSEEN_END
        else Arrival(
            where,
            Behind(most_missing(positions.get(where), end, came.get(copies[where], 0)), None, False),
            positioned=where in positions,
        )
        for where, end in ends.items()
    }
    every = [TopicPartition(topic, number) for topic, one in kept.items() for number in range(len(one.ends))]
    return {where: found.get(where) or Arrival(where, ALL_THERE) for where in every}


def _position(where: TopicPartition, kept: KeptEndOffsets, log: LogRange | None) -> KnownPosition | None:
    """Returns how far the partition was copied. None if that is unknown, or if the copy lost its tail since."""
    positions = kept.positions or ()
    position = positions[where.partition] if where.partition < len(positions) else None
    end = 0 if log is None else log.end
    return position if position is not None and position.target <= end else None
