"""Failovers between real clusters with a real MM2, while producers go on writing."""

from __future__ import annotations

import json
from pathlib import Path

from app.application_offsets import translate_offsets
from app.local.waiting import wait_for
from sinks.kafka.ports.acl_binding import AclBinding
from streaming.mm2.records import TopicPartition
from tests.kafka.failover.failovers import SOON, SOURCE, TARGET, Flow, producing


def test_a_cutover_under_producers_that_go_on_writing_loses_no_record(flow: Flow, unique: str, tmp_path: Path) -> None:
    topics = [f"leaving-{unique}-x", f"leaving-{unique}-y"]
    for topic in topics:
        flow.make_topic(topic)
    assert flow.asked("preflight", code=3)["ready"] is False
    assert flow.run("apply", "--yes").returncode == 0

    def is_ready() -> bool:
        found = flow.run("preflight", "--report", str(tmp_path / "ready.md"), "-o", "json")
        results = {row["result"] for row in json.loads(found.stdout)["flows"][0]["checks"]}
        assert (found.returncode == 0) is (results <= {"OK", "WARNING"}), found.stdout
        return found.returncode == 0

    # A heartbeat of MM2 may be late on a busy machine, before any of the answers.
    wait_for(is_ready, SOON, "the flow to be ready")
    assert "ready to fail over" in (tmp_path / "ready.md").read_text()
    assert flow.preflight_as_a_job_does()[0].records == 0
    group, copy = f"leaving-{unique}", TopicPartition(f"{SOURCE}.{topics[0]}", 0)
    at = {group: {TopicPartition(topics[0], 0): 1}}
    wait_for(lambda: not any(flow.a.groups.commit(at)[group].values()), SOON, "a group to commit")
    with producing(flow.clusters.a, topics):
        done = flow.asked("cutover", "--yes", "--verify", "--why", "a test")
        ends = [flow.end(topic, partition) for topic in topics for partition in (0, 1)]
        copies = [flow.end(topic, partition, copy=True) for topic in topics for partition in (0, 1)]
    assert (done["state"], done["why"]) == ("PROMOTED", "a test")
    assert copies == ends
    assert ends[0] > 1
    assert flow.asked("status")["state"] == "ENDED"
    assert translate_offsets(f"{SOURCE}->{TARGET}", group, config=flow.config) == {copy: 1}


def test_a_drill_measures_what_it_predicted_and_leaves_nothing_behind(flow: Flow, unique: str) -> None:
    topic = f"leaving-{unique}-drill"
    would = flow.asked("drill", "--topic", topic, "--dry-run")
    assert [row["step"] for row in would["would_do"]] == ["first copy", "fence", "drain", "offsets"]
    assert (would["copy"], topic in flow.a.list_topics()) == (f"{SOURCE}.{topic}", False)
    found = flow.asked("drill", "--topic", topic, "--records", "2000", "--within", "300")
    assert found["agrees"]
    assert found["loss"]["predicted"] == found["loss"]["measured"]
    assert {row["skipped"] for row in found["groups"]} == {0}
    assert len(found["groups"]) == 2
    assert flow.asked("status", code=4)["failover"]["last_drill"]["topic"] == topic
    # A broker shows a moment later what was deleted.
    wait_for(lambda: topic not in {acl.resource_name for acl in flow.a.acls.describe()}, SOON, "the ACLs to be gone")
    wait_for(lambda: topic not in flow.a.list_topics(), SOON, "the topic to be gone")


def test_a_super_user_who_ignores_the_fence_is_found_and_the_fence_taken_back(flow: Flow, unique: str) -> None:
    topic, ignored = f"leaving-{unique}-x", f"leaving-{unique}-y"
    flow.make_topic(topic)
    flow.make_topic(ignored)
    with producing(flow.clusters.a, [ignored], super_user=True):
        done = flow.run("cutover", "--yes")
    assert done.returncode == 1
    assert f"writes to {ignored}" in done.stderr
    # The broker shows a moment later what was deleted.
    wait_for(lambda: not fences(flow), SOON, "the fence to be gone")
    assert "MIRRORING" in flow.run("unfence").stdout


def fences(flow: Flow) -> list[AclBinding]:
    """The ACLs on the source that deny something on these tests' topics."""
    acls = flow.a.acls.describe()
    return [acl for acl in acls if acl.permission == "DENY" and acl.resource_name.startswith("leaving-")]
