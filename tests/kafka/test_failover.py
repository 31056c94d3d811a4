"""Failovers between real clusters with a real MM2, while producers go on writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.local.java import QUICK_START
from app.local.local_mirror import LocalMirror
from sinks.engine.ledger import Ledger
from sinks.engine.ledger_entries import Entry
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from tests.conftest import Clusters
from tests.kafka.failovers import SOURCE, TARGET, Flow, producing, properties, write_file


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
    with producing(flow.clusters.a, topics):
        done = flow.asked("cutover", "--why", "a test")
        ends = [flow.end(topic, partition) for topic in topics for partition in (0, 1)]
        copies = [flow.end(topic, partition, copy=True) for topic in topics for partition in (0, 1)]
    assert (done["state"], done["why"]) == ("PROMOTED", "a test")
    assert copies == ends
    assert ends[0] > 1
    assert flow.asked("status")["kinds"]["topic"]["task"] == "PAUSED"


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
