"""A source with two of its three brokers dead: it answers, and cannot be cut over. There is always a way on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from app.local.local_cluster import LocalCluster
from app.wiring import open_cluster
from sinks.failover.cut_reader import all_records
from sinks.kafka.ports.cluster import TopicSpec
from sinks.ledger.failover_record import State
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka.failover.failovers import SOON, SOURCE, TARGET, Flow, produce, properties, write_file
from tests.quick_java import QUICK_KAFKA

pytestmark = pytest.mark.endurance

SEEN, LATE = "leaving-seen", "leaving-late"
PARTITIONS, COPIED, WAITING = 6, 10, 3
"""Partitions have one replica each, two of them on each broker."""


@pytest.fixture
def half_dead(tmp_path: Path) -> Iterator[Flow]:
    """The job saw `leaving-seen`, partly copied, and never `leaving-late`; then two brokers died."""
    with (
        LocalCluster("a", tmp_path / "a", 3, heap="256m", java_options=QUICK_KAFKA) as a,
        LocalCluster("b", tmp_path / "b", heap="256m", java_options=QUICK_KAFKA) as b,
        closing(open_cluster(SOURCE, {"bootstrap.servers": a.bootstrap})) as source,
        closing(open_cluster(TARGET, {"bootstrap.servers": b.bootstrap})) as target,
    ):
        clusters = Clusters(a, b)
        config = write_file(tmp_path, properties(clusters, **{"lockstep.checkpoint.dir": str(tmp_path)}))
        flow = Flow(source, target, config, clusters)
        assert source.create_topics({SEEN: TopicSpec(PARTITIONS, 1)}) == {SEEN: None}
        flow.look_as_a_job_does()
        copy = f"{SOURCE}.{SEEN}"
        assert target.create_topics({copy: TopicSpec(PARTITIONS, 1)}) == {copy: None}
        produce(a, SEEN, PARTITIONS, COPIED)
        copy_all(flow)
        produce(a, SEEN, PARTITIONS, WAITING)
        flow.look_as_a_job_does()
        yield flow


def copy_all(flow: Flow) -> None:
    """What MM2 does."""
    producer = Producer({"bootstrap.servers": flow.clusters.b.bootstrap})
    with closing(flow.a.records()) as records:
        there = all_records(records, {TopicPartition(SEEN, number): 0 for number in range(PARTITIONS)})
    for where, found in there.items():
        for one in found:
            producer.produce(f"{SOURCE}.{SEEN}", one.value, one.key, where.partition, timestamp=one.timestamp)
    assert producer.flush(SOON) == 0


def test_failover_of_a_source_with_one_broker_of_three_left_says_what_it_loses_and_can_be_done(half_dead: Flow) -> None:
    flow = half_dead
    for number in (2, 3):
        flow.clusters.a.kill_node(number)
    # Of two partitions records are counted. How far the others were copied is not known.
    lost = 2 * WAITING + 4 * (COPIED + WAITING)
    found = flow.asked("failover", "--dry-run")["prediction"]
    assert (found["records"], found["exact"], found["unknown"]) == (lost, False, [])
    few = flow.run("failover", "--accept-loss", str(lost - 1), "--yes", str(lost))
    assert few.returncode == 1
    assert "cutover" not in few.stderr
    flow.asked("failover", "--accept-loss", str(lost), "--yes", str(lost))
    assert flow.record().state is State.FAILED_OVER


def test_partitions_whose_ends_no_job_saw_are_named_and_accepted_by_their_word(half_dead: Flow) -> None:
    flow = half_dead
    assert flow.a.create_topics({LATE: TopicSpec(PARTITIONS, 1)}) == {LATE: None}
    produce(flow.clusters.a, LATE, PARTITIONS, 1)
    for number in (2, 3):
        flow.clusters.a.kill_node(number)
    found = flow.asked("failover", "--dry-run")["prediction"]
    assert found["records"] is None
    unknown = {one["partition"] for one in found["unknown"]}
    assert {one["topic"] for one in found["unknown"]} == {LATE}
    assert 0 < len(unknown) < PARTITIONS
    refused = flow.run("failover", "--accept-loss", "1000000", "--yes", "unknown")
    assert refused.returncode == 1
    assert "--accept-loss unknown" in refused.stderr
    flow.asked("failover", "--accept-loss", "unknown", "--yes", "unknown")
    assert flow.record().state is State.FAILED_OVER


def test_job_says_what_a_failover_loses_while_its_source_dies_broker_by_broker(half_dead: Flow) -> None:
    flow, most = half_dead, PARTITIONS * (COPIED + WAITING)
    for dead in ((), (2, 3), (1,)):
        for number in dead:
            flow.clusters.a.kill_node(number)
        made, _ = flow.preflight_as_a_job_does()
        assert made.loss is not None
        assert made.loss.records is not None
        assert PARTITIONS * WAITING <= made.loss.records <= most
        assert made.loss.exact == (not dead)
    assert made.trouble is not None
