"""Topics and copies of them written by hand, each with one fault, and the offset-syncs that MM2 would have written."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.local_cluster import LocalCluster
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition

SOURCE, TARGET = "copied-a", "copied-b"
"""Aliases of a flow that no MM2 replicates."""

SYNCS = f"mm2-offset-syncs.{TARGET}.internal"
SOON = 180.0
COUNT = 40
BEGAN = 1_700_000_000_000


@dataclass(frozen=True)
class Sent:
    """A record to be written."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    ms: int = BEGAN


def records(count: int = COUNT) -> list[Sent]:
    """With a null here and there."""
    return [
        Sent(
            None if at % 3 == 0 else b"k%d" % (at % 7), None if at % 11 == 5 else b"v%d" % at, _headers(at), BEGAN + at
        )
        for at in range(count)
    ]


def _headers(at: int) -> tuple[tuple[str, bytes | None], ...]:
    return (("h", b"%d" % at), ("null", None)) if at % 2 else ()


@dataclass
class Copied:
    """A topic on both clusters. `syncs`: pairs of offsets. `trim`: to which offset source and target are deleted."""

    source: Sequence[Sent]
    target: Sequence[Sent]
    syncs: Sequence[tuple[int, int]] = ()
    trim: tuple[int, int] = (0, 0)
    configs: Mapping[str, str] = field(default_factory=dict)
    target_configs: Mapping[str, str] = field(default_factory=dict)


def faulty_copies() -> dict[str, Copied]:
    """By the name of what is wrong."""
    sent = records()
    changed = {
        "key": replace(sent[20], key=b"other"),
        "value": replace(sent[20], value=b"other"),
        "headers": replace(sent[20], headers=(("h", b"other"),)),
        "timestamp": replace(sent[20], ms=BEGAN + 86_400_000),
    }
    swapped = [*sent]
    swapped[20], swapped[21] = swapped[21], swapped[20]
    syncs = [(0, 0), (10, 10), (15, 15)]
    return {
        "nothing": Copied(sent, sent, [*syncs, (30, 30)]),
        "dropped": Copied(sent, [*sent[:20], *sent[21:]], [*syncs, (30, 29)]),
        "doubled": Copied(sent, [*sent[:21], *sent[20:]], [*syncs, (30, 31)]),
        **{name: Copied(sent, [*sent[:20], other, *sent[21:]], syncs) for name, other in changed.items()},
        "swapped": Copied(sent, swapped, [*syncs, (30, 30)]),
        "behind": Copied(sent, sent[:35], syncs),
        # MM2 died and sent again what it was not sure of.
        "resent": Copied(sent, [*sent[:25], *sent[20:]], [*syncs, (20, 25), (35, 40)]),
        # The target's log lost its tail, and MM2 went on where it was.
        "truncated": Copied(sent, [*sent[:12], *sent[20:]], [(0, 0), (10, 10), (18, 18), (20, 12)]),
        "expired on source": Copied(sent, sent, syncs, (12, 0)),
        "expired on target": Copied(sent, sent, syncs, (0, 12)),
        "recreated on source": Copied(sent[30:], sent, [(0, 30)]),
        "empty": Copied((), ()),
        "append time": Copied(sent, sent, syncs, target_configs={"message.timestamp.type": "LogAppendTime"}),
        "compacted": Copied(
            [Sent(b"k%d" % (at % 5), b"%d" % at, (), BEGAN + at) for at in range(COUNT)],
            [Sent(b"k%d" % (at % 5), b"%d" % at, (), BEGAN + at) for at in (3, 17, *range(35, COUNT))],
            configs={"cleanup.policy": "compact"},
        ),
        "compacted, one value older": Copied(
            [Sent(b"k%d" % (at % 5), b"%d" % at, (), BEGAN + at) for at in range(COUNT)],
            [Sent(b"k%d" % (at % 5), b"%d" % at, (), BEGAN + at) for at in (30, 36, 37, 38, 39)],
            [(39, 4)],
            configs={"cleanup.policy": "compact"},
        ),
    }


def topic_of(prefix: str, fault: str) -> str:
    return f"{prefix}-{fault.replace(' ', '-').replace(',', '')}"


