"""Two clusters, topics full of records on one of them, and groups that read two partitions each."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import Offsets
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

PARTITIONS: Final = 4
RECORDS: Final = 400
"""In each partition. A group begins at `BEGINNING` and is synced anew when its offset on the target is behind `PAST`:
half."""

BEGINNING, PAST = 10, RECORDS // 2
TURN: Final = 0.1
"""Seconds between two rounds of commits of the groups that are not timed."""

WITHIN: Final = 300.0


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

    wait_for(done, WITHIN, "all commits on the source to be taken")


@dataclass(frozen=True)
class GroupsPair:
    """Both clusters; `names`: of the topics on the source."""

    clusters: Mapping[str, str]
    source: KafkaCluster
    target: KafkaCluster
    names: Sequence[str]
    root: Path

    def partitions(self, number: int) -> list[TopicPartition]:
        """Those that a group reads: one on each of two topics."""
        topics = (self.names[number % len(self.names)], self.names[(number * 7 + 1) % len(self.names)])
        return [TopicPartition(topic, number % PARTITIONS) for topic in dict.fromkeys(topics)]

    def remote(self, number: int) -> list[TopicPartition]:
        """The same on the target."""
        return [TopicPartition(f"a.{at.topic}", at.partition) for at in self.partitions(number)]

    def commit(self, groups: Mapping[str, int], offset: int) -> None:
        """All these groups (name to number) at this offset; see `commit_all`."""
        commit_all(self.source, {name: dict.fromkeys(self.partitions(n), offset) for name, n in groups.items()})

    def synced(self, groups: Mapping[str, int], past: int = PAST) -> set[str]:
        """The groups whose offsets on the target are all there, and greater than `past`."""
        seen = self.target.groups.committed(groups).items
        return {
            name
            for name, number in groups.items()
            if all(seen.get(name, {}).get(at, -1) > past for at in self.remote(number))
        }


@contextmanager
def pair_of(root: Path, topics: int) -> Iterator[GroupsPair]:
    """New clusters with so many topics and their records on the source."""
    with ExitStack() as stack:
        a, b = (stack.enter_context(LocalCluster(alias, root / alias, heap="768m")) for alias in "ab")
        source, target = (open_cluster(one.alias, {"bootstrap.servers": one.bootstrap}) for one in (a, b))
        for client in (source, target):
            stack.callback(client.close)
        names = [f"age-{number:03d}" for number in range(topics)]
        source.create_topics({name: TopicSpec(PARTITIONS, 1) for name in names})
        wait_for(lambda: {*names} <= source.list_topics().keys(), WITHIN, "the topics to be listed")
        _fill(a.bootstrap, names)
        yield GroupsPair({"a": a.bootstrap, "b": b.bootstrap}, source, target, names, root)


def _fill(bootstrap: str, names: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(RECORDS):
        for name in names:
            for partition in range(PARTITIONS):
                producer.produce(name, b"%d" % number, partition=partition)
        producer.poll(0)
    if left := producer.flush(WITHIN):
        raise LockstepError(f"{left} records could not be written within {WITHIN:g} s")


def copied(pair: GroupsPair) -> bool:
    """Whether MM2 has copied all records."""
    remote = [TopicPartition(f"a.{name}", number) for name in pair.names for number in range(PARTITIONS)]
    ends = pair.target.groups.ends(remote).items
    return len(ends) == len(remote) and all(log.end >= RECORDS for log in ends.values())


@contextmanager
def others_commit(pair: GroupsPair, groups: Mapping[str, int], rate: float) -> Iterator[None]:
    """Meanwhile these groups commit one after the other, so many a second, never past half."""
    stop, client = threading.Event(), open_cluster("a", {"bootstrap.servers": pair.clusters["a"]})

    def run() -> None:
        offset, names = BEGINNING, list(groups.items())
        a_turn = max(1, round(rate * TURN))
        while not stop.wait(TURN):
            turn, names = names[:a_turn], names[a_turn:] + names[:a_turn]
            offset = BEGINNING + (offset + 1) % (RECORDS // 4)
            client.groups.commit({name: dict.fromkeys(pair.partitions(number), offset) for name, number in turn})

    thread = threading.Thread(target=run, daemon=True)
    if groups:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if groups:
            thread.join()
        client.close()
