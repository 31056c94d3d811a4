"""One suite for every cluster: what `sinks.kafka.ports.record_reader` promises of reading records here and there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import confluent_kafka as rd
import pytest

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, RecordReader, Span, Stamp, Why
from sinks.kafka.sweep import NEAR
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.memory.memory_records import MemoryLog, MemoryRecords

SOON = 180.0
COUNT = 3 * NEAR


@dataclass
class Stage:
    """A topic of two partitions: many records in the first, none in the second."""

    records: RecordReader
    topic: str

    def at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)

    def scan(self, *spans: Span) -> list[Ending]:
        endings = self.records.scan(spans, SOON)
        return [endings[span] for span in spans]


def expected(offset: int) -> Record:
    return Record(offset, 10_000 + offset, Stamp.CREATE, b"k", b"%d" % offset)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def stage(request: pytest.FixtureRequest, unique: str) -> Iterator[Stage]:
    if request.param == "memory":
        log = MemoryLog([expected(offset) for offset in range(COUNT)], end=COUNT)
        logs = {TopicPartition(unique, 0): log, TopicPartition(unique, 1): MemoryLog()}
        yield Stage(MemoryRecords("b", logs), unique)
        return
    bootstrap = request.getfixturevalue("clusters").b.bootstrap
    with closing(open_cluster("b", {"bootstrap.servers": bootstrap})) as cluster:
        # Retention would delete records of 1970 when the broker next looks.
        assert cluster.create_topics({unique: TopicSpec(2, 1, (("retention.ms", "-1"),))}) == {unique: None}
        wait_for(lambda: unique in cluster.list_topics(), SOON, f"{unique} to be listed")
    producer = rd.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for offset in range(COUNT):
        producer.produce(unique, b"%d" % offset, b"k", 0, timestamp=10_000 + offset)
    assert producer.flush(SOON) == 0
    with closing(open_cluster("b", {"bootstrap.servers": bootstrap})) as cluster, closing(cluster.records()) as records:
        yield Stage(records, unique)


def span(where: TopicPartition, start: int, stop: int | None = None, most: int = COUNT, last: int = COUNT) -> Span:
    """A span whose reader has enough at the offset `last`."""
    return Span(where, start, stop, most, lambda record: record.offset == last)


def reading(where: TopicPartition, starts: Sequence[int], into: list[Record]) -> list[Span]:
    """A span for each start, that takes one record."""

    def take(record: Record) -> bool:
        into.append(record)
        return True

    return [Span(where, start, None, 1, take) for start in starts]


def test_records_are_read_with_their_timestamps_keys_and_values(stage: Stage) -> None:
    seen: list[Record] = []
    stage.scan(*reading(stage.at(0), [3], seen))
    assert seen == [expected(3)]


def test_span_ends_for_the_reason_that_came_first(stage: Stage) -> None:
    first = stage.at(0)
    assert stage.scan(
        span(first, 0, last=4),
        span(first, 2, 7),
        span(first, 5, most=3),
        span(first, COUNT - 2),
        span(first, COUNT),
        span(first, 9, 9),
        span(stage.at(1), 0),
    ) == [
        Ending(Why.TAKEN, 5),
        Ending(Why.STOP, 7),
        Ending(Why.MOST, 8),
        Ending(Why.END, COUNT),
        Ending(Why.END, COUNT),
        Ending(Why.STOP, 9),
        Ending(Why.END, 0),
    ]


def test_many_places_of_one_partition_are_read_near_and_far_and_twice(stage: Stage) -> None:
    starts = [0, 1, 7, NEAR + 50, 2 * NEAR + 200, 2 * NEAR + 200, COUNT - 1]
    for _ in range(2):
        seen: list[Record] = []
        stage.scan(*reading(stage.at(0), starts, seen))
        assert seen == [expected(start) for start in starts]


def test_offsets_are_found_by_their_times(stage: Stage) -> None:
    moments = [PartitionTime(stage.at(0), 10_000 + offset) for offset in (0, 5, 700, COUNT)] + [
        PartitionTime(stage.at(1), 1)
    ]
    gone = PartitionTime(TopicPartition(f"{stage.topic}-none", 0), 1)
    seen = stage.records.offsets_for_times([*moments, gone])
    assert [seen.items[context] for context in moments] == [0, 5, 700, None, None]
    assert seen.errors[gone].code == "UNKNOWN_TOPIC_OR_PART"


def test_times_before_the_epoch_are_times_and_none_of_kafkas_words(stage: Stage) -> None:
    """A record may have the timestamp -1; to a broker that is the end of a log, -2 its start, -3 its newest record."""
    gone = TopicPartition(f"{stage.topic}-none", 0)
    times = {where: [PartitionTime(where, at) for at in (-1, -2, -3, -4)] for where in (stage.at(0), stage.at(1), gone)}
    seen = stage.records.offsets_for_times([one for moments in times.values() for one in moments])
    assert [seen.items[one] for one in times[stage.at(0)]] == [0, 0, 0, 0]
    assert [seen.items[one] for one in times[stage.at(1)]] == [None, None, None, None]
    assert {seen.errors[one].code for one in times[gone]} == {"UNKNOWN_TOPIC_OR_PART"}


def test_partition_that_is_gone_is_a_fault_beside_its_neighbours(stage: Stage) -> None:
    one, other = stage.scan(span(stage.at(0), 0, last=0), span(TopicPartition(f"{stage.topic}-none", 0), 0))
    assert (one.why, other.why) == (Why.TAKEN, Why.FAULT)
    assert other.fault
    assert other.fault.code == "UNKNOWN_TOPIC_OR_PART"


def test_time_that_is_over_ends_what_is_left(stage: Stage) -> None:
    asked = span(stage.at(0), 0)
    assert stage.records.scan([asked], 0)[asked].why is Why.TIME


def test_ends_and_what_loses_records_from_its_midst(stage: Stage) -> None:
    assert stage.records.ends([stage.at(0), stage.at(1)]).items == {
        stage.at(0): LogRange(0, COUNT),
        stage.at(1): LogRange(0, 0),
    }
    assert stage.records.compacted([stage.topic]) == set()
    assert stage.records.compacted([f"{stage.topic}-none"]) == {f"{stage.topic}-none"}
    assert stage.records.offsets_for_times([]).items == {}
    assert stage.records.compacted([]) == set()
    assert stage.records.scan([], 1) == {}


@pytest.mark.kafka
@pytest.mark.parametrize(("isolation", "gets"), [("read_uncommitted", [0, 2]), ("read_committed", [0])])
def test_aborted_records_count_for_a_reader_of_uncommitted_ones_alone(
    clusters: Clusters, unique: str, isolation: str, gets: list[int]
) -> None:
    """Of Kafka alone: a cluster in memory has no transactions."""
    bootstrap, where = clusters.b.bootstrap, TopicPartition(unique, 0)
    with closing(open_cluster("b", {"bootstrap.servers": bootstrap})) as cluster:
        assert cluster.create_topics({unique: TopicSpec(1, 1)}) == {unique: None}
        wait_for(lambda: unique in cluster.list_topics(), SOON, f"{unique} to be listed")
    producer = rd.Producer({"bootstrap.servers": bootstrap, "transactional.id": unique})
    producer.init_transactions(SOON)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(unique, b"v", b"k", 0)
        assert producer.flush(SOON) == 0
        end(SOON)
    seen: list[int] = []

    def take(record: Record) -> bool:
        seen.append(record.offset)
        return False

    with (
        closing(open_cluster("b", {"bootstrap.servers": bootstrap})) as reading,
        closing(reading.records(isolation)) as records,
    ):
        asked = Span(where, 0, None, COUNT, take)
        assert records.scan([asked], SOON) == {asked: Ending(Why.END, 4)}
    assert seen == gets
