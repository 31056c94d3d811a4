"""What a real MM2 writes to its internal topics: brought about, read back raw, and as Kafka's own classes read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.jars import kafka_jars
from app.local.java import JavaProcess
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import mirror_properties
from app.local.startable import logging_options
from app.local.waiting import wait_for
from streaming.mm2 import codec, records
from streaming.mm2.records import RecordKind
from tests.quick_java import QUICK_KAFKA

SOURCE, TARGET = "mirrored-a", "mirrored-b"
"""Aliases that no other test has, so that on shared clusters no other flow sees these topics as its own."""

TOPIC = "mirrored-orders"
GROUP = "mirrored-grüße-日本"
METADATA = "read by käthe"
"""What the group commits; confluent-kafka sends the NUL that ends a C string, too."""

PARTITIONS = 3
SOON = 180.0

COMING_UP = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""A coordinator's errors while it starts."""

Raw = tuple[bytes, bytes]
MM2Record = records.Heartbeat | records.Checkpoint | records.OffsetSync

EVERY_SECOND = (
    "emit.heartbeats",
    "emit.checkpoints",
    "refresh.topics",
    "refresh.groups",
    "sync.group.offsets",
)


def properties(a: LocalCluster, b: LocalCluster) -> dict[str, str]:
    """An MM2 that is quick, keeps to topics and groups of these tests, and leaves configs and ACLs alone."""
    quick = {f"{name}.interval.seconds": "1" for name in EVERY_SECOND}
    own = {
        "topics": "mirrored-.*",
        "groups": "mirrored-.*",
        "offset.lag.max": "0",
        "sync.group.offsets.enabled": "true",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        # Connect's commit of source tasks; some offset-syncs wait for it (KAFKA-14610).
        f"{TARGET}.offset.flush.interval.ms": "1000",
    }
    clusters = {SOURCE: a.bootstrap, TARGET: b.bootstrap}
    return mirror_properties(clusters, [f"{SOURCE}->{TARGET}"], **quick, **own)


def heartbeat_line(record: MM2Record) -> str:
    assert isinstance(record, records.Heartbeat)
    aliases = f"sourceClusterAlias={record.source}, targetClusterAlias={record.target}"
    return f"Heartbeat{{{aliases}, timestamp={record.timestamp}}}"


def checkpoint_line(record: MM2Record) -> str:
    assert isinstance(record, records.Checkpoint)
    offsets = f"upstreamOffset={record.upstream_offset}, downstreamOffset={record.downstream_offset}"
    subject = f"consumerGroupId={record.group}, topicPartition={record.topic_partition}"
    return f"Checkpoint{{{subject}, {offsets}, metadata={record.metadata}}}"


def offset_sync_line(record: MM2Record) -> str:
    assert isinstance(record, records.OffsetSync)
    offsets = f"upstreamOffset={record.upstream_offset}, downstreamOffset={record.downstream_offset}"
    return f"OffsetSync{{topicPartition={record.topic_partition}, {offsets}}}"


@dataclass(frozen=True)
class Internal:
    """One of MM2's internal topics, our codec for its records, and Kafka's class that prints them.

    `line`: what Java's toString says of a record.
    """

    topic: str
    on_source: bool
    formatter: str
    decode: Callable[[bytes | None, bytes | None], MM2Record]
    encode: Callable[..., Raw]
    line: Callable[[MM2Record], str]


INTERNAL: Mapping[RecordKind, Internal] = {
    RecordKind.HEARTBEAT: Internal(
        "heartbeats", False, "HeartbeatFormatter", codec.decode_heartbeat, codec.encode_record, heartbeat_line
    ),
    RecordKind.CHECKPOINT: Internal(
        f"{SOURCE}.checkpoints.internal",
        False,
        "CheckpointFormatter",
        codec.decode_checkpoint,
        codec.encode_record,
        checkpoint_line,
    ),
    RecordKind.OFFSET_SYNC: Internal(
        f"mm2-offset-syncs.{TARGET}.internal",
        True,
        "OffsetSyncFormatter",
        codec.decode_offset_sync,
        codec.encode_record,
        offset_sync_line,
    ),
}


