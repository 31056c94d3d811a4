"""`lockstep verify` on real brokers: every fault of a copy under its name and offset, and what a real MM2 makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark_test import assert_pyspark_df_equal

from app.application_offsets import translate_each
from app.failover_session import verdict_line
from app.local.jars import PROJECT
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from app.settings import load
from app.verify.flow_check import verify_flow, verify_rest
from app.verify.spark_jobs import NotComparable
from app.wiring import both_clusters, guard, ledger
from sinks.kinds.offsets.translation import Answer, Method
from sinks.verify.partition_verdicts import FlowReport, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.what_to_compare import ComparisonScope
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka import mm2_records
from tests.kafka.faulty_copies import (
    COUNT,
    DIFFERENCES,
    Sent,
    end_of,
    faulty_copies,
    make,
    now_ms,
    properties,
    records,
    send,
    topic_of,
    write,
)
from tests.quick_java import QUICK_KAFKA

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SOON = 180.0


@pytest.fixture(scope="module")
def copied(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a flow over topics with one fault each."""
    write(clusters.a, clusters.b, "faulty", faulty_copies())
    return properties(clusters.a, clusters.b, "faulty", tmp_path_factory.mktemp("copied"))


def verified(path: Path, spark: SparkSession, scope: ComparisonScope) -> FlowReport:
    with closing(load(path, environ={})) as settings:
        return verify_flow(settings, settings.flows[0], scope, lambda offsets: spark)


@pytest.fixture(scope="module")
def found(copied: Path, spark: SparkSession) -> dict[str, PartitionReport]:
    """By topic."""
    return {one.where.topic: one for one in verified(copied, spark, ComparisonScope()).partitions}


@pytest.mark.parametrize("fault", DIFFERENCES)
def test_a_fault_is_found_under_its_name_and_offsets(found: dict[str, PartitionReport], fault: str) -> None:
    report = found[topic_of("faulty", fault)]
    rows = [one.as_json() for one in report.findings]
    names = ("difference", "upstream_offset", "downstream_offset", "count", "fields")
    assert [tuple(row[name] for name in names) for row in rows] == DIFFERENCES[fault]
    assert report.verdict is PartitionVerdict.DIFFERENT


def test_records_exchanged_are_out_of_order(found: dict[str, PartitionReport]) -> None:
    (finding,) = found[topic_of("faulty", "swapped")].findings
    assert (finding.difference.value, finding.upstream, finding.downstream) in {
        ("REORDERED", 20, 21),
        ("REORDERED", 21, 20),
    }


@pytest.mark.parametrize(
    ("sound", "start", "through", "pending"),
    [
        ("nothing", 0, COUNT, 0),
        ("behind", 0, 35, 5),
        ("expired on source", 12, COUNT, 0),
        ("expired on target", 12, COUNT, 0),
        ("append time", 0, COUNT, 0),
        ("compacted", 0, COUNT, 0),
        ("empty", None, 0, 0),
    ],
)
def test_what_is_not_wrong_is_verified_from_where_to_where(
    found: dict[str, PartitionReport], sound: str, start: int | None, through: int, pending: int
) -> None:
    report = found[topic_of("faulty", sound)]
    assert report.verdict is PartitionVerdict.VERIFIED, report
    assert (report.start, report.through, report.pending) == (start, through, pending)
    assert report.times is (sound != "append time")


def test_what_was_verified_translates_offsets_exactly(copied: Path, spark: SparkSession) -> None:
    topic = topic_of("faulty", "nothing")
    with closing(load(copied, environ={})) as settings:
        flow = settings.flows[0]
        where = TopicPartition(topic, 0)
        before = translate_each(settings, flow, where, [20]).answers[20]
        with both_clusters(settings, flow) as clusters:
            # A job makes the ledger.
            guard(flow, clusters.source, clusters.target).check(ledger(flow, clusters.target, to_write=True))
        verify_flow(settings, flow, ComparisonScope((topic,)), lambda offsets: spark)
        found = translate_each(settings, flow, where, [20, 25])
        (rest,) = verify_rest(settings, flow, lambda offsets: spark, [topic]).partitions
    # From the last offset-sync before the end of what was verified.
    assert (rest.verdict, rest.start, rest.through) == (PartitionVerdict.VERIFIED, 30, COUNT)
    assert isinstance(before, Answer)
    assert (before.downstream, before.method) == (20, Method.MATCHED)
    assert found.remote == TopicPartition(f"copied-a.{topic}", 0)
    assert list(found.answers.values()) == [
        Answer(20, 20, Method.VERIFIED, 0),
        Answer(25, 25, Method.VERIFIED, 0),
    ]


def test_counts_alone_read_no_record_and_find_what_came_twice(copied: Path) -> None:
    def no_spark(offsets: int) -> SparkSession:
        raise AssertionError("Spark was started")

    with closing(load(copied, environ={})) as settings:
        report = verify_flow(settings, settings.flows[0], ComparisonScope(level=VerifyLevel.COUNTS), no_spark)
    different = {one.where.topic for one in report.partitions if one.verdict is PartitionVerdict.DIFFERENT}
    assert different == {topic_of("faulty", fault) for fault in ("doubled", "resent")}


def test_a_flow_with_transforms_is_refused(copied: Path, tmp_path: Path) -> None:
    path = tmp_path / "transformed.properties"
    path.write_text(f"{copied.read_text()}transforms = route\n")
    with closing(load(path, environ={})) as settings, pytest.raises(NotComparable, match="transforms=route"):
        verify_flow(settings, settings.flows[0], ComparisonScope(), lambda offsets: pytest.fail("Spark was started"))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.main", "verify", *arguments],
        cwd=PROJECT,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_name_that_no_flow_replicates_is_wrong_usage(copied: Path) -> None:
    run = command("faulty-noting", "--config", str(copied))
    assert run.returncode == 2
    assert "faulty-noting does not exist on copied-a; nearest: faulty-nothing" in run.stderr


