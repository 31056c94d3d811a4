"""What an operator gets wrong, against real brokers: an error that says what to mend, and nothing written elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from app.local.local_cluster import LocalCluster
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from tests.conftest import Clusters
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{0}-secret";'


def properties(clusters: Clusters, topics: str, **more: str) -> dict[str, str]:
    """A flow a->b of the topics that begin with a word."""
    return {
        "clusters": "a, b",
        "a.bootstrap.servers": clusters.a.bootstrap,
        "b.bootstrap.servers": clusters.b.bootstrap,
        "a->b.enabled": "true",
        "topics": f"{topics}.*",
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "lockstep.http.port": "0",
        **more,
    }


def as_user(alias: str, cluster: LocalCluster, user: str) -> Mapping[str, str]:
    return {
        f"{alias}.bootstrap.servers": cluster.sasl_bootstrap,
        f"{alias}.security.protocol": "SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism": "PLAIN",
        f"{alias}.sasl.jaas.config": JAAS.format(user),
    }


def lockstep(folder: Path, values: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    file = folder / "mirror.properties"
    file.write_text("".join(f"{name} = {value}\n" for name, value in values.items()))
    command = [sys.executable, "-m", "app.main", *words, "--config", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)


def client(cluster: LocalCluster) -> KafkaCluster:
    return open_cluster(cluster.alias, {"bootstrap.servers": cluster.bootstrap})


def allow(cluster: LocalCluster, prefix: str, operation: str) -> None:
    """Lets the user `restricted` do one thing with the topics of a prefix, and see the cluster."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    bindings = [
        AclBinding(kind, name, pattern, "User:restricted", "*", AclOperation[operation], AclPermissionType.ALLOW)
        for kind, name, pattern in (
            (ResourceType.TOPIC, prefix, ResourcePatternType.PREFIXED),
            (ResourceType.TOPIC, f"a.{prefix}", ResourcePatternType.PREFIXED),
            (ResourceType.TOPIC, "lockstep-", ResourcePatternType.PREFIXED),
            (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL),
        )
    ]
    for future in admin.create_acls(bindings).values():
        future.result()


@pytest.fixture(autouse=True)
def no_right_is_left(clusters: Clusters) -> Iterator[None]:
    """Other tests on these clusters count on `restricted` having none."""
    yield
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        "User:restricted",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for cluster in (clusters.a, clusters.b):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for future in admin.delete_acls([everything]).values():
            future.result()
        wait_for(lambda one=admin: not one.describe_acls(everything).result(), SOON, "the rights to be gone")


