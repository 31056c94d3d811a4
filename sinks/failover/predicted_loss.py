"""What an unplanned failover loses, counted where the source answers and predicted where it does not.

For partitions that the source does not answer for, the ledger says how far each was copied at some moment
(`known_positions`). Since then the job saw its source log grow by some offsets, and its copy grew by some new records.
The difference is the most that can be missing. It also counts transaction markers, compacted records, and records that
are unreadable on the target. Records that came after the source was last seen are unknown.
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
"""What the operator types if the loss is unknown."""

ANY_LOSS = math.inf
"""Accepts any loss, even an unknown one."""


@dataclass(frozen=True)
class Prediction:
    """What is lost, by partition of the source. `known`: the ends of the source. Ends that it did not show now were
    seen at `at_ms` (ms since the epoch; None: all are current). `remote`: names on the target. `is_known`: False if
    nothing at all is known. `unanswered`: partitions that an answering source gave no end for."""

    arrivals: Mapping[TopicPartition, Arrival]
    known: EndOffsets
    remote: Mapping[str, str]
    at_ms: int | None
    is_known: bool = True
    unanswered: Collection[TopicPartition] = ()

    @property
    def whole(self) -> bool:
        """Whether the source itself answered for all its partitions."""
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
        """Upper bound of the lost records in all, as far as they were seen. None: unknown."""
        if not self.is_known or self.unknown:
            return None
        return sum(one.behind.records for one in self.arrivals.values() if one.behind)

    @property
    def exact(self) -> bool:
        """Whether the loss is certain. It never is without the source."""
        return self.is_known and all(one.behind is not None and one.behind.exact for one in self.arrivals.values())

    @property
    def typed(self) -> str:
        """What the operator types to agree."""
        return TYPED_UNKNOWN if self.records is None else str(self.records)


def predict(scene: Scene) -> Prediction:
    """Predicts what an unplanned failover loses, as far as can be known now. Writes nothing.

    A source that loses its brokers one by one still answers. For partitions that it does not answer for, the last seen
    ends count. Raises ClusterUnreachable if the target does not answer, RightsMissing, LockstepError.
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
    """Counts what the source has now and the target has not. `wanted`: topics. None: all that producers write, for a
    failover ends all of them, also those that the file forgot. Raises ClusterUnreachable, RightsMissing, LockstepError.
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
    """Returns the partitions of topics that the source hides, each with the name of the copy."""
    alias, found = scene.settings.flow.source, dict[TopicPartition, tuple[Arrival, str]]()
    kept = {topic: len(one.ends) for topic, one in kept_end_offsets(scene.journal.ledger).items()}
    for topic in scene.hidden(listed):
        name = scene.settings.policy.format_remote_topic(alias, topic)
        for number in range(max(1, listed.target.get(name, 0), kept.get(topic, 0))):
            where = TopicPartition(topic, number)
            problem = f"{alias} does not list its topic, and does not say that it is gone"
            found[where] = Arrival(where, problem=problem), name
    return found


def _completed(scene: Scene, found: Prediction) -> Prediction:
    """Adds what the job saw last, for uncounted partitions and for topics that the source does not list. Absence from
    one listing does not mean that a topic is gone. A partition with a known end only may lose all its records."""
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
    """Returns what the ledger keeps of each source topic's end offsets. Skips topics that MM2 writes on the source."""
    return {topic: one for topic, one in kept_end_offsets(ledger).items() if not is_copy(settings, topic)}


def remembered(
    ledger: Ledger,
    settings: FlowSettings,
    target: ClusterPorts,
    seen: EndOffsets = MappingProxyType({}),
) -> Prediction:
    """Predicts what a failover loses, from the ledger's entries and the copies. `seen`: ends that the source still
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
    shared = _sharing_a_name(remote)
    found |= sharing(shared, {topic: len(kept[topic].ends) for topic in shared})
    ends = {topic: one.ends for topic, one in kept.items()}
    for topic, (name, partitions) in _never_seen(ledger, settings, target, ends, seen).items():
        new = range(len(ends.get(topic, ())), partitions)
        found |= {where: Arrival(where, problem=NEVER_SEEN) for where in [TopicPartition(topic, one) for one in new]}
        ends[topic], remote[topic] = (*ends.get(topic, ()), *[UNSEEN_END] * len(new)), name
    return Prediction(found, ends, remote, min(one.at_ms for one in kept.values()))


def _never_seen(
    ledger: Ledger, settings: FlowSettings, target: ClusterPorts, kept: EndOffsets, seen: EndOffsets
) -> dict[str, tuple[str, int]]:
    """Returns names and partition counts of copies with partitions that no job saw on the source, by topic there. Left
    out: topics that it shows, and those that it did not have at the job's last reading."""
    others, absent = copies_of(settings, target.cluster.list_topics()), absent_topics(ledger)
    return {
        topic: (name, partitions)
        for topic, (name, partitions) in others.items()
        if topic not in seen and topic not in absent and partitions > len(kept.get(topic, ()))
    }


def keep_moved_ends(scene: Scene) -> None:
    """Keeps where the copies with a divergence end, before their divergences are forgotten: moved clients may have
    written to them. The fence is lifted by then: an end that cannot be read stops nothing. Raises LockstepError."""
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


NEVER_SEEN = "where its log on the source ends was never seen"


def predicted(
    kept: Mapping[str, KeptEndOffsets],
    target: RecordReader,
    remote: Mapping[str, str],
    alone: Collection[str],
    starts: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, Arrival]:
    """Returns predictions by partition of the source. `remote`: names on the target. `alone`: topics whose copies no
    client but MM2 writes. New records of another copy may be anyone's, so they are no sign that MM2 copied. Nor are
    records before `starts` of the copies: their clients had moved.

    `target` reads committed records. A partition without any knowledge may lose all its records. A partition whose end
    was never seen has an unknown loss.
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
    """Returns how far the partition was copied. None where the copy ends before that now: it lost its tail."""
    positions = kept.positions or ()
    position = positions[where.partition] if where.partition < len(positions) else None
    end = 0 if log is None else log.end
    return position if position is not None and position.target <= end else None
