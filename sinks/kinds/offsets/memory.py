"""A flow's memory of offsets: MM2's syncs and checkpoints, and the translated offsets.

Syncs come with the stream, and from MM2's own topic if the stream missed some (`mirror_reading`). Each has its offset
in that topic. So a sync that comes twice changes nothing, and a gap shows that compaction removed some.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from sys import getsizeof
from threading import Lock
from typing import NamedTuple

from sinks.every_kind.absence import Absence
from sinks.every_kind.listing import Listed, replicated_topics
from sinks.kafka.ports.cluster import Placed, Reader
from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets.log_tails import NO_OFFSET_BEHIND, CutLogs, LogTails
from sinks.kinds.offsets.mirror_records import MirrorTopics, checkpoints_of, sync_of
from sinks.kinds.offsets.stored_memory import (
    StoredMemory,
    TopicIds,
    ids_for_runs,
    is_recreated,
    load_truncations,
    store_truncations,
)
from sinks.kinds.offsets.sync_history import NOWHERE, Discontinuity, Histories, Pair
from sinks.kinds.offsets.translation import Answer
from sinks.ledger.kept_divergences import divergences, takeover_ends
from sinks.ledger.ledger import Ledger
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import topic_name_fault

log = logging.getLogger(__name__)

FORGOTTEN_AFTER = 2
"""An item is forgotten when this many full comparisons, over a minute, lack it. It can be learned again."""

MOST_WAITING_RECORDS = 500_000
"""Most syncs and checkpoints that wait for a flow. Dropped ones are read from MM2's topics, which have all."""

MOST_WAITING_BYTES = 200_000_000
"""Most bytes of the driver's memory that they may take: a name in MM2's records can have 32 KB."""

RECORD_BYTES = 200
"""Bytes of one sync or checkpoint without its names."""

Batch = tuple[Collection[SyncSeen], Collection[CheckpointSeen]]
"""The syncs and checkpoints of one micro-batch."""


class TakenIn(NamedTuple):
    """`groups`: groups with new checkpoints of MM2. `restarted`: source partitions that MM2 sends again, or whose
    target log was truncated."""

    groups: set[str]
    restarted: set[TopicPartition]


