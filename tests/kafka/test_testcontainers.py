"""The same cluster in a container, where Docker is there."""

from __future__ import annotations

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.ports.cluster import TopicSpec
from tests.kafka.containers import environment


def test_a_property_is_named_as_the_official_image_wants_it() -> None:
    assert environment({"listener.name.sasl.scram-sha-256.x_y": "1"}) == {
        "KAFKA_LISTENER_NAME_SASL_SCRAM___SHA___256_X__Y": "1"
    }


def test_a_broker_in_a_container_takes_a_topic_and_a_config(docker_cluster: str) -> None:
    cluster = open_cluster("b", {"bootstrap.servers": docker_cluster})
    assert cluster.create_topics({"orders": TopicSpec(2, 1, (("retention.ms", "1000"),))}) == {"orders": None}
    wait_for(lambda: cluster.list_topics().get("orders") == 2, 180, "the topic to show")
    assert cluster.alter_topic_configs({"orders": {"retention.ms": "2000"}}) == {"orders": None}

    def value() -> str | None:
        return cluster.describe_topic_configs(["orders"]).items["orders"]["retention.ms"].value

    wait_for(lambda: value() == "2000", 180, "the config to show")
    cluster.close()
