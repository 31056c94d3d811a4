"""A flow in memory whose records are compared round by round: logs, offset-syncs and a clock moved by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.verify.continuous_comparison import ComparedFlow, ContinuousComparison
from sinks.verify.flow_progress import FlowProgress
from sinks.verify.record_jobs import ByteBudget
from sinks.verify.what_to_compare import SurveyedSide
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import World, put_topic
from tests.sinks.verify.memory_jobs import MemoryJobs
from tests.sinks.verify.mirrored_log import MirroredLog, Record

ROUND = 10.0
NOON = 1_700_000_000.0


def records(count: int, first: int = 0) -> list[Record]:
    """Each another one."""
    return [Record(at, b"k%d" % at, b"v%d" % at, None, 1000 + at) for at in range(first, first + count)]


@dataclass
class VerifiedWorld:
    """`rate`: bytes a second; a record counts 64. `least`: offsets of a window, and of a piece. `cautious`: of
    what may be read at once in any case."""

    rate: int = 64 * 1000
    least: int = 1
    cautious: int = 1000
    world: World = field(default_factory=World)
    jobs: MemoryJobs = field(default_factory=lambda: MemoryJobs({}, {}))
    progress: FlowProgress = field(default_factory=FlowProgress)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.budget = ByteBudget(self.rate, 2 * ROUND, self.now, least=self.least, cautious=self.cautious)
        self.world.source.create_log(self.world.settings.internal.offset_syncs, 1, {})
        self.restart()

    def restart(self) -> None:
        """Another process goes on, with the ledger alone."""
        world, internal = self.world, self.world.settings.internal
        self.ledger = world.ledger()
        both = ComparedFlow(
            SurveyedSide(world.source, world.source_records),
            SurveyedSide(world.target, world.target_records),
            self.ledger,
            MirrorTopics(internal.offset_syncs, world.source, internal.checkpoints, world.target),
        )
        self.comparison = ContinuousComparison(
            world.settings, both, lambda: self.jobs, self.progress, self.budget, self.now, least=self.least
        )

    def put(
        self,
        topic: str,
        source: Sequence[Record],
        target: Sequence[Record],
        starts: tuple[int, int] = (0, 0),
        ends: tuple[int, int] | None = None,
    ) -> None:
        """The topic has these records now, and its copy those."""
        sides = (
            (topic, source, self.world.source, self.world.source_records, self.jobs.source),
            (f"a.{topic}", target, self.world.target, self.world.target_records, self.jobs.target),
        )
        for side, (name, there, cluster, reader, read) in enumerate(sides):
            if name not in cluster.topics:
                put_topic(cluster, name)
            end = ends[side] if ends else max((one.offset + 1 for one in there), default=starts[side])
            reader.logs[TopicPartition(name, 0)] = MemoryLog(start=starts[side], end=end)
            read[name] = there  # type: ignore[index]

    def sync(self, topic: str, *pairs: tuple[int, int]) -> None:
        """MM2 writes these offset-syncs."""
        syncs = [encode_record(OffsetSync(TopicPartition(topic, 0), *pair)) for pair in pairs]
        self.world.source.append_log(self.world.settings.internal.offset_syncs, syncs)

    def put_log(self, log: MirroredLog, source_end: int | None = None, target_end: int | None = None) -> None:
        """A mirrored log as it was when both sides had come so far."""
        topic = f"t{log.number}"
        ours = [one for one in log.source if source_end is None or one.offset < source_end]
        theirs = [one for one in log.target if target_end is None or one.offset < target_end]
        ends = (
            log.source_end if source_end is None else source_end,
            target_end if target_end is not None else max((one.offset + 1 for one in theirs), default=log.starts[1]),
        )
        self.put(topic, ours, theirs, log.starts, ends)

    def run(self, rounds: int = 1) -> None:
        """So many rounds, ten seconds apart."""
        for _ in range(rounds):
            self.now += ROUND
            self.comparison.run(self.now, NOON + self.now)

    def differences(self, topic: str) -> Counter[str]:
        """By kind, as they are known now."""
        found = self.progress.partitions[TopicPartition(topic, 0)].known.counts
        return Counter({str(kind): count for kind, count in found.items() if count})


def counted(found: Counter[tuple[str, int]]) -> Counter[str]:
    """Kinds of what is to be found."""
    return Counter(name.split(" ")[0] for name, _ in found.elements())
