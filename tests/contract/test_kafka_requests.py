"""What only a real broker shows: requests are counted by their outcome, and missing rights are told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app.local.local_cluster import LocalCluster
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec

pytestmark = pytest.mark.kafka

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SOON = 180.0


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> LocalCluster:
    local: LocalCluster = request.getfixturevalue("clusters").b
    return local


@pytest.fixture
def topic(broker: LocalCluster, unique: str) -> Iterator[str]:
    """A topic that is there."""
    cluster = open_cluster("b", {"bootstrap.servers": broker.bootstrap})
    assert cluster.create_topics({unique: TopicSpec(1, 1)}) == {unique: None}
    wait_for(lambda: unique in cluster.list_topics(), SOON, f"{unique} to be listed")
    yield unique
    cluster.close()


def logged_in(broker: LocalCluster, user: str, password: str) -> KafkaCluster:
    """The cluster as this user sees it."""
    return open_cluster(
        "b",
        {
            "bootstrap.servers": broker.sasl_bootstrap,
            "default.api.timeout.ms": "60000",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} username="{user}" password="{password}";',
        },
    )


def test_every_request_is_counted_with_its_outcome(broker: LocalCluster, topic: str) -> None:
    counted: list[tuple[str, str, str]] = []
    cluster = open_cluster("b", {"bootstrap.servers": broker.bootstrap}, lambda *row: counted.append(row))
    cluster.cluster_id()
    cluster.list_topics()
    cluster.describe_topic_configs([topic])
    cluster.describe_topic_configs([f"{topic}-missing"])
    cluster.create_topics({topic: TopicSpec(1, 1)})
    cluster.create_partitions({topic: 1})
    cluster.create_partitions({topic: 2})
    cluster.alter_topic_configs({topic: {"retention.ms": "1000"}})
    cluster.delete_topics([topic])
    assert counted == [
        ("b", "DescribeCluster", "ok"),
        ("b", "Metadata", "ok"),
        ("b", "DescribeTopics", "ok"),
        ("b", "DescribeConfigs", "ok"),
        ("b", "DescribeConfigs", "UNKNOWN_TOPIC_OR_PART"),
        ("b", "CreateTopics", "TOPIC_ALREADY_EXISTS"),
        ("b", "DescribeTopics", "ok"),
        ("b", "DescribeTopics", "ok"),
        ("b", "CreatePartitions", "ok"),
        ("b", "IncrementalAlterConfigs", "ok"),
        ("b", "DeleteTopics", "ok"),
    ]


def test_user_with_rights_reads_and_writes(broker: LocalCluster, topic: str) -> None:
    cluster = logged_in(broker, "admin", "admin-secret")
    assert cluster.alter_topic_configs({topic: {"retention.ms": "1000"}}) == {topic: None}
    assert cluster.describe_topic_configs([topic]).errors == {}


def test_missing_rights_are_a_fault_of_each_topic(broker: LocalCluster, topic: str) -> None:
    cluster = logged_in(broker, "restricted", "restricted-secret")
    assert topic not in cluster.list_topics()
    faults = {
        "describe": cluster.describe_topic_configs([topic]).errors[topic],
        "create": cluster.create_topics({f"{topic}-new": TopicSpec(1, 1)})[f"{topic}-new"],
        "alter": cluster.alter_topic_configs({topic: {"retention.ms": "1000"}})[topic],
        "delete": cluster.delete_topics([topic])[topic],
    }
    for fault in faults.values():
        assert fault is not None
        assert fault.code == "TOPIC_AUTHORIZATION_FAILED"
        assert not fault.retriable


@pytest.mark.parametrize("call", [KafkaCluster.cluster_id, KafkaCluster.list_topics])
def test_wrong_password_is_a_missing_right_and_names_the_settings(
    broker: LocalCluster, call: Callable[[KafkaCluster], object]
) -> None:
    cluster = logged_in(broker, "admin", "pass-phrase")
    with pytest.raises(
        RightsMissing, match=r"Invalid username or password.*check the security settings of `b\.`"
    ) as no:
        call(cluster)
    assert "pass-phrase" not in str(no.value)


def test_closed_port_is_named() -> None:
    (port,) = free_ports(1)
    cluster = open_cluster("b", {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": "2000"})
    with pytest.raises(ClusterUnreachable, match=rf"127\.0\.0\.1:{port}: refuses connections; is b\.boot"):
        cluster.list_topics()


def test_metadata_epoch_of_the_broker_that_answers_grows_with_the_metadata_log(broker: LocalCluster) -> None:
    cluster = logged_in(broker, "restricted", "restricted-secret")
    first = cluster.admin.metadata_epoch()
    assert first is not None
    assert cluster.acls.admin.metadata_epoch() >= first
    wait_for(lambda: (cluster.admin.metadata_epoch() or 0) > first, SOON, "the epoch to grow")
