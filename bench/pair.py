"""What benches run on: clusters with topics, records and groups, MM2 and the job between them, and what runs beside."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Producer

from app.local.jar_sets import PROJECT
from app.local.local_cluster import LocalCluster, started
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Cluster, TopicSpec, chunks
from sinks.kafka.ports.groups import Offsets
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition

SYNCS: Final = "mm2-offset-syncs.b.internal"
HEARTBEATS: Final = {"b->a.emit.heartbeats.enabled": "true"}
"""MM2's own default: the heartbeats that the flow a->b copies."""

AT_ONCE: Final = 250
"""Topics of one request."""

COMMITTED_WITHIN: Final = 300.0
LISTED_WITHIN: Final = 900.0
WRITTEN_WITHIN: Final = 1800.0


@dataclass(frozen=True)
class BenchPair:
    """Two clusters that run, and a client of each. `root`: the folder of all files and logs."""

    a: LocalCluster
    b: LocalCluster
    source: KafkaCluster
    target: KafkaCluster
    root: Path

    def properties(self, **keys: str) -> dict[str, str]:
        """Of a file with the flow a->b."""
        return mirror_properties({"a": self.a.bootstrap, "b": self.b.bootstrap}, ["a->b"], **keys)

    def mirror(self, **keys: str) -> LocalMirror:
        """MM2 with these keys, not started."""
        return LocalMirror(self.properties(**keys), self.root / f"mirror-{time.monotonic_ns()}")

    def fill(self, topics: Sequence[str], partitions: int, records: int) -> None:
        """Makes topics on the source, with so many records in each partition. Raises LockstepError."""
        make_topics(self.source, dict.fromkeys(topics, TopicSpec(partitions, 1)))
        where = itertools.product(range(records), topics, range(partitions))
        # Equal records could not be told apart, and a cutover goes on with an exact count alone.
        numbered = (PlainRecord(topic, b"%d" % number, b"record", partition) for number, topic, partition in where)
        produce_all(self.a.bootstrap, numbered)

    def copied(self, topics: Iterable[str], partitions: int, records: int) -> bool:
        """Whether MM2 has copied so many records of each partition of these topics."""
        copies = [remote(TopicPartition(topic, number)) for topic in topics for number in range(partitions)]
        if not {copy.topic for copy in copies} <= self.target.list_topics().keys():
            return False
        ends = self.target.groups.latest(copies).items
        return len(ends) == len(copies) and min(ends.values()) >= records

    def job(self, **keys: str) -> LocalJob:
        """The job with these keys, not started."""
        return job_of(self.properties(**keys), self.root / f"job-{time.monotonic_ns()}")

    @contextmanager
    def committing_job(self, **keys: str) -> Iterator[LocalJob]:
        """The job, which commits offsets on the target; it has compared everything once."""
        own = {"lockstep.sync.group.offsets.enabled": "true"}
        with self.job(**keys, **own) as job:
            job.wait_until_compared()
            yield job


def intervals(seconds: int, *names: str) -> dict[str, str]:
    """MM2's keys that do these every so many seconds."""
    return {f"{name}.interval.seconds": str(seconds) for name in names}


@contextmanager
def pair_of(
    name: str, brokers: int = 1, *, heap: str = "768m", overrides: Mapping[str, str] | None = None
) -> Iterator[BenchPair]:
    """New clusters in a folder of this name that goes at the end. `overrides`: properties of their brokers."""
    with tempfile.TemporaryDirectory(prefix=f"lockstep-{name}-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        a, b = (LocalCluster(alias, root / alias, brokers, heap=heap, overrides=overrides) for alias in "ab")
        with started_pair(a, b, root) as pair:
            yield pair


@contextmanager
def started_pair(a: LocalCluster, b: LocalCluster, root: Path) -> Iterator[BenchPair]:
    with ExitStack() as stack:
        stack.enter_context(started(a, b))
        source, target = (opened(stack, one) for one in (a, b))
        yield BenchPair(a, b, source, target, root)


def opened(stack: ExitStack, cluster: LocalCluster) -> KafkaCluster:
    """A client of the cluster, closed with the stack."""
    return stack.enter_context(closing(open_cluster(cluster.alias, cluster.client_properties())))


def make_topics(cluster: Cluster, topics: Mapping[str, TopicSpec]) -> None:
    """Returns when the cluster lists them. Raises LockstepError where it refuses one."""
    for some in chunks([*topics], AT_ONCE):
        made = cluster.create_topics({name: topics[name] for name in some})
        if faults := [f"{name}: {fault}" for name, fault in made.items() if fault is not None]:
            raise LockstepError(f"topics on {cluster.alias} could not be created: {'; '.join(faults[:3])}")
    wait_for(lambda: topics.keys() <= cluster.list_topics().keys(), LISTED_WITHIN, f"{len(topics)} topics to be listed")


class PlainRecord(NamedTuple):
    """`timestamp`: milliseconds since the epoch; 0 is now."""

    topic: str
    key: bytes | None
    value: bytes
    partition: int = 0
    timestamp: int = 0


def produce_all(bootstrap: str, records: Iterable[PlainRecord]) -> None:
    """Returns when all are acknowledged. Raises LockstepError."""
    batches = {"linger.ms": 20, "batch.size": 500_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 500_000, **batches})
    for number, (topic, key, value, partition, timestamp) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(WRITTEN_WITHIN):
        raise LockstepError(f"{left} records were not written on {bootstrap} within {WRITTEN_WITHIN:g} s")


def commit_all(source: KafkaCluster, offsets: Mapping[str, Offsets]) -> None:
    """The offsets of groups, by name. Raises LockstepError when one is refused.

    Coordinators that are only just being made are asked again.
    """
    left = dict(offsets)

    def done() -> bool:
        for name, of in source.groups.commit(left).items():
            faults = [fault for fault in of.values() if fault]
            if not faults:
                del left[name]
            elif not all(fault.retriable for fault in faults):
                raise LockstepError(f"a commit of {name} on the source was refused: {faults[0]}")
        return not left

    wait_for(done, COMMITTED_WITHIN, "all commits on the source to be taken")


def remote(where: TopicPartition) -> TopicPartition:
    """The name on the target of a partition of cluster a."""
    return TopicPartition(f"a.{where.topic}", where.partition)


def offset_sync(where: TopicPartition, offset: int) -> tuple[bytes, bytes]:
    """Key and value of MM2's record which says that this offset is the same on both clusters."""
    return encode_record(OffsetSync(where, offset, offset))


def job_of(properties: Mapping[str, str], folder: Path) -> LocalJob:
    """A job with these properties, not started. Its file and its log are in the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_ports(1)[0]
    own = {"lockstep.http.port": str(port), "lockstep.checkpoint.dir": str(folder / "checkpoints")}
    config = folder / "mirror.properties"
    config.write_text("".join(f"{name} = {value}\n" for name, value in {**properties, **own}.items()))
    return LocalJob(config, port, folder / "job.log")


def lockstep(*words: str, within: float | None = None) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own. Raises TimeoutExpired after `within` seconds."""
    command = [sys.executable, "-m", "app.main", *words]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=within, check=False)


@contextmanager
def running(*loads: Callable[[threading.Event], None]) -> Iterator[None]:
    """Each in a thread of its own while the block runs; then what they raised, if anything."""
    stop = threading.Event()
    with ThreadPoolExecutor(len(loads)) as pool:
        running = [pool.submit(one, stop) for one in loads]
        try:
            yield
        finally:
            stop.set()
    for one in running:
        one.result()
