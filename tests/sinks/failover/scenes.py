"""A flow in memory with records, an MM2 moved by hand, producers that go on writing, and time that is waited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sinks.every_kind.controller import PassContext
from sinks.failover.fence_proof import Proof, Waiting
from sinks.failover.journal import Journal
from sinks.failover.scene import Choices, Scene
from sinks.failover.source_end_offsets import EndOffsets, SourceEndOffsetStore
from sinks.failover.steps import failover_steps
from sinks.kafka.ports.acl_binding import EVERYONE
from sinks.kinds.offsets.stored_memory import stored_histories
from sinks.ledger.audit import Audit
from sinks.ledger.failover_record import Begun, Command, FailoverRecord, Step
from sinks.ledger.kept_end_offsets import LatestSync, kept_end_offsets
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog, MemoryRecords
from tests.memory.memory_transactions import MemoryTransactions
from tests.sinks.builders import NOON, World, flow_settings, memory_ports, put_topic

ME = Begun("me", "", "a test", "me@here:1")


class Died(Exception):
    """The process dies here."""


@dataclass
class Stage:
    """Topics `x` (two partitions) and `y` on a, copied to b; `producers` are called while a command waits."""

    world: World = field(default_factory=World)
    here: MemoryRecords = field(default_factory=lambda: MemoryRecords("a"))
    there: MemoryRecords = field(default_factory=lambda: MemoryRecords("b"))
    now: float = 0.0
    producers: list[Callable[[], None]] = field(default_factory=list)
    mirrors: bool = True
    said: list[str] = field(default_factory=list)
    choices: Choices = field(default_factory=lambda: Choices(Proof(10.0, 5.0), drain_within=60.0))
    transactions: MemoryTransactions = field(init=False)

    def __post_init__(self) -> None:
        self.transactions = MemoryTransactions(self.here)
        for topic, partitions in (("x", 2), ("y", 1)):
            put_topic(self.world.source, topic, partitions)
            put_topic(self.world.target, self.named(topic), partitions)
            for number in range(partitions):
                self.here.logs[TopicPartition(topic, number)] = MemoryLog()
                self.there.logs[TopicPartition(self.named(topic), number)] = MemoryLog()
        self.world.settle()

    def write(self, topic: str, partition: int = 0, records: int = 1, *, super_user: bool = False) -> None:
        """A producer, whom a fence keeps away unless it is a super user."""
        if not super_user and any(
            acl.resource_name == topic and acl.permission == "DENY" and acl.principal == EVERYONE
            for acl in self.world.source_acls.bindings
        ):
            return
        log = self.here.logs[TopicPartition(topic, partition)]
        for _ in range(records):
            text = b"%d" % log.end
            log.append(text, text, timestamp=1000 + log.end)

    def named(self, topic: str) -> str:
        """What a topic of the source is called on the target."""
        return f"a.{topic}"

    def copy(self) -> None:
        """MM2, which copies all there is; markers stay behind."""
        committed = self.world.settings.isolation == "read_committed"
        for where, log in self.here.logs.items():
            copied = self.there.logs.get(TopicPartition(f"a.{where.topic}", where.partition))
            if copied is None:
                continue
            end, gone = (log.stable, log.aborted) if committed else (log.end, set())
            seen = [record for record in log.records if record.offset < end and record.offset not in gone]
            for record in seen[len(copied.records) :]:
                copied.append(record.key, record.value, record.timestamp)

    def sleep(self, seconds: float) -> None:
        """Time passes, and everybody does what they do."""
        self.now += seconds
        for produce in self.producers:
            produce()
        if self.mirrors:
            self.copy()

    def ledger(self) -> Ledger:
        return self.world.ledger()

    def record(self) -> FailoverRecord:
        """As the ledger has it now."""
        return self.ledger().failover()

    def scene(self, begun: Begun = ME, *, answers: bool | None = None, **journal: Any) -> Scene:
        """A new process that runs commands. `answers`: what it believes of the source; None: what is true."""
        world = self.world
        audit = Audit(world.settings.internal.audit, world.target, 1, begun.who, lambda: NOON)
        ports = [
            replace(memory_ports(*side), records=partial(self._records, log), transactions=self.transactions)
            for side, log in (
                ((world.source, world.source_acls, world.source_users, world.source_groups), self.here),
                ((world.target, world.target_acls, world.target_users, world.target_groups), self.there),
            )
        ]
        return Scene(
            world.settings,
            *ports,
            Journal(world.settings.flow, self.ledger(), audit, begun, now=self.time, **journal),
            self.choices,
            Waiting(lambda: self.now, self.sleep),
            self.said.append,
            lambda copies: "offsets",
            failover_steps,
            world.source.reachable if answers is None else answers,
        )

    def time(self) -> datetime:
        """Noon, and what was waited since."""
        return NOON + timedelta(seconds=self.now)

    @staticmethod
    def _records(log: MemoryRecords, isolation: str) -> MemoryRecords:
        return replace(log, committed=isolation == "read_committed")

    def states(self) -> list[tuple[str, str]]:
        """The events of the failover: step, and state after it."""
        events = [event for event in self.world.events() if event.kind == "failover"]
        return [(event.key[1], (event.after or "").strip('"')) for event in events]


def stage(**settings: Any) -> Stage:
    """With ten records in each partition, copied."""
    built = Stage(World(flow_settings(**settings)))
    for where in built.here.logs:
        built.write(where.topic, where.partition, 10)
    built.copy()
    return built


@dataclass(frozen=True)
class MortalScene(Scene):
    """A process that dies at a step: before it is done, or after it. `topic`: once that one is fenced, too."""

    at: Step | None = None
    after: bool = False
    topic: str | None = None

    def steps(self) -> Mapping[Step, Callable[[], None]]:
        steps = super().steps()

        def die() -> None:
            goes_on = self.topic is not None and self.topic not in self.journal.record.topics
            if (goes_on or self.after) and self.at is not None:
                steps[self.at]()
            if not goes_on:
                raise Died

        return steps if self.at is None else {**steps, self.at: die}


def mortal(scene: Scene, at: Step, *, after: bool, topic: str | None = None) -> MortalScene:
    """The same process, which dies."""
    same = {one.name: getattr(scene, one.name) for one in fields(scene)}
    return MortalScene(**same, at=at, after=after, topic=topic)


def before_step(scene: Scene, command: Command, at: Step, act: Callable[[], None]) -> Scene:
    """The same scene, where something happens right before a step of a command."""

    def steps(scene: Scene) -> Mapping[Step, Callable[[], None]]:
        found = failover_steps(scene)

        def step() -> None:
            if scene.journal.record.doing is command:
                act()
            found[at]()

        return {**found, at: step}

    return replace(scene, does=steps)


def look(built: Stage, now: float, keeper: SourceEndOffsetStore | None = None) -> None:
    """What the job does after a pass."""
    scene = built.scene()
    context = PassContext(now, scene.listed(), scene.journal.ledger)
    (keeper or store(built)).keep(context)


def store(built: Stage, now_ms: Callable[[], float] = lambda: 1_700_000_000_000.0) -> SourceEndOffsetStore:
    """Of a job that knows the offset-syncs that are in the ledger."""

    def syncs() -> dict[TopicPartition, LatestSync]:
        return {where: LatestSync(*history.latest) for where, history in stored_histories(built.ledger())}

    return SourceEndOffsetStore(built.here, 5.0, now_ms, inline, syncs)


@dataclass(frozen=True, slots=True)
class SeenEndOffsets:
    """`ends`, and when the oldest of them was seen, in ms since the epoch."""

    ends: EndOffsets
    at_ms: int


def known_end_offsets(ledger: Ledger) -> SeenEndOffsets | None:
    """Returns what the ledger keeps; None if no job ever kept it."""
    kept = kept_end_offsets(ledger)
    ends = {topic: one.ends for topic, one in kept.items()}
    return SeenEndOffsets(ends, min(one.at_ms for one in kept.values())) if kept else None
