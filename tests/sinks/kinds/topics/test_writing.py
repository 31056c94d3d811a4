"""Config writes: a refused key is found in few requests, its neighbours are written, and old brokers lose nothing."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.faults import IncrementalUnsupported, ItemFault, Observed
from sinks.flow_settings import Incremental
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.kinds.refused_configs import write_halving
from sinks.kinds.topics.writer import ConfigWriter
from tests.memory.memory_cluster import BUILT_IN, MemoryCluster
from tests.sinks.builders import config_change, override, overrides_of, put_topic


def refusing(*names: str) -> MemoryCluster:
    """A cluster whose policy refuses these configs, with the topics t and u."""
    cluster = MemoryCluster("b", policy=lambda topic, name, value: f"{name} is ours" if name in names else None)
    for topic in ("t", "u"):
        put_topic(cluster, topic)
    return cluster


class Secretive(MemoryCluster):
    """Shows no value of `segment.bytes`, as a broker shows none of a sensitive config."""

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        seen = super().describe_topic_configs(topics)
        items = {topic: dict(configs) for topic, configs in seen.items.items()}
        for configs in items.values():
            if configs["segment.bytes"].is_override:
                configs["segment.bytes"] = override(None, sensitive=True)
        return Observed(items, seen.errors)


ALL = [config_change("t", name, None, "1") for name in sorted(BUILT_IN)]


@pytest.mark.parametrize("mode", list(Incremental))
def test_one_refused_key_is_isolated_and_all_neighbours_are_written(mode: Incremental) -> None:
    cluster = refusing("retention.ms")
    outcomes = ConfigWriter(cluster, mode).write([*ALL, config_change("u", "retention.bytes", None, "2")])
    failed = {outcome.change.key: outcome.error for outcome in outcomes if outcome.error}
    assert failed == {("t", "retention.ms"): ItemFault("POLICY_VIOLATION", "retention.ms is ours")}
    assert overrides_of(cluster, "t") == dict.fromkeys(BUILT_IN.keys() - {"retention.ms"}, "1")
    assert overrides_of(cluster, "u") == {"retention.bytes": "2"}


@pytest.mark.parametrize("refused", sorted(BUILT_IN))
def test_number_of_requests_is_logarithmic_in_the_number_of_keys(refused: str) -> None:
    cluster = refusing(refused)
    ConfigWriter(cluster, Incremental.REQUIRED).write(ALL)
    assert cluster.writes <= 1 + 2 * math.ceil(math.log2(len(ALL)))


def test_without_a_refusal_one_request_writes_all_topics() -> None:
    cluster = refusing()
    ConfigWriter(cluster, Incremental.REQUIRED).write([*ALL, config_change("u", "retention.ms", None, "1")])
    assert cluster.writes == 1


@given(st.sets(st.sampled_from(sorted(BUILT_IN))))
@settings(max_examples=40, deadline=None)
def test_exactly_the_refused_keys_fail(refused: set[str]) -> None:
    cluster = refusing(*refused)
    outcomes = ConfigWriter(cluster, Incremental.REQUIRED).write(ALL)
    assert {outcome.change.key[1] for outcome in outcomes if outcome.error} == refused
    assert overrides_of(cluster, "t").keys() == BUILT_IN.keys() - refused


def test_outcomes_come_in_the_order_of_the_changes() -> None:
    outcomes = ConfigWriter(refusing("cleanup.policy"), Incremental.REQUIRED).write(ALL)
    assert [outcome.change for outcome in outcomes] == ALL


def test_fault_of_the_whole_topic_is_not_halved() -> None:
    requests: list[Mapping[str, object]] = []

    def denied(wanted: Mapping[str, object]) -> dict[str, ItemFault | None]:
        requests.append(wanted)
        return dict.fromkeys(wanted, ItemFault("TOPIC_AUTHORIZATION_FAILED", "no"))

    faults = write_halving({"t": {"x": "1", "y": None}}, denied)
    assert faults.keys() == {("t", "x"), ("t", "y")}
    assert len(requests) == 1


def test_topic_that_is_gone_fails_by_itself() -> None:
    cluster = refusing()
    outcomes = ConfigWriter(cluster, Incremental.REQUIRED).write(
        [config_change("gone", "retention.ms", None, "1"), config_change("t", "retention.ms", None, "1")]
    )
    assert [outcome.result for outcome in outcomes] == ["failed", "applied"]
    assert outcomes[0].error is not None
    assert outcomes[0].error.retriable


def test_requested_falls_back_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = refusing()
    cluster.incremental = False
    writer = ConfigWriter(cluster, Incremental.REQUESTED)
    with caplog.at_level(logging.WARNING):
        for value in ("1", "2"):
            assert writer.write([config_change("t", "retention.ms", None, value)])[0].error is None
    assert caplog.messages == [
        "The target cluster b is not compatible with IncrementalAlterConfigs API. Therefore using deprecated "
        "AlterConfigs API for syncing topic configurations"
    ]
    assert overrides_of(cluster, "t") == {"retention.ms": "2"}


def test_required_raises_with_the_remedy_and_writes_nothing() -> None:
    cluster = refusing()
    cluster.incremental = False
    with pytest.raises(IncrementalUnsupported, match=r"cluster b is not compatible.*upgrade its brokers to Kafka 2\.3"):
        ConfigWriter(cluster, Incremental.REQUIRED).write(ALL)
    assert cluster.writes == 0


def test_never_does_not_try_the_incremental_api(caplog: pytest.LogCaptureFixture) -> None:
    cluster = refusing()
    cluster.incremental = False
    outcomes = ConfigWriter(cluster, Incremental.NEVER).write(ALL)
    assert [outcome.error for outcome in outcomes] == [None] * len(ALL)
    assert caplog.messages == []


@pytest.mark.parametrize("mode", [Incremental.NEVER, Incremental.REQUESTED])
def test_old_api_keeps_what_the_target_has_and_the_plan_does_not_name(mode: Incremental) -> None:
    cluster = MemoryCluster("b", incremental=False)
    put_topic(cluster, "t", min_insync_replicas="2", retention_ms="1", retention_bytes="5")
    changes = [config_change("t", "retention.ms", "1", "9"), config_change("t", "retention.bytes", "5", None)]
    ConfigWriter(cluster, mode).write(changes)
    assert overrides_of(cluster, "t") == {"min.insync.replicas": "2", "retention.ms": "9"}


def test_old_api_keeps_them_while_a_refused_key_is_isolated() -> None:
    cluster = refusing("retention.ms")
    cluster.topics["t"].overrides = {"min.insync.replicas": "2"}
    changes = [change for change in ALL if change.key[1] != "min.insync.replicas"]
    ConfigWriter(cluster, Incremental.NEVER).write(changes)
    kept = dict.fromkeys(BUILT_IN.keys() - {"retention.ms"}, "1") | {"min.insync.replicas": "2"}
    assert overrides_of(cluster, "t") == kept


def test_old_api_does_not_touch_a_topic_with_a_sensitive_override() -> None:
    cluster = Secretive("b")
    put_topic(cluster, "t", segment_bytes="77")
    put_topic(cluster, "u")
    changes = [config_change(topic, "retention.ms", None, "1") for topic in ("t", "u")]
    outcomes = ConfigWriter(cluster, Incremental.NEVER).write(changes)
    assert outcomes[0].error is not None
    assert "use.incremental.alter.configs=requested" in outcomes[0].error.message
    assert outcomes[1].error is None
    assert overrides_of(cluster, "t") == {"segment.bytes": "77"}
    assert overrides_of(cluster, "u") == {"retention.ms": "1"}


def test_old_api_reports_a_topic_that_is_gone_and_writes_the_others() -> None:
    cluster = refusing()
    changes = [config_change(topic, "retention.ms", None, "1") for topic in ("gone", "t")]
    outcomes = ConfigWriter(cluster, Incremental.NEVER).write(changes)
    assert [outcome.result for outcome in outcomes] == ["failed", "applied"]