def properties(a: LocalCluster, b: LocalCluster, prefix: str, folder: Path) -> Path:
    """Of the flow over these topics."""
    lines = mirror_properties(
        {SOURCE: a.bootstrap, TARGET: b.bootstrap}, [f"{SOURCE}->{TARGET}"], topics=f"{prefix}-.*"
    )
    lines["lockstep.checkpoint.dir"] = str(folder / "checkpoints")
    path = folder / "copied.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    return path


def write(a: LocalCluster, b: LocalCluster, prefix: str, copies: Mapping[str, Copied]) -> None:
    """Makes all topics, and returns when everything is there."""
    ours = {topic_of(prefix, fault): copied for fault, copied in copies.items()}
    theirs = {f"{SOURCE}.{topic}": copied for topic, copied in ours.items()}
    make(a, {**{topic: copied.configs for topic, copied in ours.items()}, SYNCS: {}})
    make(b, {topic: {**copied.configs, **copied.target_configs} for topic, copied in theirs.items()})
    send(a, {topic: copied.source for topic, copied in ours.items()})
    send(b, {topic: copied.target for topic, copied in theirs.items()})
    send(a, {SYNCS: [Sent(*sync) for topic, copied in ours.items() for sync in _syncs(topic, copied)]})
    trim(a, {topic: copied.trim[0] for topic, copied in ours.items()})
    trim(b, {topic: copied.trim[1] for topic, copied in theirs.items()})


def _syncs(topic: str, copied: Copied) -> list[tuple[bytes, bytes]]:
    where = TopicPartition(topic, 0)
    return [encode_record(OffsetSync(where, up, down)) for up, down in copied.syncs]


def make(cluster: LocalCluster, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Those that are not there yet."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    there = admin.list_topics(timeout=SOON).topics
    # The records are older than a week.
    new = [
        NewTopic(name, 1, 1, config={"retention.ms": "-1", **configs})
        for name, configs in topics.items()
        if name not in there
    ]
    for made in admin.create_topics(new).values() if new else ():
        made.result()
    wait_for(lambda: topics.keys() <= admin.list_topics(timeout=SOON).topics.keys(), SOON, "the topics to be listed")


def send(cluster: LocalCluster, topics: Mapping[str, Sequence[Sent]], transaction: str | None = None) -> Producer:
    """Writes to partition 0 and waits for the acknowledgements; in a transaction, it is left open."""
    config: dict[str, str | int] = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 5}
    producer = Producer(config | ({"transactional.id": transaction} if transaction else {}))
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for topic, sent in topics.items():
        for one in sent:
            producer.produce(topic, one.value, one.key, 0, timestamp=one.ms, headers=list(one.headers) or None)
    assert producer.flush(SOON) == 0
    return producer


def trim(cluster: LocalCluster, topics: Mapping[str, int]) -> None:
    """Deletes what lies before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for done in admin.delete_records([At(topic, 0, offset) for topic, offset in topics.items() if offset]).values():
        done.result()


def end_of(cluster: LocalCluster, topic: str) -> int:
    """The end of partition 0; 0 where there is no such topic."""
    with closing(Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused"})) as consumer:
        if topic not in consumer.list_topics(timeout=SOON).topics:
            return 0
        return consumer.get_watermark_offsets(At(topic, 0), timeout=SOON)[1]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


DIFFERENCES = {
    "dropped": [("MISSING", 20, None, 1, [])],
    "doubled": [("DUPLICATE", 20, 21, 1, [])],
    "key": [("CHANGED", 20, 20, 1, ["key"])],
    "value": [("CHANGED", 20, 20, 1, ["value"])],
    "headers": [("CHANGED", 20, 20, 1, ["headers"])],
    "timestamp": [("CHANGED", 20, 20, 1, ["timestamp"])],
    "resent": [("DUPLICATE", 20, 25, 5, [])],
    "truncated": [("MISSING", 12, None, 8, [])],
    "recreated on source": [("EXTRA", None, 0, 30, [])],
    "compacted, one value older": [("CHANGED", 35, 0, 1, ["value", "timestamp"])],
}
"""By fault: difference, offsets on source and target, how many records, which fields."""
