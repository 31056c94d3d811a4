"""What clients do on the source during a round. Producers write five topics, each in its own manner. Groups with known
positions read, commit, and stop at the end, near it, or anywhere."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from bench.pair import commit_all
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.groups import Offsets
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

Entry = tuple[int, int]
"""The offset of a record and its id; a log is a sequence of these, by offset."""

FLUSH_WITHIN = 60.0

COMPACTED: Final = (
    ("cleanup.policy", "compact"),
    # The cleaner leaves the last segment alone: a new one every other second gives it something to do.
    ("segment.ms", "2000"),
    ("min.cleanable.dirty.ratio", "0.01"),
)
CLEANER: Final = {"log.cleaner.backoff.ms": "1000"}
"""Of the brokers, so that a round sees several cleanings; the default is 15 s."""


@dataclass(frozen=True, slots=True)
class TopicKind:
    """A manner of writing: `burst` records every `gap` seconds on average, keys drawn from `keys`; 0: no more."""

    name: str
    partitions: int
    burst: int
    gap: float
    keys: int = 1000
    configs: tuple[tuple[str, str], ...] = ()
    transactions: bool = False


TOPIC_KINDS: Final = (
    TopicKind("busy", 2, burst=40, gap=0.1),
    TopicKind("quiet", 1, burst=1, gap=2.0),
    TopicKind("compacted", 1, burst=20, gap=0.1, keys=200, configs=COMPACTED),
    TopicKind("transacted", 2, burst=20, gap=0.15, transactions=True),
    TopicKind("idle", 1, burst=0, gap=1.0),
)
FIRST = 60
"""Records in each partition before the round begins."""

ABORTED = 0.2
"""Share of the transactions that are aborted."""


@dataclass(frozen=True)
class Topic:
    """One topic of one round, and what a consumer that reads committed records could have read of it, by partition."""

    name: str
    kind: TopicKind
    written: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.kind.partitions)]


_ids = itertools.count()


def name_of(value: bytes | None) -> int:
    return int((value or b"-1").split(b" ", 1)[0])


class Load:
    """Writes to one topic; records count as written when the broker has them and their transaction is committed."""

    def __init__(self, bootstrap: str, topic: Topic, seed: int) -> None:
        own = {"transactional.id": topic.name} if topic.kind.transactions else {}
        # What is wrong is raised; librdkafka's own lines would say that a new coordinator is still loading.
        config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 2}
        self._producer = Producer({**config, **own})
        self._topic, self._random = topic, random.Random(seed)
        self._delivered: list[tuple[TopicPartition, Entry]] = []
        self._faults: list[str] = []
        if own:
            self._producer.init_transactions(FLUSH_WITHIN)

    def begin(self) -> None:
        """Some records in each partition. The last word of a transacted one is a committed transaction."""
        self._write(FIRST * self._topic.kind.partitions, commit=True)

    def run(self, stop: threading.Event) -> None:
        """Goes on until `stop`. Raises LockstepError when a record could not be written."""
        kind = self._topic.kind
        while kind.burst and not stop.wait(self._random.expovariate(1 / kind.gap)):
            self._write(kind.burst, commit=self._random.random() >= ABORTED)
        # A record in each partition that was not there before anything was killed: when the target has it, nothing is
        # being sent again any more.
        if kind.burst:
            self._write(kind.partitions, commit=True)

    def _write(self, count: int, *, commit: bool) -> None:
        transactions = self._topic.kind.transactions
        if transactions:
            self._producer.begin_transaction()
        for number in range(count):
            key = b"key-%d" % self._random.randrange(self._topic.kind.keys)
            value = b"%d %s" % (next(_ids), b"x" * self._random.randrange(20, 200))
            partition = number % self._topic.kind.partitions
            self._producer.produce(self._topic.name, value, key, partition=partition, on_delivery=self._take)
        left = self._producer.flush(FLUSH_WITHIN)
        if left or self._faults:
            raise LockstepError(f"{self._topic.name}: {left} records not written in time; {self._faults[:3]}")
        if transactions:
            finish = self._producer.commit_transaction if commit else self._producer.abort_transaction
            finish(FLUSH_WITHIN)
        if commit or not transactions:
            for where, entry in self._delivered:
                self._topic.written[where].append(entry)
        self._delivered.clear()

    def _take(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._faults.append(error.str())
            return
        where = TopicPartition(self._topic.name, message.partition() or 0)
        self._delivered.append((where, (message.offset() or 0, name_of(message.value()))))


END, NEAR, ANYWHERE = PLACES = ("at the end", "near the end", "anywhere")

NEAR_RECORDS: Final = 200
"""The farthest that a group near the end is behind it."""

EVERY = 0.5
"""Seconds between two commits of a group."""


@dataclass
class DrillReader:
    """One group on one topic. `read`: how many records of each partition; `stops`: share of the round after which."""

    group: str
    topic: Topic
    place: str
    behind: int
    stops: float
    read: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))

    def advance(self, done: float, chance: random.Random) -> None:
        """`done`: share of the round that is over; 1 when nothing more is written."""
        for where in self.topic.partitions:
            count = len(self.topic.written[where])
            if self.place == END:
                self.read[where] = count
            elif self.place == NEAR:
                self.read[where] = max(self.read[where], count - self.behind)
            elif done < self.stops:
                self.read[where] = chance.randint(self.read[where], count)

    def positions(self) -> Offsets:
        """The offset after the last record read, of each partition."""
        written = self.topic.written
        return {
            where: written[where][self.read[where] - 1][0] + 1 if self.read[where] else 0
            for where in self.topic.partitions
        }


def readers(topics: Sequence[Topic], chance: random.Random) -> list[DrillReader]:
    return [
        DrillReader(
            f"{topic.name}-{place.replace(' ', '-')}",
            topic,
            place,
            behind=chance.randint(1, NEAR_RECORDS if topic.kind.burst > 1 else 5),
            stops=chance.uniform(0.1, 1.0),
        )
        for topic in topics
        for place in PLACES
    ]


class Commits:
    """Commits for all readers. `lock`: held, nothing is committed."""

    def __init__(
        self, source: KafkaCluster, readers: Sequence[DrillReader], seconds: float, chance: random.Random
    ) -> None:
        self._source, self._readers, self._seconds, self._random = source, readers, seconds, chance
        self.lock = threading.Lock()
        # Each at offset 0, so that everybody knows the groups before the round begins.
        self.committed: dict[str, Offsets] = {one.group: dict.fromkeys(one.topic.partitions, 0) for one in readers}
        commit_all(source, self.committed)

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. Raises LockstepError when a commit is refused."""
        ticks = 0
        while not stop.wait(EVERY):
            ticks += 1
            self.commit(min(ticks * EVERY / self._seconds, 0.999))

    def commit(self, done: float) -> None:
        with self.lock:
            for one in self._readers:
                one.advance(done, self._random)
            offsets: dict[str, Offsets] = {one.group: one.positions() for one in self._readers}
            commit_all(self._source, {group: of for group, of in offsets.items() if self.committed[group] != of})
            self.committed = offsets