class StreamQueue:
    """Syncs and checkpoints from the stream that wait for the flow. The queue is bounded. After an overflow it is empty
    until `begin_again`."""

    def __init__(self, most: int, most_bytes: int = MOST_WAITING_BYTES) -> None:
        self._most, self._most_bytes, self._lock = most, most_bytes, Lock()
        # None after an overflow.
        self._batches: list[Batch] | None = []
        self._count = self._bytes = 0

    def put(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Queues a batch. If it does not fit, drops everything that waits, because then only MM2's topics have it in
        order."""
        size = bytes_of(syncs, checkpoints)
        with self._lock:
            self._count, self._bytes = self._count + len(syncs) + len(checkpoints), self._bytes + size
            if self._count > self._most or self._bytes > self._most_bytes:
                self._batches = None
            elif self._batches is not None and (syncs or checkpoints):
                self._batches.append((syncs, checkpoints))

    def overflow(self) -> None:
        """Notes that there is a gap, because MM2's topics could not be read in place of dropped records."""
        with self._lock:
            self._batches = None

    def begin_again(self) -> bool:
        """Queues again from now on after an overflow. Returns whether there was one: then the caller reads MM2's
        topics."""
        with self._lock:
            if self._batches is not None:
                return False
            self._batches, self._count, self._bytes = [], 0, 0
            return True

    def take(self) -> list[Batch] | None:
        """Returns the waiting batches. None: the queue overflowed, so there is a gap after the known records."""
        with self._lock:
            taken = self._batches
            if taken is not None:
                self._batches, self._count, self._bytes = [], 0, 0
            return taken


def bytes_of(syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> int:
    """Returns roughly the bytes of memory that the records take. A name that a batch shares counts once."""
    names = {id(sync.topic): getsizeof(sync.topic) for sync in syncs}
    for seen in checkpoints:
        names[id(seen.topic)], names[id(seen.group)] = getsizeof(seen.topic), getsizeof(seen.group)
    return RECORD_BYTES * (len(syncs) + len(checkpoints)) + sum(names.values())


class OffsetMemory:
    """The memory of offsets of one flow. `queue` may be used from any thread, everything else from one."""

    def __init__(self, most_waiting: int = MOST_WAITING_RECORDS) -> None:
        self.histories = Histories(
            lambda topic: ids_for_runs(self._ids, topic, self._topics.syncs if self._topics else None)
        )
        self.source_logs, self.target_logs = LogTails(), LogTails()
        self.checkpoints = KnownCheckpoints()
        self.cut_logs = CutLogs()
        # The last answer given, by partition on the source.
        self.answers: dict[GroupPartition, Answer] = {}
        self.takeover_ends: Mapping[TopicPartition, int] = {}
        """Ends of copies when their clients could move to the target, by partition on the target."""
        self._in_batches = False
        self.refused: Counter[str] = Counter()
        """Number of syncs and checkpoints that were refused because they cannot be true, by reason."""
        self._beyond: dict[GroupPartition, Pair] = {}
        self._ids: dict[str, TopicIds] = {}
        self._remote: dict[str, str] = {}
        self._doubted: set[str] = set()
        self.queue = StreamQueue(most_waiting)
        self._taken_in = TakenIn(set(), set())
        self._topics: MirrorTopics | None = None
        self._is_loaded = False
        self._unlisted = Absence[str | TopicPartition](FORGOTTEN_AFTER)
        self._stored = StoredMemory()

    def note_drained(self, ledger: Ledger) -> None:
        """Reads from the ledger the ends of drained copies. With batches, clients of these copies may have moved
        already."""
        self.takeover_ends = takeover_ends(divergences(ledger))
        self._in_batches = bool(self.takeover_ends and ledger.failover().topics)

    def is_own(self, copy: TopicPartition, committed: int | None) -> bool:
        """Whether a group may have committed this offset on the copy itself, because the copy was drained in a
        batch."""
        return committed is not None and self._in_batches and copy in self.takeover_ends

    def take_in_queued(self) -> TakenIn | None:
        """Takes in the queued records. Returns what was taken in since the last call.

        None: the queue overflowed. `MirrorReading` then reads MM2's topics, and until that is done no known offset
        counts.
        """
        if (heard := self.queue.take()) is None:
            return None
        for syncs, checkpoints in heard:
            self._take_syncs(syncs)
            self.take_checkpoints(checkpoints)
        taken_in, self._taken_in = self._taken_in, TakenIn(set(), set())
        return taken_in

    def begin(self, ledger: Ledger, topics: MirrorTopics | None) -> None:
        """Loads the ledger's content, once. Raises ClusterUnreachable, RightsMissing."""
        if not self._is_loaded:
            self._ids = self._stored.load(ledger, self.histories, topics.syncs if topics else "")
            load_truncations(ledger, self.source_logs, self.target_logs)
            self.cut_logs.note_unexplained(self.histories.emptied())
            self.cut_logs.note_unexplained(filter(self.lost_tail, self.source_logs.truncations))
            self.histories.exact.renew(ledger)
            self._topics, self._is_loaded = topics, True
        if topics is not None and is_recreated(self._ids, topics.checkpoints_on, topics.checkpoints):
            self.checkpoints.count_again()

    def begun(self) -> None:
        """Notes that MM2's topics were read to their end."""
        self.settle_checkpoints()
        ends_before = any(ids.checkpoints_since > self.checkpoints.read_to for ids in self._ids.values())
        if self.checkpoints.recreated or ends_before:
            # The topic counts from 0, so all that it has is new.
            self.checkpoints.recreated = False
            self._ids = {topic: replace(ids, checkpoints_since=NOWHERE) for topic, ids in self._ids.items()}

    def note_syncs_topic(self, cluster: Reader, name: str) -> None:
        """Counts the offsets of the offset-syncs topic from 0 if it was recreated. Raises ClusterUnreachable,
        RightsMissing."""
        if is_recreated(self._ids, cluster, name):
            self.count_syncs_again(name)

    def settle_checkpoints(self) -> None:
        """Notes that the checkpoints topic was read to its end. For copies that were recreated or truncated, only later
        checkpoints count."""
        if self.checkpoints.doubtful:
            since = self.checkpoints.settle()
            for topic, ids in self._ids.items():
                position = since.get(self._remote.get(topic, ""))
                self._ids[topic] = ids if position is None else replace(ids, checkpoints_since=position)

    def take_records(self, records: Iterable[Placed]) -> None:
        """Takes in records of the offset-syncs topic, in its order."""
        for record in records:
            if (sync := sync_of(record)) is None:
                self.histories.reach(record.position)
            else:
                self._take_syncs((sync,))

    def take_checkpoints(self, checkpoints: Iterable[CheckpointSeen]) -> None:
        """Takes in checkpoints, in the order of their topic."""
        self._taken_in.groups.update(self.checkpoints.take(checkpoints))

    def count_syncs_again(self, name: str) -> None:
        """Counts offsets of the recreated offset-syncs topic from 0."""
        log.warning("%s was recreated: Lockstep reads its offset-syncs from the start", name)
        self.histories.forget_positions()
        self._stored.forget_positions()
        self._ids = {topic: replace(ids, syncs_since=NOWHERE) for topic, ids in self._ids.items()}

    def _take_syncs(self, syncs: Iterable[SyncSeen]) -> None:
        for sync in syncs:
            ids, where = self._ids.get(sync.topic), TopicPartition(sync.topic, sync.partition)
            is_old = ids is not None and sync.position <= ids.syncs_since
            if is_old or topic_name_fault(sync.topic):
                self.histories.reach(sync.position)
                continue
            end = self.target_logs.highest.get(where, 0)
            if self.histories.is_news(where, sync.position):
                self.cut_logs.note_sync(sync, self.histories.of(where))
            found = self.histories.take(where, sync.upstream, sync.downstream, sync.position, end)
            if found is Discontinuity.TRUNCATION:
                self.target_logs.note_truncation(where, sync.downstream)
                self._forget_truncated(where)
            if found is not None:
                self._taken_in.restarted.add(where)
                self.source_logs.locate(where, sync.upstream)

    def note_target_end(self, where: TopicPartition, remote: TopicPartition, end: int) -> None:
        """Takes in the end of a log on the target. If the log lost its tail, drops everything known of it. `where`: the
        partition on the source."""
        highest = self.target_logs.highest.get(where, 0)
        if not self.target_logs.note_end(where, end, self.histories.reached(where)):
            return
        log.warning("%s lost its tail: Lockstep forgets what it knew of its offsets", remote)
        self.cut_logs.note_copy_cut(where, self.histories.of(where))
        if (history := self.histories.with_empty(where)) is not None:
            history.empty(highest)
            self._stored.note(where)
        self._forget_truncated(where)

    def generation(self, where: TopicPartition) -> int:
        """Returns how often the partition's log was truncated or recreated, on either side."""
        return self.source_logs.generation(where) + self.target_logs.generation(where)

    def lost_tail(self, where: TopicPartition) -> bool:
        """Whether the log on the source lost its tail, and MM2 has sent no sync of later records.

        Until then the target has records that the source lacks, so its end tells nothing about a group that read the
        source.
        """
        truncation, history = self.source_logs.truncations.get(where), self.histories.of(where)
        if truncation is None or truncation.at == NO_OFFSET_BEHIND:
            return False
        return history is None or history.latest.upstream <= truncation.at

    def note_source_end(self, where: TopicPartition, end: int) -> None:
        """Takes in the end of a log on the source. Limits restarts to it, because MM2 was never beyond it. Refuses
        syncs beyond it: another client forged them, or the log lost its tail."""
        if self.source_logs.note_end(where, end):
            self._note_source_cut(where, end)
        history = self.histories.of(where)
        if history is None:
            return
        beyond = history.drop_beyond(end)
        if beyond:
            log.warning("%s: Lockstep refused an offset-sync beyond the source's end (%s)", where, end)
            self.refused["sync"] += beyond
        if beyond or history.cap_restarts(end):
            self._stored.note(where)

    def note_source_shrunk(self, ledger: Ledger, listed: Mapping[str, int], ends: Mapping[TopicPartition, int]) -> None:
        """Notes in the ledger which logs on the source became shorter than another reader saw them.

        `listed`: partitions by topic of the source. Raises ClusterUnreachable.
        """
        for where, end in ends.items():
            if self.source_logs.note_shrunk(where, end):
                self._note_source_cut(where, end)
        self.save_truncations(ledger, listed)

    def _note_source_cut(self, where: TopicPartition, end: int) -> None:
        log.warning("%s lost its tail on the source: Lockstep moves no group that was beyond %s", where, end)
        self.cut_logs.note_source_cut(where, self.histories.of(where), end)

    def drop_untrue(self, group: str, where: TopicPartition) -> None:
        """Forgets a group's last answer if newer syncs contradict it, because the target's log was truncated."""
        answer, history = self.answers.get((group, where)), self.histories.of(where)
        if answer is None or history is None:
            return
        at = history.contradicts(Pair(answer.upstream, answer.downstream))
        if at is not None:
            self.target_logs.note_truncation(where, at)
            self._forget_truncated(where)

    def checkpoint(self, group: str, where: TopicPartition, remote: TopicPartition) -> Pair | None:
        """Returns MM2's checkpoint of a group. None if no sync of the partition is known: MM2 had one, so the
        checkpoint is old.

        Refuses a checkpoint that lies beyond what the syncs allow.
        """
        history, key = self.histories.of(where), (group, remote)
        found = None if history is None else self.checkpoints.newest.get(key)
        if history is None or found is None or history.reaches(found):
            return found
        if self._beyond.get(key) != found:
            self._beyond[key] = found
            self.refused["checkpoint"] += 1
            said = "%s: Lockstep did not use MM2's checkpoint of %s (%d -> %d): the offset-syncs contradict it"
            log.warning(said, group, remote, *found)
        return None

    def _forget_truncated(self, where: TopicPartition) -> None:
        self.histories.exact.forget(where)
        self.answers = {key: answer for key, answer in self.answers.items() if key[1] != where}
        self._doubt_checkpoints(where.topic)

    def _doubt_checkpoints(self, topic: str) -> None:
        """Ignores the checkpoints of the topic that MM2 has written so far, even after a restart of the job."""
        if (remote := self._remote.get(topic)) is None:
            self._doubted.add(topic)
            return
        self.checkpoints.doubt(remote)
        self._ids[topic] = replace(self._ids[topic], checkpoints_since=self.checkpoints.read_to)

    def forget_groups(self, groups: Collection[str]) -> None:
        """Forgets groups that the source no longer has."""
        self.answers = {key: answer for key, answer in self.answers.items() if key[0] not in groups}
        self._beyond = {key: pair for key, pair in self._beyond.items() if key[0] not in groups}
        self.source_logs.forget_first(groups)
        self.target_logs.forget_first(groups)
        self.checkpoints.forget_groups(groups)

    def unrecognized(self, topics: Iterable[str]) -> set[str]:
        """Returns the topics whose ids were not compared yet."""
        return set(topics) - self._remote.keys()

    def recognize(self, remote: Mapping[str, str], source: Mapping[str, str], target: Mapping[str, str]) -> set[str]:
        """Compares ids of topics. Forgets topics that were recreated and returns their names on the source.

        `remote`: the target's names by the source's. `source`, `target`: ids by name, "" if a cluster has none.
        """
        recreated: set[str] = set()
        for topic in remote.keys() & source.keys():
            known, seen = self._ids.get(topic), TopicIds(source[topic], target.get(remote[topic], ""))
            if topic not in self._remote and remote[topic] in target:
                self._remote[topic] = remote[topic]
                self.checkpoints.believe_since(remote[topic], known.checkpoints_since if known else NOWHERE)
            if known is None or not known.target:
                self._ids[topic] = replace(known or seen, source=seen.source, target=seen.target)
            elif (known.source, known.target) != (seen.source, seen.target) and seen.target:
                self._ids[topic] = replace(seen, syncs_since=self.histories.position)
                self._doubted.add(topic)
                self._forget_recreated(topic, source=known.source != seen.source, target=known.target != seen.target)
                recreated.add(topic)
            if topic in self._doubted and topic in self._remote:
                self._doubted.discard(topic)
                self._doubt_checkpoints(topic)
        return recreated

    def _forget_recreated(self, topic: str, *, source: bool, target: bool) -> None:
        for where in self.histories.partitions(topic):
            history = self.histories.of(where)
            if target:
                self.cut_logs.note_copy_cut(where, history)
            if source:
                self.cut_logs.note_source_cut(where, history, 0)
        self._drop(topic)
        # A log that is the same still has the truncations that it had.
        if source:
            self.source_logs.forget(topic)
        if target:
            self.target_logs.forget(topic)

    def _drop(self, topic: str) -> None:
        self._stored.note(*self.histories.drop(topic))
        self.answers = {key: answer for key, answer in self.answers.items() if key[1].topic != topic}

    def topics(self) -> frozenset[str]:
        """Returns the topics in memory, by their names on the source."""
        return self.histories.topics() | self._remote.keys()

    def forget_unlisted(
        self, listed: Mapping[str, int], now: float, absent: Callable[[Collection[str]], Collection[str]]
    ) -> None:
        """Forgets topics and partitions that the source lacked for long enough, at each full comparison. Metadata may
        lag.

        `listed`: partitions by topic of the source. `now`: in monotonic seconds. `absent`: returns the topics that a
        broker says are gone; others may only be hidden from this principal.
        """
        unlisted: list[str | TopicPartition] = [*(self.topics() - listed.keys()), *self.histories.beyond(listed)]
        self._unlisted.observe(unlisted, len(listed), now)
        lasting = self._unlisted.lasting()
        topics = [one for one in lasting if isinstance(one, str)]
        gone = absent(topics) if topics else ()
        self.gone([one for one in lasting if not isinstance(one, str) or one in gone])

    def gone(self, unlisted: Collection[str | TopicPartition]) -> None:
        """Forgets topics or partitions that the source does not have."""
        for one in unlisted:
            if isinstance(one, TopicPartition):
                self._stored.note(one)
                self.histories.drop_partition(one)
                continue
            self._drop(one)
            self.source_logs.forget(one)
            self.target_logs.forget(one)
            if (ids := self._ids.get(one)) is not None:
                # Syncs that come again must not bring the history back.
                self._ids[one] = replace(ids, syncs_since=self.histories.position)
                self._doubt_checkpoints(one)
            self._remote.pop(one, None)

    def save(self, ledger: Ledger, listed: Mapping[str, int]) -> None:
        """Writes changes to the ledger, for partitions that the source has. Raises ClusterUnreachable.

        `listed`: partitions by topic of the source.
        """
        store_truncations(ledger, self.source_logs, self.target_logs, listed)
        # First, because a process that dies in between reads the syncs that ended these runs once more.
        self.histories.exact.renew(ledger)
        self._stored.save(ledger, self.histories, self._ids, listed, self._topics)

    def save_truncations(self, ledger: Ledger, listed: Mapping[str, int]) -> None:
        """Writes to the ledger only if a truncation was seen or a sync refused, because a command that starts now must
        know."""
        if self.source_logs.unsaved or self.target_logs.unsaved or self._stored.lost_evidence:
            self.save(ledger, listed)


class KnownCheckpoints:
    """MM2's newest checkpoint of each group and partition, without checkpoints from before a recreation or truncation.

    MM2's topic keeps checkpoints of deleted topics, and nothing in it tells them apart.
    """

    def __init__(self) -> None:
        self.newest: dict[GroupPartition, Pair] = {}
        """The newest checkpoints, by group and partition on the target."""
        self.read_to = NOWHERE
        """The highest offset that was seen in the checkpoints topic."""
        self.recreated = False
        """Whether the topic was recreated since `OffsetMemory` last adjusted its offsets in that topic."""
        self._positions: dict[GroupPartition, int] = {}
        self._since: dict[str, int] = {}
        self.doubtful: set[str] = set()
        """Remote topics whose checkpoints do not count until `settle`."""
        self._unlisted = Absence[GroupPartition](FORGOTTEN_AFTER)

    def take(self, checkpoints: Iterable[CheckpointSeen]) -> set[str]:
        """Takes in checkpoints, in the order of their topic. Returns their groups. Leaves out impossible topic
        names."""
        groups: set[str] = set()
        for seen in checkpoints:
            self.read_to = max(self.read_to, seen.position)
            if topic_name_fault(seen.topic):
                continue
            groups.add(seen.group)
            key = (seen.group, TopicPartition(seen.topic, seen.partition))
            if seen.topic not in self.doubtful and seen.position > self._since.get(seen.topic, NOWHERE):
                self.newest[key], self._positions[key] = Pair(seen.upstream, seen.downstream), seen.position
        return groups

    def catching_up(self, topics: MirrorTopics) -> Iterator[None]:
        """Takes in the new records of the topic, a piece at a time. A topic that ends earlier than before was
        recreated. Raises ClusterUnreachable, RightsMissing."""
        known = self.read_to
        for chunk in topics.checkpoints_on.read_log_in_chunks(topics.checkpoints, known + 1):
            if chunk.whole and known != NOWHERE:
                self.count_again()
                known = NOWHERE
            self.take(checkpoints_of(chunk.records))
            if chunk.records:
                self.read_to = max(self.read_to, chunk.records[-1].position)
                yield

    def count_again(self) -> None:
        """Counts offsets of the recreated topic from 0."""
        self.newest, self._positions, self._since, self.read_to = {}, {}, {}, NOWHERE
        self._unlisted = Absence(FORGOTTEN_AFTER)
        self.recreated = True

    def believe_since(self, topic: str, position: int) -> None:
        """Drops checkpoints of a remote topic up to the offset `position` of the checkpoints topic."""
        since = self._since[topic] = max(position, self._since.get(topic, NOWHERE))
        of_topic = (key for key in self.newest if key[1].topic == topic)
        self._drop({key for key in of_topic if self._positions.get(key, since) <= since})

    def doubt(self, topic: str) -> None:
        """Ignores the checkpoints of a remote topic that was recreated or truncated, until `settle`."""
        self.believe_since(topic, self.read_to)
        self.doubtful.add(topic)

    def settle(self) -> dict[str, int]:
        """Lets doubtful topics count again. The checkpoints topic was read to its end; its records so far may be about
        the former topic. Returns the offset from which checkpoints count, by remote topic."""
        settled = dict.fromkeys(self.doubtful, self.read_to)
        for topic, position in settled.items():
            self.believe_since(topic, position)
        self.doubtful.clear()
        return settled

    def forget_groups(self, groups: Collection[str]) -> None:
        self._drop({key for key in self.newest if key[0] in groups})

    def forget_unlisted(self, listed: Listed, groups: Collection[str], now: float) -> None:
        """Forgets partitions that were not replicated and groups that the source lacked, for long enough, at each full
        comparison. A record in MM2's topic can name any.

        `groups`: the source's groups; empty if unknown. `now`: in monotonic seconds.
        """
        copies = {remote: listed.target[remote] for remote in replicated_topics(listed).values()}
        unlisted = [key for key in self.newest if (groups and key[0] not in groups) or _lacks(copies, key[1])]
        self._unlisted.observe(unlisted, min(len(listed.source), len(listed.target)), now)
        self._drop(self._unlisted.lasting())

    def _drop(self, keys: Collection[GroupPartition]) -> None:
        for key in keys:
            self.newest.pop(key, None)
            self._positions.pop(key, None)


def _lacks(topics: Mapping[str, int], where: TopicPartition) -> bool:
    """Whether these topics lack a partition. `topics`: partitions of each, 0 if unknown."""
    count = topics.get(where.topic)
    return count is None or 0 < count <= where.partition
