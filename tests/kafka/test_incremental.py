"""`use.incremental.alter.configs` against a broker that really lacks the API (KIP-894)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import IncrementalUnsupported
from sinks.flow_settings import Incremental
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kinds.topics.writer import ConfigWriter
from sinks.model.changes import Change, Kind
from tests.kafka.api_proxy import ApiProxy
from tests.kafka.proxied_cluster import ProxiedCluster
from tests.kafka.staging import create
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
EXCLUDED = "follower.replication.throttled.replicas"
TOPIC = "a.orders"


@pytest.fixture(scope="module")
def old_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A target whose broker does not offer IncrementalAlterConfigs, with one topic that has three overrides."""
    with ExitStack() as stack:
        broker = stack.enter_context(ProxiedCluster("old", tmp_path_factory.mktemp("old"), java_options=QUICK_KAFKA))
        ((port, behind),) = broker.proxies.items()
        stack.enter_context(ApiProxy(port, behind))
        cluster = open_cluster("old", {"bootstrap.servers": f"127.0.0.1:{port}"})
        create(cluster, TOPIC, 1, {"retention.ms": "1000", "segment.ms": "60000", EXCLUDED: "*"})
        yield cluster
        cluster.close()


def overrides(cluster: KafkaCluster) -> dict[str, str | None]:
    entries = cluster.describe_topic_configs([TOPIC]).items[TOPIC]
    return {name: entry.value for name, entry in entries.items() if entry.is_override}


def wait_until_overrides(cluster: KafkaCluster, expected: dict[str, str | None]) -> None:
    """A broker shows what the controller wrote a moment later."""
    wait_for(lambda: overrides(cluster) == expected, SOON, f"{TOPIC} to have {expected}, not {overrides(cluster)}")


def change(name: str, before: str | None, after: str | None) -> Change:
    return Change(Kind.TOPIC_CONFIG, (TOPIC, name), before, after)


def test_the_client_is_told_that_the_api_is_not_there(old_broker: KafkaCluster) -> None:
    with pytest.raises(IncrementalUnsupported):
        old_broker.alter_topic_configs({TOPIC: {"retention.ms": "2000"}})


def test_requested_falls_back_with_the_kips_warning_once_and_keeps_excluded_keys(
    old_broker: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    writer = ConfigWriter(old_broker, Incremental.REQUESTED)
    with caplog.at_level(logging.WARNING):
        first = writer.write([change("retention.ms", "1000", "3000"), change("segment.ms", "60000", None)])
        wait_until_overrides(old_broker, {"retention.ms": "3000", EXCLUDED: "*"})
        second = writer.write([change("retention.ms", "3000", "4000")])
    assert [outcome.result for outcome in first + second] == ["applied"] * 3
    wait_until_overrides(old_broker, {"retention.ms": "4000", EXCLUDED: "*"})
    warnings = [record for record in caplog.records if "not compatible with IncrementalAlterConfigs" in record.message]
    assert len(warnings) == 1
    assert "old" in warnings[0].message


def test_required_stops_the_flow_with_its_reason_and_writes_nothing(old_broker: KafkaCluster) -> None:
    before = overrides(old_broker)
    with pytest.raises(IncrementalUnsupported, match=r"use\.incremental\.alter\.configs=required"):
        ConfigWriter(old_broker, Incremental.REQUIRED).write([change("retention.ms", "4000", "5000")])
    assert overrides(old_broker) == before


def test_never_uses_the_old_api_and_keeps_excluded_keys(old_broker: KafkaCluster) -> None:
    before = overrides(old_broker)
    outcomes = ConfigWriter(old_broker, Incremental.NEVER).write([change("max.message.bytes", None, "5000")])
    assert [outcome.result for outcome in outcomes] == ["applied"]
    wait_until_overrides(old_broker, before | {"max.message.bytes": "5000"})


def test_never_sets_one_refused_key_aside_and_writes_its_neighbours(old_broker: KafkaCluster) -> None:
    before = overrides(old_broker)
    wrong, right = change("retention.ms", "4000", "not a number"), change("segment.bytes", None, "1048576")
    outcomes = ConfigWriter(old_broker, Incremental.NEVER).write([wrong, right])
    assert {outcome.change.key[1]: outcome.result for outcome in outcomes} == {
        "retention.ms": "failed",
        "segment.bytes": "applied",
    }
    wait_until_overrides(old_broker, before | {"segment.bytes": "1048576"})
