"""Consumer groups: they read and are reset, MM2 copies, lags, sends again and tells, logs lose records at their start,
in their midst and at their end, topics are recreated."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from sinks.engine.report import Report
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync
from tests.sinks.builders import World
from tests.sinks.machine.hazards import Written
from tests.sinks.machine.mirrored_topic import SOURCE, TARGET, MirroredTopic
from tests.sinks.machine.stage import Stage

SIDES = st.sampled_from([SOURCE, TARGET])
COMPACTED = "clicks"
"""The topic whose policy is to be compacted."""

NAMES, GROUPS = st.sampled_from(["orders", "clicks"]), st.sampled_from(["g", "h"])
SYNCS = "mm2-offset-syncs.b.internal"
THEIRS = "theirs"
"""A group that is on the target alone."""


class GroupsAspect(Stage):
    """`stale`: groups that were behind a truncation of the source, and up to where they have read it. `before`: the
    target's offsets before the pass; `brought`: what the stream brought, `syncs`, `checkpoints`: what it is to
    bring."""

    def populate(self) -> None:
        super().populate()
        self.syncs: list[SyncSeen] = []
        self.checkpoints: list[CheckpointSeen] = []
        self.brought = self.syncs, self.checkpoints
        self.stale: dict[tuple[str, str], int] = {}
        self.source.create_log(SYNCS, 1, {"cleanup.policy": "compact"})
        self.target.create_log(self.world.settings.internal.checkpoints, 1, {"cleanup.policy": "compact"})
        self.mirrored = {name: MirroredTopic(name, self.tell) for name in ("orders", "clicks")}
        for one in self.mirrored.values():
            self.source.create_topics({one.here.topic: TopicSpec(1)})
            self.target.create_topics({one.there.topic: TopicSpec(1)})
            one.produce(12)
            one.copy(12)
        self.world.source_records.compacting = {COMPACTED}
        self.world.target_records.compacting = {self.mirrored[COMPACTED].there.topic}
        orders, clicks = self.mirrored.values()
        self.world.source_groups.offsets = {"g": {orders.here: 8, clicks.here: 12}, "h": {orders.here: 3}}
        self.world.target_groups.offsets[THEIRS] = {self.mirrored["orders"].there: 3}
        self.note_logs()
        self.before = self.world.target_groups.rows()

    @initialize(matching=st.booleans(), committed=st.booleans())
    def translate_by(self, matching: bool, committed: bool) -> None:
        """By the records themselves, or by MM2's offset-syncs alone. `committed`: MM2 copies what is committed."""
        isolation = "read_committed" if committed else "read_uncommitted"
        self.world.settings = replace(self.world.settings, matching=matching, isolation=isolation)
        self.world.source_records.committed = committed
        for one in self.mirrored.values():
            one.committed = committed
        self.begin_anew()

    def note_logs(self) -> None:
        """What the clusters know of the topics' records."""
        world = self.world
        for one in self.mirrored.values():
            world.source_groups.logs[one.here], world.target_groups.logs[one.there] = one.ends
            world.source_records.logs[one.here], world.target_records.logs[one.there] = one.logs()
            for cluster, groups, where in (
                (self.source, world.source_groups, one.here),
                (self.target, world.target_groups, one.there),
            ):
                groups.ids[where.topic] = cluster.topics[where.topic].id

    def tell(self, sync: OffsetSync) -> None:
        """An offset-sync of MM2's, which the stream brings, too."""
        with self.upstream.aside():
            self.source.append_log(SYNCS, [encode_record(sync)])
        where, position = sync.topic_partition, len(self.source.topics[SYNCS].records) - 1
        self.syncs.append(
            SyncSeen(position, where.topic, where.partition, sync.upstream_offset, sync.downstream_offset)
        )

    @rule(name=NAMES, count=st.integers(1, 12))
    def produce(self, name: str, count: int) -> None:
        """Once the clients may have moved, on the copy."""
        self.mirrored[name].produce(count, TARGET if name in self.moved else SOURCE)
        self.note_logs()

    @rule(name=NAMES, count=st.integers(1, 8))
    def producer_writes_in_a_transaction(self, name: str, count: int) -> None:
        """It is open from the first of these records on."""
        if name not in self.moved:
            self.mirrored[name].write_in_transaction(count)
        self.note_logs()

    @rule(name=NAMES, commit=st.booleans())
    def transaction_ends(self, name: str, commit: bool) -> None:
        self.mirrored[name].end_transaction(commit=commit)
        self.note_logs()

    @rule(name=NAMES, count=st.integers(1, 20))
    def mm2_copies(self, name: str, count: int) -> None:
        self.mirrored[name].copy(count)
        self.note_logs()

    @precondition(lambda self: self.target.reachable)
    @rule(name=NAMES)
    def batch_is_drained(self, name: str) -> None:
        one = self.mirrored[name]
        if name not in self.moved and not one.undecided:
            one.copy(len(one.source))
            self.note_logs()
            self.drain(name, [len(one.target)])

    @precondition(lambda self: self.moved and self.target.reachable)
    @rule()
    def fences_are_lifted(self) -> None:
        """No client wrote a copy: what `unfence` warns of is not tried."""
        if all([len(self.mirrored[name].target)] == ends for name, ends in self.moved.items()):
            self.lift_fences()

    @rule(name=NAMES, back=st.integers(0, 15))
    def mm2_sends_again(self, name: str, back: int) -> None:
        self.mirrored[name].restart_mm2(back)

    @rule(group=GROUPS, name=NAMES, share=st.sampled_from([0.0, 0.4, 0.9, 1.0, 1.0]))
    def group_reads_on_the_source(self, group: str, name: str, share: float) -> None:
        """Or is reset: where it is may be before where it was."""
        one = self.mirrored[name]
        self.world.source_groups.offsets.setdefault(group, {})[one.here] = int(share * len(one.source))
        self.stale.pop((group, name), None)

    @rule(group=GROUPS)
    def group_is_deleted_on_the_source(self, group: str) -> None:
        self.world.source_groups.offsets.pop(group, None)

    @rule(group=GROUPS, members=st.integers(0, 1))
    def members_come_and_go_on_the_target(self, group: str, members: int) -> None:
        self.world.target_groups.active[group] = members

    @rule(group=GROUPS, name=NAMES, share=st.sampled_from([0.0, 0.5, 1.0]))
    def group_is_reset_on_the_target(self, group: str, name: str, share: float) -> None:
        one = self.mirrored[name]
        self.world.target_groups.offsets.setdefault(group, {})[one.there] = int(share * len(one.target))

    @rule(group=GROUPS, name=NAMES)
    def mm2_writes_a_checkpoint(self, group: str, name: str) -> None:
        """At most as far as is safe: MM2's own answer is its business."""
        one, at = self.mirrored[name], self.world.source_groups.offsets.get(group, {}).get(self.mirrored[name].here)
        if at is None or at > len(one.source):
            return
        (copied,) = self.moved.get(name, [len(one.target)])
        safe = max(offset for offset in range(copied + 1) if not one.skipped(at, offset))
        topic = self.world.settings.internal.checkpoints
        position = len(self.target.topics[topic].records)
        with self.hazard.aside():
            self.target.topics[topic].records.append(encode_record(Checkpoint(group, one.there, at, safe, "")))
        self.checkpoints.append(CheckpointSeen(position, group, one.there.topic, 0, at, safe))

    @rule(name=NAMES, count=st.integers(2, 20))
    def target_loses_its_tail(self, name: str, count: int) -> None:
        if name not in self.moved:
            self.mirrored[name].truncate_target(count)
            self.note_logs()

    @rule(name=NAMES, count=st.integers(1, 20))
    def source_loses_its_tail(self, name: str, count: int) -> None:
        """Lockstep sees it before the log is as long again: else nothing tells of it."""
        one = self.mirrored[name]
        one.truncate_source(count)
        self.note_logs()
        self.clear()
        report = self.run(self.world, 61.0, everything=True)
        if report is None or Kind.GROUP_OFFSET in report.idle:
            return
        for group, offsets in self.world.source_groups.offsets.items():
            if offsets.get(one.here, 0) > len(one.source):
                self.stale[group, name] = len(one.source)

    @rule(name=NAMES, side=SIDES, share=st.sampled_from([0.3, 0.9, 1.0]))
    def retention_takes_records(self, name: str, side: int, share: float) -> None:
        """Or DeleteRecords does."""
        self.mirrored[name].cut(side, share)
        self.note_logs()

    @rule(side=SIDES, offsets=st.sets(st.integers(0, 40), min_size=1, max_size=20))
    def compaction_takes_records(self, side: int, offsets: set[int]) -> None:
        self.mirrored[COMPACTED].compact(side, offsets)
        self.note_logs()

    @rule(name=NAMES)
    def recreate_the_sources(self, name: str) -> None:
        """Kafka forgets the groups' offsets with a topic."""
        if name in self.moved:
            return
        one = self.mirrored[name]
        one.recreate_source()
        self.source.topics.pop(name)
        self.source.create_topics({name: TopicSpec(1)})
        for offsets in self.world.source_groups.offsets.values():
            offsets.pop(one.here, None)
        self.note_logs()

    @rule(name=NAMES)
    def recreate_the_targets(self, name: str) -> None:
        if name in self.moved:
            return
        one = self.mirrored[name]
        one.recreate_target()
        self.target.topics.pop(one.there.topic)
        reachable, self.target.reachable = self.target.reachable, True
        with self.hazard.aside():
            self.target.create_topics({one.there.topic: TopicSpec(1)})
        self.target.reachable = reachable
        for group, offsets in self.world.target_groups.offsets.items():
            if group != THEIRS:
                offsets.pop(one.there, None)
        self.note_logs()

    @rule(times=st.integers(1, 3))
    def stream_brings_it_again(self, times: int) -> None:
        """A batch of the stream is repeated after a failure."""
        self.world.reconcile.take_in(self.brought[0][-times:], self.brought[1][-times:])

    def run(self, world: World, after: float, everything: bool, force: bool = False) -> Report | None:
        """What MM2 wrote is with the job before it looks."""
        world.reconcile.take_in(self.syncs, self.checkpoints)
        self.brought = self.brought[0] + self.syncs, self.brought[1] + self.checkpoints
        self.syncs, self.checkpoints = [], []
        self.before = world.target_groups.rows()
        return super().run(world, after, everything, force)

    def check_foreign(self) -> None:
        super().check_foreign()
        assert self.world.target_groups.offsets[THEIRS] == {self.mirrored["orders"].there: 3}

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        super().check_pass(world, written, report)
        after = world.target_groups.rows()
        for group, topic, partition in (one.key for one in written if one.kind is Kind.GROUP_OFFSET):
            one = self.mirrored[topic.removeprefix("a.")]
            at, now = world.source_groups.offsets[group][one.here], after[group, topic, partition]
            assert not world.target_groups.active.get(group), f"{group} has members, and was moved"
            assert now > self.before.get((group, topic, partition), -1), f"{group} was moved back"
            assert now <= len(one.target), f"{group} was sent beyond the end"
            is_new = (group, topic, partition) not in self.before
            assert is_new or one.name not in self.moved, f"{group} was moved on a copy where its offset is its own"
            (copied,) = self.moved.get(one.name, [now])
            assert now <= copied, f"{group} was sent behind records of clients that have moved"
            skipped = one.skipped(self.stale.get((group, one.name), at), now)
            assert not skipped, f"{group} at {at} of {topic} was sent to {now}, and skips {skipped}"
        if report is not None and report.everything and Kind.GROUP_OFFSET not in report.idle:
            rows = sum(len(offsets) for offsets in world.source_groups.offsets.values())
            assert report.groups is not None
            assert sum(report.groups.verdicts.values()) == rows, "a group has no verdict"

    def check_quiet(self, report: Report) -> None:
        super().check_quiet(report)
        assert report.groups is not None
        assert not report.groups.verdicts.get(Verdict.PENDING.value), "an offset is still to be written"
