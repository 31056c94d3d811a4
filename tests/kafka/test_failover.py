"""Failovers between real clusters with a real MM2, while producers go on writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.local.java import QUICK_START
from app.local.local_mirror import LocalMirror
from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.engine.ledger import Ledger
from sinks.engine.ledger_entries import Entry
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from tests.conftest import Clusters
from tests.kafka.failovers import SOON, SOURCE, TARGET, Flow, produce, producing, properties, write_file


@pytest.fixture(scope="module")
def leaving(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMirror]:
    """MM2 for all tests here."""
    with LocalMirror(properties(clusters), tmp_path_factory.mktemp("leaving"), java_options=QUICK_START) as mirror:
        yield mirror


@pytest.fixture
def flow(clusters: Clusters, leaving: LocalMirror, tmp_path: Path) -> Iterator[Flow]:
    """The flow, mirroring; afterwards it does again, with no topic left."""
    config = write_file(tmp_path, properties(clusters, **{"lockstep.checkpoint.dir": str(tmp_path)}))
    with (
        closing(KafkaCluster(SOURCE, {"bootstrap.servers": clusters.a.bootstrap})) as a,
        closing(KafkaCluster(TARGET, {"bootstrap.servers": clusters.b.bootstrap})) as b,
    ):
        made = Flow(a, b, config, clusters)
        yield made
        a.acls.delete([acl for acl in a.acls.describe() if acl.resource_name.startswith("leaving-")])
        a.delete_topics([topic for topic in a.list_topics() if topic.startswith("leaving-")])
        name = f"lockstep-ledger.{SOURCE}.internal"
        ledger = Ledger(name, b, b, 1)
        if ledger.exists:
            entries = (Entry.FAILOVER, Entry.FENCE, Entry.STAGED, Entry.DIVERGENCE, Entry.SOURCE_ENDS)
            ledger.put({(entry, key): None for entry in entries for key in ledger.values(entry)})


def test_a_cutover_under_producers_that_go_on_writing_loses_no_record(flow: Flow, unique: str, tmp_path: Path) -> None:
    topics = [f"leaving-{unique}-x", f"leaving-{unique}-y"]
    for topic in topics:
        flow.make_topic(topic)
    assert flow.asked("preflight", code=3)["ready"] is False
    assert flow.run("apply", "--yes").returncode == 0
    ready = flow.asked("preflight", "--report", str(tmp_path / "ready.md"))
    assert ready["ready"]
    assert {row["result"] for row in ready["checks"]} <= {"OK", "WARNING"}
    assert "ready to fail over" in (tmp_path / "ready.md").read_text()
    assert flow.preflight_as_a_job_does().records == 0
    with producing(flow.clusters.a, topics):
        done = flow.asked("cutover", "--why", "a test")
        ends = [flow.end(topic, partition) for topic in topics for partition in (0, 1)]
        copies = [flow.end(topic, partition, copy=True) for topic in topics for partition in (0, 1)]
    assert (done["state"], done["why"]) == ("PROMOTED", "a test")
    assert copies == ends
    assert ends[0] > 1
    assert flow.asked("status")["kinds"]["topic"]["task"] == "PAUSED"


def test_a_drill_measures_what_it_predicted_and_leaves_nothing_behind(flow: Flow, unique: str) -> None:
    topic = f"leaving-{unique}-drill"
    found = flow.asked("drill", "--topic", topic, "--records", "2000", "--within", "60")
    assert found["agrees"]
    assert found["loss"]["predicted"] == found["loss"]["measured"]
    assert {row["skipped"] for row in found["groups"]} == {0}
    assert len(found["groups"]) == 2
    assert flow.asked("status")["failover"]["last_drill"]["topic"] == topic
    assert not [acl for acl in flow.a.acls.describe() if acl.resource_name == topic]
    wait_for(lambda: topic not in flow.a.list_topics(), SOON, "the topic to be gone")


def test_a_super_user_who_ignores_the_fence_is_found_and_the_fence_taken_back(flow: Flow, unique: str) -> None:
    topic, ignored = f"leaving-{unique}-x", f"leaving-{unique}-y"
    flow.make_topic(topic)
    flow.make_topic(ignored)
    with producing(flow.clusters.a, [ignored], super_user=True):
        done = flow.run("cutover")
    assert done.returncode == 1
    assert f"writing to {ignored}" in done.stderr
    assert not [acl for acl in flow.a.acls.describe() if acl.permission == "DENY"]
    assert "MIRRORING" in flow.run("unfence").stdout


def test_a_failover_without_the_source_tells_its_loss_and_the_source_that_is_back_confirms_it(
    flow: Flow, leaving: LocalMirror, unique: str, tmp_path: Path
) -> None:
    topic = f"leaving-{unique}-x"
    flow.make_topic(topic)
    leaving.stop()
    produce(flow.clusters.a, topic, 2, 7)
    flow.look_as_a_job_does()
    risk = flow.preflight_as_a_job_does()
    assert (risk.trouble, risk.records, risk.exact) == (None, 14, True)
    gone = {f"{SOURCE}.bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    lines = properties(flow.clusters, **{"lockstep.checkpoint.dir": str(tmp_path)}) | gone
    without_source = write_file(tmp_path, lines, "without-source.properties")
    done = flow.asked("failover", "--yes", "14", "--why", "the source is gone", config=without_source)
    assert (done["state"], done["prediction"]["records"]) == ("FAILED_OVER", 14)
    back = flow.run("failback", "--discard", "13")
    assert back.returncode == 1
    assert f"has 14 records that never reached {TARGET}" in back.stderr
    reverse = tmp_path / "reverse.properties"
    assert flow.asked("failback", "--discard", "14", "--out", str(reverse))["state"] == "REVERSING"
    assert f"{TARGET}->{SOURCE}.enabled=true" in reverse.read_text()
    assert flow.asked("failback", "--done")["state"] == "MIRRORING"
    leaving.start()
