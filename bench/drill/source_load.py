"""What is written to the source during a round: five topics, each in its own manner, and what a consumer can read."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from bench.pair import make_topics
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
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
        """As they are named on the source."""
        return [TopicPartition(self.name, number) for number in range(self.kind.partitions)]


def create(source: KafkaCluster, prefix: str) -> list[Topic]:
    """A topic of each kind, named after it. Raises LockstepError where one cannot be made."""
    topics = [Topic(f"{prefix}-{kind.name}", kind) for kind in TOPIC_KINDS]
    make_topics(source, {one.name: TopicSpec(one.kind.partitions, 1, one.kind.configs) for one in topics})
    return topics


_ids = itertools.count()


def name_of(value: bytes | None) -> int:
    """The id that a record carries."""
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
        self._tell(known=commit or not transactions)

    def _take(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._faults.append(error.str())
            return
        where = TopicPartition(self._topic.name, message.partition() or 0)
        self._delivered.append((where, (message.offset() or 0, name_of(message.value()))))

    def _tell(self, *, known: bool) -> None:
        if known:
            for where, entry in self._delivered:
                self._topic.written[where].append(entry)
        self._delivered.clear()


@contextmanager
def running(loads: Mapping[str, Callable[[threading.Event], None]]) -> Iterator[None]:
    """Each in a thread of its own, by name, while the block runs; then what they raised, if anything."""
    stop, faults = threading.Event(), list[Exception]()

    def run(one: Callable[[threading.Event], None]) -> None:
        try:
            one(stop)
        except Exception as error:  # noqa: BLE001 - raised again below, in the thread that waits
            faults.append(error)

    threads = [threading.Thread(target=run, args=(one,), name=name, daemon=True) for name, one in loads.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
