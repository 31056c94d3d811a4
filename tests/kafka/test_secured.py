"""The whole job over SASL_SSL, as a principal that has the least rights and no more; and what it leaves behind."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial

import psutil
import pytest

from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from streaming.mm2.codec import encode_heartbeat, encode_offset_sync
from streaming.mm2.records import Heartbeat, OffsetSync, TopicPartition
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.secured import SOON, Pair, Stage, implied, produce, secured_stage
from tests.kafka.staging import alter, create, family_of, wait_until_shown


@pytest.fixture(scope="module")
def stage(secured: Pair, kafka_tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One job for all tests here."""
    with secured_stage(secured, kafka_tools, tmp_path_factory.mktemp("secured-job")) as staged:
        yield staged


def test_the_whole_job_works_over_sasl_ssl_with_the_least_rights(stage: Stage) -> None:
    """Topics, partitions and configs arrive, MM2's heartbeat is heard, and the log tells of nothing refused."""
    wait_until_shown(stage.target, "a.orders", 2, {"retention.ms": "3600000"})
    alter(stage.source, "orders", {"retention.ms": "7200000"})
    assert stage.source.create_partitions({"orders": 3}) == {"orders": None}
    wait_until_shown(stage.target, "a.orders", 3, {"retention.ms": "7200000"})
    heartbeat = Heartbeat("a", "b", int(time.time() * 1000))
    stage.target.append_log("a.heartbeats", [encode_heartbeat(heartbeat)])
    wait_for(lambda: stage.job.status()["flows"][0]["state"] == "LIVE", SOON, "the heartbeat to be heard")
    assert "AUTHORIZATION" not in (stage.folder / "job.log").read_text().upper()


def test_validate_rights_finds_every_right_there_that_is_needed(stage: Stage) -> None:
    assert stage.missing() == set()
    run = stage.run("validate", "--rights", "-o", "json")
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)["flows"][0]["rights"]
    assert {row["verdict"] for row in rows} == {"granted"}


def test_a_groups_record_is_found_again_over_sasl_ssl(stage: Stage) -> None:
    """By what MM2 said alone it would go on at 1: reading both sides' records tells that it is 7."""
    here, there = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
    for alias, topic in (("a", here.topic), ("b", there.topic)):
        produce(stage.ends[alias], topic, 20)
    syncs = [encode_offset_sync(OffsetSync(here, at, at)) for at in (0, 15)]
    stage.source.append_log("mm2-offset-syncs.b.internal", syncs)
    commit = partial(stage.source.groups.commit, {"orders-reader": {here: 7}})
    wait_for(lambda: commit() == {"orders-reader": {here: None}}, SOON, "the group's offset to be committed")
    arrived = partial(stage.target.groups.committed, ["orders-reader"])
    wait_for(lambda: arrived().items["orders-reader"] == {there: 7}, SOON, "the group's offset on the target")


def test_any_right_that_is_taken_away_is_found_missing(stage: Stage) -> None:
    """So none of them is there for nothing. What another right gives as well is still there without its own line."""
    needed = stage.needed()
    for right in needed:
        if implied(right, needed):
            continue
        with stage.without(right):
            wait_for(partial(stage.misses, right), SOON, f"{right} to be missed")
        wait_for(lambda: not stage.missing(), SOON, f"{right} to be back")


def test_the_job_names_the_right_to_write_that_was_taken_from_it(stage: Stage) -> None:
    (right,) = (one for one in stage.needed() if one.operation == "ALTER_CONFIGS")
    wait_for(lambda: stage.kind("topic-config")["task"] == "ACTIVE", SOON, "the job to have all its rights again")
    with stage.without(right):
        alter(stage.source, "orders", {"retention.ms": "1000"})
        wait_for(lambda: stage.kind("topic-config")["task"] == "FAULTED", SOON, "the job to say what it may not do")
        assert "ALTER_CONFIGS" in stage.kind("topic-config")["reason"]
        assert "TOPIC_AUTHORIZATION_FAILED" in stage.kind("topic-config")["reason"]
        run = stage.run("validate", "--rights")
        assert run.returncode == 1
        assert "cluster b: ALTER_CONFIGS on TOPIC a." in re.sub(r"\s+", " ", run.stderr)
    wait_until_shown(stage.target, "a.orders", 3, {"retention.ms": "1000"})


def test_a_plan_names_the_right_to_look_that_is_missing(stage: Stage) -> None:
    (right,) = (one for one in stage.needed() if (one.cluster, one.operation) == ("a", "DESCRIBE_CONFIGS"))
    with stage.without(right):
        run = stage.run("plan")
        assert run.returncode == 1
        assert "DESCRIBE_CONFIGS on the topics of a" in re.sub(r"\s+", " ", run.stderr)


def test_a_user_without_any_right_gets_no_further_than_its_login(stage: Stage) -> None:
    client = KafkaCluster("b", stage.ends["b"].secured_properties(RESTRICTED, "PLAIN"))
    assert client.cluster_id() == stage.target.cluster_id()
    assert client.list_topics() == {}


def test_nothing_that_a_run_leaves_behind_holds_a_secret(stage: Stage) -> None:
    """Files, what commands print, status and metrics, ledger and audit, and the command lines of its processes."""
    create(stage.source, "orders-pending", 1, {})
    left = [said for run in (*outputs(stage), *failures(stage)) for said in (run.stdout, run.stderr)]
    left += [json.dumps(stage.job.status()), *command_lines(stage.job.pids)]
    left += [path.read_text("latin-1") for path in stage.folder.rglob("*") if path.is_file()]
    flow = stage.settings.flows[0]
    logs = (stage.target.read_log(topic) for topic in (flow.internal.ledger, flow.internal.audit))
    left += [(key + (value or b"")).decode("latin-1") for log in logs for key, value in log]
    assert len(left) > 20
    assert "retention.ms" in "".join(left)
    assert [text[:200] for text in left for secret in stage.secrets if secret in text] == []


def outputs(stage: Stage) -> list[subprocess.CompletedProcess[str]]:
    """What every command that looks says, with a password that is right."""
    asked: Sequence[Sequence[str]] = (
        ("plan",),
        ("plan", "-o", "json"),
        ("validate", "--rights"),
        ("status", "-o", "json"),
        ("audit", "-o", "json"),
    )
    return [stage.run(*arguments) for arguments in asked]


def failures(stage: Stage) -> Iterator[subprocess.CompletedProcess[str]]:
    """What a command says where one of the passwords is wrong: the right one and a letter more."""
    for number, secret in enumerate(stage.secrets):
        config = stage.config.with_name(f"wrong-{number}.properties")
        config.write_text(stage.config.read_text().replace(secret, f"{secret}x"))
        run = stage.run("validate", config=config)
        assert run.returncode == 1
        assert "cluster a" in run.stderr
        yield run


def command_lines(pids: Sequence[int]) -> list[str]:
    """Those of a process and all its descendants."""
    lines = []
    for pid in pids:
        for process in family_of(pid):
            try:
                lines.append(" ".join(process.cmdline()))
            except psutil.NoSuchProcess:
                continue
    return lines
