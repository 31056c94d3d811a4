"""Cutover, failover and the way back, while brokers of three die on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from sinks.ledger.failover_record import State, Step
from streaming.mm2.records import TopicPartition
from tests.kafka.failover.failover_processes import Commands
from tests.kafka.failover.failovers import SOON, SOURCE, TARGET, produce, values
from tests.kafka.three_brokers.conftest import BROKERS, LEDGER, Trios, away, leader, until_done, writing

pytestmark = pytest.mark.endurance


def test_a_cutover_loses_no_acknowledged_record_when_a_broker_of_each_side_dies_in_its_midst(
    trios: Trios, commands: Commands, tmp_path: Path
) -> None:
    flow, topic, call = trios.flow, "leaving-cut", ("cutover", "--yes")
    flow.make_topic(topic, 2, BROKERS)
    where, copy = TopicPartition(topic, 0), TopicPartition(f"{SOURCE}.{topic}", 0)
    assert flow.run("apply", "--yes").returncode == 0
    with writing(flow, topic, RESTRICTED) as written:
        wait_for(lambda: written.values, SOON, "the source to acknowledge a record")
        begun = commands.start(*call, config=flow.config, at=Step.AWAIT_RECORDS, sends="SIGSTOP")
        wait_for(begun.is_stopped, SOON, "the cutover to have its fence")
        with away(flow.clusters.a, leader(flow.a, topic)), away(flow.clusters.b, leader(flow.b, LEDGER)):
            begun.go_on()
            begun.wait()
            assert until_done(commands, *call, config=flow.config)["state"] == State.PROMOTED
    assert {*written.values} <= {*values(flow.clusters.a, where)}
    # MM2 may send records twice when a broker dies: each value counts once, in order.
    assert list(dict.fromkeys(values(flow.clusters.b, copy))) == values(flow.clusters.a, where)
    until_done(commands, "failback", "--out", str(tmp_path / "back.properties"), config=flow.config)
    done = until_done(commands, "failback", "--done", "--yes", "unknown", config=flow.config)
    assert done["state"] == State.MIRRORING


def test_a_failover_from_a_source_without_its_majority_counts_what_it_loses_and_there_is_a_way_back(
    trios: Trios, commands: Commands, tmp_path: Path
) -> None:
    flow, topic, late = trios.flow, "leaving-over", 7
    flow.make_topic(topic, 2, BROKERS)
    trios.mirror.stop()
    produce(flow.clusters.a, topic, 2, late)
    flow.look_as_a_job_does()
    copies = [TopicPartition(f"{SOURCE}.{topic}", number) for number in range(2)]
    copied = [values(flow.clusters.b, copy) for copy in copies]
    with away(flow.clusters.a, 2, 3):
        found = until_done(commands, "failover", "--dry-run", config=flow.config)["prediction"]
        assert found["records"] >= 2 * late
        lost = str(found["records"])
        with away(flow.clusters.b, leader(flow.b, LEDGER)):
            done = until_done(commands, "failover", "--accept-loss", lost, "--yes", lost, config=flow.config)
    assert done["state"] == State.FAILED_OVER
    assert [values(flow.clusters.b, copy) for copy in copies] == copied
    reverse = tmp_path / "reverse.properties"
    with away(flow.clusters.a, 1), away(flow.clusters.b, 1):
        back = ("failback", "--discard", str(2 * late), "--out", str(reverse))
        assert until_done(commands, *back, config=flow.config)["state"] == State.REVERSING
    assert f"{TARGET}->{SOURCE}.enabled=true" in reverse.read_text()
    done = until_done(commands, "failback", "--done", "--yes", "unknown", config=flow.config)
    assert done["state"] == State.MIRRORING
    trios.mirror.start()
    for number in range(2):
        flow.wait_until_copied(topic, number)
