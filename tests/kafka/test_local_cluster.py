"""Local clusters as the other tests, the demo and the benchmark rely on them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from app.local.broker import ADMIN, RESTRICTED
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from streaming.errors import LockstepError
from tests.conftest import Clusters
from tests.quick_java import QUICK_KAFKA

SOON = 180.0


def client(cluster: LocalCluster, user: tuple[str, str] | None = None) -> KafkaCluster:
    return open_cluster(cluster.alias, cluster.client_properties(user))


@pytest.mark.endurance
def test_a_cluster_keeps_its_address_its_id_and_its_topics_through_restart_and_crash(tmp_path: Path) -> None:
    """And at the end none of its processes is left."""
    with LocalCluster("a", tmp_path, java_options=QUICK_KAFKA) as cluster:
        kafka, address, pids = client(cluster), cluster.bootstrap, set(cluster.pids)
        identity = kafka.cluster_id()
        assert kafka.create_topics({"orders": TopicSpec(3, 1)}) == {"orders": None}
        cluster.restart()
        pids.update(cluster.pids)
        assert client(cluster).list_topics()["orders"] == 3
        cluster.kill()
        assert cluster.pids == []
        cluster.start()
        pids.update(cluster.pids)
        assert (cluster.bootstrap, client(cluster).cluster_id()) == (address, identity)
        assert client(cluster).list_topics()["orders"] == 3
    assert len(pids) == 3
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


@pytest.mark.endurance
def test_a_cluster_of_several_brokers_is_ready_when_all_know_each_other(tmp_path: Path) -> None:
    with LocalCluster("a", tmp_path, brokers=2, heap="256m", java_options=QUICK_KAFKA) as cluster:
        assert len(cluster.pids) == 2
        kafka = client(cluster)
        assert kafka.create_topics({"orders": TopicSpec(1, 2)}) == {"orders": None}


def test_a_broker_that_does_not_start_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    cluster = LocalCluster("a", tmp_path, java_options=QUICK_KAFKA, overrides={"log.retention.ms": "soon"})
    with pytest.raises(
        LockstepError, match=r"(?s)exit code 1.*Invalid value soon for configuration log\.retention\.ms"
    ):
        cluster.start()
    assert cluster.pids == []


def test_the_plain_listener_and_the_admin_of_the_sasl_one_may_do_everything(clusters: Clusters, unique: str) -> None:
    for number, user in enumerate((None, ADMIN)):
        topic = f"{unique}-{number}"
        assert client(clusters.b, user).create_topics({topic: TopicSpec(1, 1)}) == {topic: None}


def test_the_restricted_user_of_the_sasl_listener_may_do_nothing_without_an_acl(
    clusters: Clusters, unique: str
) -> None:
    assert client(clusters.b).create_topics({unique: TopicSpec(1, 1)}) == {unique: None}
    assert unique not in client(clusters.b, RESTRICTED).list_topics()
    fault = client(clusters.b, RESTRICTED).create_topics({f"{unique}-new": TopicSpec(1, 1)})[f"{unique}-new"]
    assert fault is not None
    assert "AUTHORIZATION_FAILED" in fault.code


def test_a_scram_user_made_at_the_plain_listener_gets_in_at_the_sasl_one(clusters: Clusters) -> None:
    mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsert = UserScramCredentialUpsertion("clerk", mechanism, b"clerk-secret", b"salt")
    admin = AdminClient({"bootstrap.servers": clusters.b.bootstrap})
    for altered in admin.alter_user_scram_credentials([upsert]).values():
        altered.result()
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": clusters.b.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "clerk",
        "sasl.password": "clerk-secret",
        "log_level": 0,
    }
    clerk = AdminClient(config)

    def gets_in() -> bool:
        try:
            return bool(clerk.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    wait_for(gets_in, SOON, "the user to be known to the broker")


def test_topics_are_not_made_by_asking_for_them(clusters: Clusters, unique: str) -> None:
    admin = AdminClient({"bootstrap.servers": clusters.b.bootstrap})
    assert admin.list_topics(unique, timeout=SOON).topics[unique].error is not None
    assert unique not in client(clusters.b).list_topics()
