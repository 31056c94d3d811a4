"""A consumer group of the demo that moves from one cluster to the other, and what it lost or read twice on the way."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.records.member import Member
from streaming.mm2.records import TopicPartition

DEMO_GROUP = "billing"
DEMO_TOPIC = "customers"
RECORDS, READ = 500, 333
WITHIN = 60.0
RECORDS_AT_ONCE = 500


@dataclass(frozen=True)
class GroupMove:
    """Records that the group skipped and read twice when it went on at the target."""

    skipped: int
    twice: int


def move(a: LocalCluster, source: KafkaCluster, b: LocalCluster, target: KafkaCluster) -> GroupMove:
    """Writes to the topic, reads some of it on the source as a group, and the rest on the target as the same group."""
    records = [b"customer-%d" % number for number in range(RECORDS)]
    source.append_log(DEMO_TOPIC, [(record, b"v") for record in records])
    there = TopicPartition(f"a.{DEMO_TOPIC}", 0)
    wait_for(
        lambda: there in (ends := target.groups.ends([there]).items) and ends[there].end >= RECORDS,
        WITHIN,
        f"MM2 to copy the records of {DEMO_TOPIC}",
    )
    before = _read("a", a.bootstrap, DEMO_TOPIC, READ)
    wait_for(
        lambda: there in target.groups.committed([DEMO_GROUP]).items.get(DEMO_GROUP, {}),
        WITHIN,
        f"the offset of {DEMO_GROUP} on b",
    )
    after = _read("b", b.bootstrap, there.topic, None)
    return GroupMove(skipped=len(set(records) - set(before) - set(after)), twice=len(set(before) & set(after)))


def _read(alias: str, bootstrap: str, topic: str, count: int | None) -> list[bytes]:
    """The next records of the group, so many or all there are; what was read is committed."""
    with closing(Member(alias, {"bootstrap.servers": bootstrap}, DEMO_GROUP, topic)) as member:

        def enough() -> bool:
            member.read(RECORDS_AT_ONCE if count is None else count - len(member.keys))
            return member.at_end if count is None else len(member.keys) >= count

        wait_for(enough, WITHIN, f"records of {topic} for the group {DEMO_GROUP}")
        member.commit()
        return member.keys
