"""Consumer groups in memory and of a real cluster, as the contract of groups looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass

import confluent_kafka as rd

from app.local.waiting import wait_for
from sinks.kafka.jvm.jvm_watches import JvmGroupWatch
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import Groups, LogRange, Offsets
from sinks.kafka.ports.watches import GroupWatch
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups, PlainGroupWatch

SOON = 180.0
RECORDS = 5


@dataclass
class Stage:
    """Groups of a cluster, and a topic of two partitions with five records in the first.

    `joined`: while the group of this name has a member; `recreate`: deletes the topic, and creates it again;
    `bootstrap`: of real brokers.
    """

    groups: Groups
    topic: str
    joined: Callable[[str], AbstractContextManager[None]]
    recreate: Callable[[], None]
    watches: Mapping[str, Callable[[], GroupWatch]]
    bootstrap: str = ""

    def at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


def in_memory(topic: str) -> Stage:
    """Groups in memory."""
    first, second = (TopicPartition(topic, partition) for partition in (0, 1))
    groups = MemoryGroups("b", logs={first: LogRange(0, RECORDS), second: LogRange(0, 0)})

    @contextmanager
    def joined(group: str) -> Iterator[None]:
        groups.active[group] = 1
        yield
        del groups.active[group]

    def recreate() -> None:
        groups.ids[topic] = "another"

    return Stage(groups, topic, joined, recreate, {"plain": lambda: PlainGroupWatch(groups)})


def of_broker(topic: str, bootstrap: str, cluster: KafkaCluster) -> Stage:
    """Groups of a real cluster, and a consumer that joins them."""
    groups, properties = cluster.groups, {"bootstrap.servers": bootstrap}

    @contextmanager
    def joined(group: str) -> Iterator[None]:
        with closing(rd.Consumer({**properties, "group.id": group, "session.timeout.ms": 6000})) as consumer:
            consumer.subscribe([topic])

            def assigned() -> bool:
                consumer.poll(0.1)
                return bool(consumer.assignment())

            wait_for(assigned, SOON, "the consumer to be given its partitions")
            yield

    def recreate() -> None:
        cluster.delete_topics([topic])
        wait_for(lambda: not groups.topic_ids([topic]), SOON, f"{topic} to be gone")
        created = {topic: None}
        wait_for(lambda: cluster.create_topics({topic: TopicSpec(1, 1)}) == created, SOON, "the topic again")
        wait_for(lambda: bool(groups.topic_ids([topic])), SOON, f"{topic} to be back")

    watches = {"plain": lambda: PlainGroupWatch(groups), "jvm": lambda: JvmGroupWatch(cluster.admin)}
    return Stage(groups, topic, joined, recreate, watches, bootstrap)


def commit(stage: Stage, offsets: Mapping[str, Offsets]) -> None:
    """Commits; a coordinator that is only just being made is asked again, as a pass would."""

    def done() -> bool:
        faults = [fault for of_group in stage.groups.commit(offsets).values() for fault in of_group.values() if fault]
        assert all(fault.retriable for fault in faults), faults
        return not faults

    wait_for(done, SOON, f"the offsets of {', '.join(offsets)} to be committed")