def test_a_cluster_id_that_changed_stops_the_flow_and_nothing_is_written(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    values = properties(clusters, unique)
    source, target = client(clusters.a), client(clusters.b)
    assert lockstep(tmp_path, values, "apply", "--yes").returncode == 0
    source.create_topics({f"{unique}-pinned": TopicSpec(1, 1)})
    assert lockstep(tmp_path, values, "apply", "--yes").returncode == 0
    with LocalCluster("other", tmp_path / "other", java_options=QUICK_KAFKA) as other:
        elsewhere = client(other)
        elsewhere.create_topics({f"{unique}-new": TopicSpec(1, 1)})
        wait_for(lambda: f"{unique}-new" in elsewhere.list_topics(), SOON, "the topic to show")
        run = lockstep(tmp_path, values | {"a.bootstrap.servers": other.bootstrap}, "apply", "--yes")
    assert run.returncode == 1
    assert "at first contact it led to" in run.stderr
    assert f"a.{unique}-new" not in target.list_topics()


def test_source_and_target_that_are_one_cluster_never_start(clusters: Clusters, tmp_path: Path, unique: str) -> None:
    same = {"b.bootstrap.servers": clusters.a.bootstrap.replace("127.0.0.1", "localhost")}
    run = lockstep(tmp_path, properties(clusters, unique) | same, "plan")
    assert run.returncode == 1
    assert "lead to one cluster" in run.stderr


def test_without_the_right_to_describe_the_error_names_it_and_nothing_is_planned(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    source = client(clusters.a)
    source.create_topics({f"{unique}-secret": TopicSpec(1, 1)})
    values = properties(clusters, unique) | as_user("a", clusters.a, "restricted")
    allow(clusters.a, unique, "DESCRIBE")
    run = lockstep(tmp_path, values, "plan")
    assert run.returncode == 1, run.stdout
    assert "DESCRIBE_CONFIGS" in run.stderr


def test_without_the_right_to_alter_every_change_fails_with_its_reason(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    source = client(clusters.a)
    source.create_topics({f"{unique}-orders": TopicSpec(1, 1, (("retention.ms", "1000"),))})
    values = properties(clusters, unique) | as_user("b", clusters.b, "restricted")
    allow(clusters.b, unique, "DESCRIBE")
    run = lockstep(tmp_path, values, "apply", "--yes")
    assert run.returncode == 1
    assert "DESCRIBE_CONFIGS on TOPIC lockstep-ledger.a.internal is missing" in run.stderr
    assert f"a.{unique}-orders" not in client(clusters.b).list_topics()


def test_a_wrong_password_says_whose_settings_to_check(clusters: Clusters, tmp_path: Path, unique: str) -> None:
    values = properties(clusters, unique) | as_user("a", clusters.a, "restricted")
    values["a.sasl.jaas.config"] = JAAS.format("restricted").replace("restricted-secret", "wrong-word")
    run = lockstep(tmp_path, values, "validate")
    assert run.returncode == 1
    assert "cluster a" in run.stderr
    assert "wrong-word" not in run.stdout + run.stderr


def test_an_unreachable_cluster_is_an_error_within_its_time_limit(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    nobody = {"a.bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    run = lockstep(tmp_path, properties(clusters, unique) | nobody, "plan")
    assert run.returncode == 1
    assert "a.bootstrap.servers" in run.stderr


def test_a_remote_name_over_249_characters_is_refused_and_its_neighbours_are_planned(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    long = f"{unique}-".ljust(248, "x")
    client(clusters.a).create_topics({long: TopicSpec(1, 1), f"{unique}-short": TopicSpec(1, 1)})
    wait_for(lambda: long in client(clusters.a).list_topics(), SOON, "the topic to show")
    run = lockstep(tmp_path, properties(clusters, unique), "plan")
    assert run.returncode == 3
    assert "249" in run.stdout
    assert f"a.{unique}-short" in run.stdout


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("replication.policy.class", "nowhere.to.be:Found", "nowhere"),
        ("topic.filter.class", "pathlib:PurePath", "should_replicate_topic"),
    ],
)
def test_a_plugin_that_cannot_be_used_names_key_and_class(
    clusters: Clusters, tmp_path: Path, unique: str, key: str, value: str, expected: str
) -> None:
    run = lockstep(tmp_path, properties(clusters, unique, **{key: value}), "plan")
    assert run.returncode == 2
    assert key in run.stderr
    assert expected in run.stderr


def test_a_topic_that_becomes_mm2s_checkpoints_is_warned_of_and_refused(
    clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    topic = f"checkpoints-{unique}.internal"
    client(clusters.a).create_topics({topic: TopicSpec(5, 1)})
    wait_for(lambda: topic in client(clusters.a).list_topics(), SOON, "the topic to show")
    values = properties(clusters, "checkpoints") | {"replication.policy.separator": f"-{unique}."}
    warned = lockstep(tmp_path, values, "validate")
    assert warned.returncode == 0
    assert f"{topic} of a becomes a-{unique}.{topic}, which is one of MM2's internal topics" in warned.stderr
    planned = lockstep(tmp_path, values, "plan", "-o", "json")
    assert [row["key"] for row in orjson.loads(planned.stdout)["flows"][0]["refused"]] == [
        {"topic": f"a-{unique}.{topic}"}
    ]