def test_the_command_says_all_that_as_json_exports_what_differs_and_ends_with_3(
    clusters: Clusters, copied: Path, tmp_path: Path, spark: SparkSession
) -> None:
    changed = topic_of("faulty", "value")
    topics = [topic_of("faulty", "dropped"), topic_of("faulty", "nothing"), changed, "faulty-nowhere"]
    make(clusters.a, {"faulty-nowhere": {}})
    report, export = tmp_path / "report.json", tmp_path / "differing"
    options = ["--report", str(report), "--export", str(export), "-o", "json"]
    run = command(*topics, "--full", "--config", str(copied), *options)
    assert run.returncode == 3, run.stderr
    document = json.loads(run.stdout)
    assert json.loads(report.read_text()) == document
    verdicts = {one["topic"]: one["verdict"] for one in document["flows"][0]["partitions"]}
    assert verdicts == dict(zip(topics, ("DIFFERENT", "VERIFIED", "DIFFERENT", "NOT_MIRRORED"), strict=True))
    assert export.stat().st_mode & 0o777 == 0o700
    columns = ["topic", "side", "offset", "difference", "fields", "value"]
    exported = spark.read.parquet(f"{export}/copied-a-copied-b").select(columns)
    rows = [
        (topics[0], "source", 20, "MISSING", "", b"v20"),
        (changed, "source", 20, "CHANGED", "value", b"v20"),
        (f"copied-a.{changed}", "target", 20, "CHANGED", "value", b"other"),
    ]
    schema = "topic string, side string, offset bigint, difference string, fields string, value binary"
    assert_pyspark_df_equal(exported, spark.createDataFrame(rows, schema), order_by=["topic"])


@pytest.fixture(scope="module")
def killed_mirror(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a real MM2 copied that was killed before it had committed, and so sent records again."""
    a, b = clusters.a, clusters.b
    aliases = {"killed-a": a.bootstrap, "killed-b": b.bootstrap}
    lines = mirror_properties(
        aliases,
        ["killed-a->killed-b"],
        **{
            "topics": "killed-.*",
            "groups": "killed-.*",
            "sync.topic.configs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "offset.lag.max": "10",
            "refresh.topics.interval.seconds": "1",
            "killed-a.consumer.isolation.level": "read_committed",
            "killed-b.offset.flush.interval.ms": "600000",
        },
    )
    folder = tmp_path_factory.mktemp("killed")
    sent = [Sent(one.key, one.value, one.headers, now_ms() + at) for at, one in enumerate(records(500))]
    make(a, {"killed-plain": {}, "killed-transactions": {}, "killed-compacted": {"cleanup.policy": "compact"}})
    send(a, {"killed-plain": sent, "killed-compacted": [one for one in sent if one.key is not None]})
    for number in range(4):
        producer = send(a, {"killed-transactions": sent[number * 10 : number * 10 + 10]}, "killed")
        producer.abort_transaction() if number == 1 else producer.commit_transaction()
    first = LocalMirror(lines, folder / "first", java_options=QUICK_KAFKA)
    with first:
        wait_for(lambda: end_of(b, "killed-a.killed-plain") >= 500, SOON, "the first MM2 to copy everything")
        wait_for(lambda: end_of(b, "killed-a.killed-transactions") >= 30, SOON, "MM2 to copy the transactions")
        first.kill()
    with LocalMirror(lines, folder / "second", java_options=QUICK_KAFKA):
        wait_for(lambda: end_of(b, "killed-a.killed-plain") >= 1000, SOON, "the second MM2 to send everything again")
        path = folder / "killed.properties"
        text = "".join(f"{name} = {value}\n" for name, value in lines.items())
        path.write_text(f"{text}lockstep.checkpoint.dir = {folder / 'checkpoints'}\n")
        yield path


def test_records_that_a_killed_mm2_sent_again_are_duplicates_and_nothing_else_is_wrong(
    killed_mirror: Path, spark: SparkSession
) -> None:
    report = verified(killed_mirror, spark, ComparisonScope())
    found = {one.where.topic: one for one in report.partitions}
    plain = found["killed-plain"]
    assert "are on the target twice" in verdict_line(report)
    assert plain.verdict is PartitionVerdict.DIFFERENT
    assert {str(kind): count for kind, count in plain.differences.items()} == {"DUPLICATE": 500}
    assert set(map(str, found["killed-transactions"].differences)) <= {"DUPLICATE"}
    assert found["killed-compacted"].verdict is PartitionVerdict.VERIFIED


@pytest.mark.usefixtures("mirror")
def test_what_mm2_copied_is_verified(clusters: Clusters, spark: SparkSession, unique: str, tmp_path: Path) -> None:
    topic = f"mirrored-{unique}-verified"
    make(clusters.a, {topic: {}})
    send(clusters.a, {topic: records()})
    remote = f"{mm2_records.SOURCE}.{topic}"
    wait_for(lambda: end_of(clusters.b, remote) >= COUNT, SOON, f"{remote} to have all records")
    lines = mm2_records.properties(clusters.a, clusters.b) | {"lockstep.checkpoint.dir": str(tmp_path / "checkpoints")}
    path = tmp_path / "mirrored.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()), encoding="utf-8")
    (report,) = verified(path, spark, ComparisonScope((topic,))).partitions
    assert (report.verdict.value, report.start, report.through, report.records) == ("VERIFIED", 0, COUNT, COUNT)
