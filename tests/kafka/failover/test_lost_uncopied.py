"""MM2 is down while the source's retention goes on: what it never copied is reported, until it is acknowledged."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from app.local.local_mirror import LocalMirror
from app.local.waiting import wait_for
from tests.kafka.failover.failovers import SOON, Flow, produce

LOST = 50


def loss_of(flow: Flow) -> tuple[int, str, set[str]]:
    """What `preflight` says: its exit code would also tell of what the other tests left."""
    found: dict[str, Any] = flow.asked("preflight", code=3)
    (check,) = [one for one in found["checks"] if one["name"] == "records lost before copying"]
    lost = found["lost_before_copying"]
    return lost["records"], check["result"], {one["topic"] for one in lost["topics"]}


def test_records_that_retention_took_while_mm2_was_down_are_reported(flow: Flow, leaving: LocalMirror) -> None:
    topic, source = "leaving-uncopied", flow.clusters.a
    flow.make_topic(topic, 1)
    flow.look_as_a_job_does()
    leaving.stop()
    produce(source, topic, 1, LOST)
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    for future in admin.delete_records([Partition(topic, 0, LOST + 1)]).values():
        future.result(SOON)
    leaving.start()
    produce(source, topic, 1, 5)
    wait_for(lambda: flow.end(topic, 0, copy=True) == 1 + 5, SOON, "MM2 to go on behind the gap")
    # MM2 says a moment later how far it went on.
    wait_for(lambda: loss_of(flow) == (LOST, "FAILED", {topic}), SOON, "the loss to be told")
    compared = flow.asked("verify", topic, "--level", "counts", code=3)
    assert compared["lost_before_copying"]["records"] == LOST
    done = flow.run("ledger", "acknowledge", "--yes")
    assert done.returncode == 0, done.stderr
    assert loss_of(flow) == (0, "OK", set())
