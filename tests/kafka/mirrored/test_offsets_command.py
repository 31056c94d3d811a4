"""`lockstep offsets` and `groups` beside a real MM2: no offset lies behind what the group has read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient

from app.local.jars import PROJECT
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka.mm2_records import SOURCE, TARGET, properties

pytestmark = pytest.mark.kafka

SOON = 180.0
RECORDS = 30
MIDDLE = 12
MANY, UNREAD, DELETED_TO = 160, 20, 150


def asked(command: Sequence[str], folder: Path, clusters: Clusters) -> dict[str, Any]:
    """The JSON of a command on MM2's own file."""
    path = folder / "mm2.properties"
    path.write_text(
        "".join(f"{name} = {value}\n" for name, value in properties(clusters.a, clusters.b).items()), encoding="utf-8"
    )
    run = subprocess.run(
        [sys.executable, "-m", "app.main", *command, "--config", str(path), "-o", "json"],
        cwd=PROJECT,
        check=False,
        capture_output=True,
        text=True,
        timeout=SOON,
    )
    assert run.returncode == 0, run.stderr
    (flow,) = json.loads(run.stdout)["flows"]
    assert (flow["source"], flow["target"]) == (SOURCE, TARGET)
    return dict(flow)


@pytest.mark.usefixtures("mirror")
def test_group_at_the_end_and_one_behind_it_skip_nothing(clusters: Clusters, unique: str, tmp_path: Path) -> None:
    topic = f"mirrored-{unique}"
    remote, at_end, behind = f"{SOURCE}.{topic}", f"{topic}-end", f"{topic}-behind"
    here, there = TopicPartition(topic, 0), TopicPartition(remote, 0)
    with (
        closing(open_cluster("a", {"bootstrap.servers": clusters.a.bootstrap})) as a,
        closing(open_cluster("b", {"bootstrap.servers": clusters.b.bootstrap})) as b,
    ):
        assert a.create_topics({topic: TopicSpec(1, 1)}) == {topic: None}
        wait_for(lambda: topic in a.list_topics(), SOON, f"{topic} to be listed")
        a.append_log(topic, [(b"k", b"%d" % number) for number in range(RECORDS)])
        wanted = {at_end: {here: RECORDS}, behind: {here: MIDDLE}}
        wait_for(lambda: not any(_faults(a, wanted)), SOON, "the groups to be committed")
        wait_for(lambda: _end(b, there) == RECORDS, SOON, f"{remote} to have all records")
        assert {at_end, behind} <= set(asked(["groups"], tmp_path, clusters)["groups"])
        rows = asked(["offsets", "--group", at_end, "--group", behind], tmp_path, clusters)["offsets"]
        pattern = ["offsets", "translate", "--groups", f"{topic}-(end|behind)"]
        by_pattern = asked(pattern, tmp_path, clusters)["offsets"]
    names = ("group", "topic", "partition", "upstream_offset")
    assert [[row[name] for name in names] for row in by_pattern] == [[row[name] for name in names] for row in rows]
    found = {row["group"]: row for row in rows}
    assert {(row["topic"], row["partition"]) for row in rows} == {(remote, 0)}
    assert (found[at_end]["upstream_offset"], found[at_end]["downstream_offset"]) == (RECORDS, RECORDS)
    assert found[at_end]["method"] == "tip"
    assert found[behind]["downstream_offset"] <= MIDDLE
    assert found[behind]["error_bound"] >= MIDDLE - found[behind]["downstream_offset"]
    assert {row["verdict"] for row in rows} <= {"PENDING", "SYNCED"}


@pytest.mark.usefixtures("mirror")
def test_group_whose_unread_records_were_deleted_on_the_source_reads_them_on_the_target(
    clusters: Clusters, unique: str, tmp_path: Path
) -> None:
    topic, group = f"mirrored-{unique}", f"mirrored-{unique}-overtaken"
    here, there = TopicPartition(topic, 0), TopicPartition(f"{SOURCE}.{topic}", 0)
    with (
        closing(open_cluster("a", {"bootstrap.servers": clusters.a.bootstrap})) as a,
        closing(open_cluster("b", {"bootstrap.servers": clusters.b.bootstrap})) as b,
    ):
        assert a.create_topics({topic: TopicSpec(1, 1)}) == {topic: None}
        wait_for(lambda: topic in a.list_topics(), SOON, f"{topic} to be listed")
        a.append_log(topic, [(b"k", b"%d" % number) for number in range(MANY)])
        wait_for(lambda: not any(_faults(a, {group: {here: UNREAD}})), SOON, "the group to be committed")
        wait_for(lambda: _end(b, there) == MANY, SOON, f"{there} to have all records")
        admin = AdminClient({"bootstrap.servers": clusters.a.bootstrap})
        for deleted in admin.delete_records([At(topic, 0, DELETED_TO)]).values():
            deleted.result(SOON)
        (row,) = asked(["offsets", "--group", group], tmp_path, clusters)["offsets"]
        by_offset = ["offsets", "translate", "--topic", topic, "--partition", "0", "--offset", str(UNREAD)]
        (translated,) = asked(by_offset, tmp_path, clusters)["offsets"]
    # MM2's checkpoint of the group may lie further on than the syncs, which alone know a bare offset.
    for answer in (row, translated):
        assert answer["downstream_offset"] <= UNREAD
        assert answer["downstream_offset"] + answer["error_bound"] >= UNREAD


def _faults(cluster: KafkaCluster, wanted: dict[str, dict[TopicPartition, int]]) -> list[bool]:
    faults = cluster.groups.commit(wanted)
    return [fault is not None for of_group in faults.values() for fault in of_group.values()]


def _end(cluster: KafkaCluster, where: TopicPartition) -> int | None:
    seen = cluster.groups.ends([where]).items.get(where)
    return seen.end if seen else None