def make_topic(source: LocalCluster) -> None:
    """The topic to be replicated, on the source: partition p has 5 (p + 1) records, the first p + 1 deleted.

    So offsets on the target are other ones than on the source.
    """
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": source.bootstrap})
    for partition in range(PARTITIONS):
        for number in range(end_offset(partition)):
            producer.produce(TOPIC, str(number).encode(), partition=partition)
    assert producer.flush(SOON) == 0
    firsts = [TopicPartition(TOPIC, partition, partition + 1) for partition in range(PARTITIONS)]
    for deleted in admin.delete_records(firsts).values():
        deleted.result()


def end_offset(partition: int) -> int:
    """The number of records ever written to a partition of the source's topic."""
    return 5 * (partition + 1)


def bring_about(source: LocalCluster, target: LocalCluster) -> None:
    """Commits a group's offsets on the source and waits until MM2 has written records of every kind.

    The group has read everything: a checkpoint task that starts translates no offset before the last sync.
    """
    consumer = Consumer({"bootstrap.servers": source.bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    offsets = [TopicPartition(TOPIC, partition, end_offset(partition), METADATA) for partition in range(PARTITIONS)]
    wait_for(partial(_committed, consumer, offsets), SOON, f"the coordinator of {GROUP} to take a commit")
    consumer.close()
    wanted = {RecordKind.OFFSET_SYNC: PARTITIONS, RecordKind.HEARTBEAT: 1, RecordKind.CHECKPOINT: PARTITIONS}
    for kind, count in wanted.items():
        internal = INTERNAL[kind]
        written = partial(_has, source if internal.on_source else target, internal.topic, count)
        wait_for(written, SOON, f"MM2's records of {count} keys in {internal.topic}")


def _committed(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in COMING_UP:
            raise
        return False
    return True


def _has(cluster: LocalCluster, topic: str, count: int) -> bool:
    return len({key for key, _ in read(cluster, topic)}) >= count


def read(cluster: LocalCluster, topic: str) -> list[Raw]:
    """Keys and values of a one-partition topic from its beginning to the end it has now; empty if it is not there."""
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "fetch.wait.max.ms": 20}
    consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.partition.eof": False})
    try:
        if consumer.list_topics(topic, timeout=SOON).topics[topic].error is not None:
            return []
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SOON)
        consumer.assign([TopicPartition(topic, 0, first)])
        return [(record.key() or b"", record.value() or b"") for record in _until(consumer, first, end)]
    finally:
        consumer.close()


def _until(consumer: Consumer, first: int, end: int) -> Iterator[Message]:
    # The last offsets may belong to no record (compaction, transactions): the end counts, not the number of records.
    (position,) = consumer.assignment()
    while first < end:
        record = consumer.poll(1)
        if record is not None and record.error() is None and (record.offset() or 0) < end:
            yield record
        first = max(first, consumer.position([position])[0].offset)


def read_by_kafka(cluster: LocalCluster, internal: Internal, count: int, folder: Path) -> list[str]:
    """The first so many records as Kafka's own console consumer prints them with MM2's formatter, a line each."""
    log = folder / f"{internal.formatter}.log"
    arguments = ["--bootstrap-server", cluster.bootstrap, "--topic", internal.topic, "--from-beginning"]
    arguments += ["--formatter", f"org.apache.kafka.connect.mirror.formatters.{internal.formatter}"]
    arguments += ["--max-messages", str(count), "--timeout-ms", str(round(1000 * SOON))]
    options = [*QUICK_KAFKA, "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", *logging_options(folder)]
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    with JavaProcess(main, arguments, kafka_jars(), log, options) as consumer:
        wait_for(consumer.succeeded, SOON, f"Kafka's console consumer to print {internal.topic} (see {log})")
        return [line for line in consumer.output().splitlines() if "{" in line and line.endswith("}")]
