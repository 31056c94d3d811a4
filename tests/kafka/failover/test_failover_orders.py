"""Producers or consumers first: whichever moves first, the group reads every record, and few of them twice."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from tests.kafka.failover.failover_processes import Commands
from tests.kafka.failover.failovers import SOON, SOURCE, Flow, producing


class Group:
    """A consumer group that moves from one cluster to the other, and what it read."""

    def __init__(self, name: str) -> None:
        self.name, self.read = name, Counter[bytes]()

    def read_on(self, cluster: LocalCluster, topic: str, least: int) -> None:
        """Goes on where it was with at least so many records more, and commits what it read."""
        config = {"bootstrap.servers": cluster.bootstrap, "group.id": self.name, "enable.auto.commit": False}
        before = self.read.total()

        def has_read() -> bool:
            for message in consumer.consume(500, 0.5):
                assert message.error() is None
                self.read[message.value() or b""] += 1
            return self.read.total() - before >= least

        with closing(Consumer(config | {"auto.offset.reset": "earliest"})) as consumer:
            consumer.subscribe([topic])
            wait_for(has_read, SOON, f"{self.name} to read {least} records of {topic}")
            if self.read.total() > before:
                consumer.commit(asynchronous=False)

    def lag(self, cluster: LocalCluster, topic: str) -> int:
        """Records that it has not read; of partition 0, the only one."""
        with closing(Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": self.name})) as consumer:
            (committed,) = consumer.committed([TopicPartition(topic, 0)], SOON)
            end: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), SOON)[1]
            return end - max(0, committed.offset)


def synced(flow: Flow, commands: Commands, group: str) -> int:
    """Writes the group's offset on the target; the most records that it reads twice from there.

    What MM2 copies meanwhile may put the group further on, so that there is one more offset to write.
    """

    def row() -> dict[str, Any] | None:
        assert commands.run("apply", "--yes", "--force", config=flow.config).code == 0
        (found,) = flow.asked("offsets", "--group", group)["offsets"]
        return dict(found) if found["verdict"] == "SYNCED" else None

    return int(wait_for(row, SOON, f"the offset of {group} to be the one to be written")["error_bound"])


@pytest.mark.parametrize("first", ["producers", "consumers"])
def test_whoever_moves_first_no_record_is_left_unread_and_no_more_than_said_are_read_twice(
    flow: Flow, commands: Commands, unique: str, first: str
) -> None:
    topic, group = f"leaving-{unique}-x", Group(f"leaving-{unique}")
    copy = f"{SOURCE}.{topic}"
    flow.make_topic(topic, partitions=1)
    with producing(flow.clusters.a, [topic]):
        group.read_on(flow.clusters.a, topic, 50)
        if first == "producers":
            commands.run("fence", config=flow.config).flow()
            group.read_on(flow.clusters.a, topic, group.lag(flow.clusters.a, topic))
            flow.wait_until_copied(topic)
        bound = synced(flow, commands, group.name)
        if first == "consumers":
            group.read_on(flow.clusters.b, copy, 50)
        assert commands.run("cutover", "--yes", config=flow.config).flow()["state"] == "PROMOTED"
    group.read_on(flow.clusters.b, copy, group.lag(flow.clusters.b, copy))
    assert len(group.read) == flow.end(topic, 0) == flow.end(topic, 0, copy=True)
    assert group.read.total() - len(group.read) <= bound
