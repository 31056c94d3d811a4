"""What a process remembers of MM2's offsets, over clusters in memory that outlive it."""

from __future__ import annotations

from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.sync_history import Pair
from sinks.ledger.ledger import Ledger
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync, TopicPartition
from tests.memory.memory_cluster import MemoryCluster

SYNCS, CHECKPOINTS = "mm2-offset-syncs.b.internal", "a.checkpoints.internal"
X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)


class World:
    """MM2's topics and a ledger, and memories that begin from them."""

    def __init__(self) -> None:
        self.a, self.b = MemoryCluster("a"), MemoryCluster("b")
        self.topics = MirrorTopics(SYNCS, self.a, CHECKPOINTS, self.b)
        self.a.create_log(SYNCS, 1, {})

    @property
    def ledger(self) -> Ledger:
        return Ledger("lockstep-ledger.a.internal", self.b, self.b, 1)

    def sync(self, *pairs: tuple[int, int]) -> None:
        self.a.append_log(SYNCS, [encode_record(OffsetSync(X, *pair)) for pair in pairs])

    def begun(self) -> OffsetMemory:
        memory = OffsetMemory()
        MirrorReading(memory, self.topics).load(self.ledger)
        return memory


def pairs(memory: OffsetMemory) -> list[Pair]:
    history = memory.histories.of(X)
    return list(history.pairs()) if history else []


def checkpoints(world: World, *pairs: tuple[int, int]) -> None:
    world.b.create_log(CHECKPOINTS, 1, {})
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, *pair, "")) for pair in pairs])
