"""The whole job over SASL_SSL, as a principal that has the least rights and no more; and what it leaves behind."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import httpx
import pytest

from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from app.wiring import open_cluster
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.markers import command_lines, files_since, listening, spark_says
from tests.kafka.secured import SOON, Pair, Stage, implied, produce, secured_stage
from tests.kafka.staging import alter, create, flow_of, wait_until_shown

BEGAN = datetime.now()


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

    def heard() -> bool:
        stage.beat()
        return bool(flow_of(stage.job)["state"] == "LIVE")

    wait_for(heard, 3 * SOON, "a heartbeat to be heard")
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
    syncs = [encode_record(OffsetSync(here, at, at)) for at in (0, 15)]
    stage.source.append_log("mm2-offset-syncs.b.internal", syncs)
    commit = partial(stage.source.groups.commit, {"orders-reader": {here: 7}})
    wait_for(lambda: commit() == {"orders-reader": {here: None}}, SOON, "the group's offset to be committed")
    arrived = partial(stage.target.groups.committed, ["orders-reader"])
    wait_for(lambda: arrived().items["orders-reader"] == {there: 7}, SOON, "the group's offset on the target")


@pytest.mark.endurance
def test_any_right_that_is_taken_away_is_found_missing(stage: Stage) -> None:
    """So none of them is there for nothing. What another right gives as well is still there without its own line."""
    needed = stage.needed()
    for right in needed:
        if implied(right, needed):
            continue
        with stage.without(right):
            pass
        wait_for(lambda: not stage.missing(), SOON, f"{right} to be back")


def test_the_job_names_the_right_to_write_that_was_taken_from_it(stage: Stage) -> None:
    (right,) = (one for one in stage.needed() if one.operation == "ALTER_CONFIGS")
    wait_for(lambda: stage.kind("topic-config")["task"] == "ACTIVE", SOON, "the job to have all its rights again")
    with stage.without(right):
        alter(stage.source, "orders", {"retention.ms": "1000"})

        def told() -> bool:
            kind, words = stage.kind("topic-config"), ("ALTER_CONFIGS", "TOPIC_AUTHORIZATION_FAILED")
            return kind["task"] == "FAULTED" and all(word in kind["reason"] for word in words)

        wait_for(told, SOON, "the job to say what it may not do")
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
    client = open_cluster("b", stage.ends["b"].secured_properties(RESTRICTED, "PLAIN"))
    assert client.cluster_id() == stage.target.cluster_id()
    assert client.list_topics() == {}


def test_everything_that_listens_does_so_on_loopback(stage: Stage) -> None:
    """The job's own server, Spark's UI, its RPC and block manager, and the gateway to the JVM."""
    addresses = listening(stage.job.pids)
    assert len(addresses) >= 4
    assert {host for host, _ in addresses} == {"127.0.0.1"}


def test_nothing_that_a_run_leaves_behind_holds_a_secret(stage: Stage) -> None:
    """Files, what commands print, what is served, ledger and audit, Spark's UI, and the command lines."""
    markers = stage.markers
    for place, secret in zip(("the password", "the stores' password"), stage.secrets, strict=True):
        markers.by_place.setdefault(place, secret)
    create(stage.source, "orders-pending", 1, {})
    runs = [*outputs(stage), *kept(stage), *failures(stage), *reloads(stage)]
    said = [(f"run {number}", text) for number, run in enumerate(runs) for text in (run.stdout, run.stderr)]
    said += [(path, served(stage, "GET", path)) for path in ("/", "/status", "/metrics")]
    flow = stage.settings.flows[0]
    logs = (stage.target.read_log(topic) for topic in (flow.internal.ledger, flow.internal.audit))
    said += [("a record", (key + (value or b"")).decode("latin-1")) for log in logs for key, value in log]
    spark = list(spark_says(listening(stage.job.pids)))
    assert len(spark) > 8
    said += [*spark, *command_lines(stage.job.pids), *files_since(BEGAN, stage.folder)]
    everything = "".join(text for _, text in said)
    for seen in ("retention.ms", "acme.size: [hidden] -> [hidden]", "lockstep_build_info", "MicroBatchScan"):
        assert seen in everything, seen
    assert "the Pushgateway at" in everything
    assert markers.found_in(said) == []


def served(stage: Stage, method: str, path: str) -> str:
    """What the job's server says to a client with its token."""
    return httpx.request(method, stage.job.address + path, headers=stage.job.headers, timeout=900).text


def kept(stage: Stage) -> Iterator[subprocess.CompletedProcess[str]]:
    """What commands say that keep secrets: an override, encoded, and a password in the store."""
    wanted, password = stage.config.with_name("override.properties"), stage.config.with_name("password")
    wanted.write_text(f"lockstep.listener.webhook.secret={stage.markers.new('an override')}\n")
    password.write_text(stage.markers.new("a password in the store"))
    place = ("--entity-type", "lockstep", "--entity-name", "a->b")
    yield stage.run("configs", "--alter", *place, "--add-config-file", str(wanted))
    yield stage.run("configs", "--describe", *place)
    yield stage.run("credentials", "set", "alice", "--password-file", str(password))
    yield stage.run("credentials", "list")


def reloads(stage: Stage) -> Iterator[subprocess.CompletedProcess[str]]:
    """What is said of a file with other secrets, and of one with mistakes in which secrets are."""
    before = stage.config.read_text()
    size = stage.markers.by_place["a plug-in's setting"]
    other = before.replace(size, stage.markers.new("another setting of a plug-in"))
    reference = f"${{file\\:{stage.config.with_name('secrets.properties')}\\:listener}}"
    wrong = f"{other}\nreplication.factor={reference}\nuse.defaults.from={reference}\n"
    try:
        for text, code in ((other, 0), (wrong, 2)):
            stage.config.write_text(text)
            run = stage.run("reload")
            assert run.returncode == code, run.stderr
            yield run
            yield stage.run("validate")
        served(stage, "POST", "/reload")
    finally:
        stage.config.write_text(before)


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
        # Both clusters are asked at once, and either may be the first to refuse the login.
        assert re.search(r"cluster [ab]", run.stderr), run.stderr
        yield run
