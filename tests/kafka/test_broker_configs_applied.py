"""Cluster-wide configs of real brokers come over, go again, and differing defaults are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.ports.cluster import Origin, TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from sinks.kinds.brokers.controller import (
    any_broker,
    broker_drifts,
    compare_brokers,
    survey_brokers,
    write_broker_configs,
)
from sinks.kinds.effective import warnings
from sinks.kinds.topics.config_rules import plan_configs
from sinks.model.changes import Key
from sinks.model.plan import Plan, Unobserved
from tests.conftest import Clusters
from tests.contract.level_looks import ONE, SOON, clear, levels_of, shows
from tests.sinks.builders import FLOW, config_filter, flow_settings
from tests.sinks.kinds.brokers.broker_builders import broker_change, rules

pytestmark = pytest.mark.kafka

RETENTION, IO_THREADS, BACKGROUND, NETWORK = (
    "log.retention.ms",
    "num.io.threads",
    "background.threads",
    "num.network.threads",
)
NAMES = (RETENTION, IO_THREADS, BACKGROUND, NETWORK)
CHOSEN = rules(", ".join(NAMES))
DAY = "86400000"


@dataclass(frozen=True)
class Ends:
    """The levels of both clusters."""

    a: JvmLevels
    b: JvmLevels

    def plan(self, *owned: str) -> Plan:
        """What the target lacks now; `owned`: what Lockstep set there."""
        keys: set[Key] = {("", name) for name in owned}
        seen = survey_brokers(flow_settings(), CHOSEN, self.a, self.b, effective=False)
        return compare_brokers(flow_settings(), CHOSEN, seen, keys).plan


@pytest.fixture
def ends(clusters: Clusters) -> Iterator[Ends]:
    both = Ends(levels_of(clusters.a), levels_of(clusters.b))
    for levels in (both.a, both.b):
        clear(levels, NAMES)
    wait_for(lambda: not both.plan().changes, SOON, "both clusters to be at their defaults")
    yield both
    for levels in (both.a, both.b):
        clear(levels, NAMES)


def test_what_is_set_cluster_wide_comes_over_and_goes_again(ends: Ends) -> None:
    ends.a.alter({DEFAULT_OF_ALL: {RETENTION: DAY, IO_THREADS: "9"}, ONE: {BACKGROUND: "11"}})
    shows(ends.a, ONE, BACKGROUND, "11")
    shows(ends.a, DEFAULT_OF_ALL, IO_THREADS, "9")
    plan = ends.plan()
    assert plan.changes == (broker_change(RETENTION, None, DAY), broker_change(IO_THREADS, None, "9"))
    assert not any(outcome.error for outcome in write_broker_configs(ends.b, plan.changes))
    shows(ends.b, ONE, RETENTION, DAY)
    shows(ends.b, DEFAULT_OF_ALL, IO_THREADS, "9")
    assert ends.plan().changes == ()

    ends.a.alter({DEFAULT_OF_ALL: {RETENTION: None}})
    shows(ends.a, DEFAULT_OF_ALL, RETENTION, None)
    assert ends.plan().changes == ()
    plan = ends.plan(RETENTION)
    assert plan.changes == (broker_change(RETENTION, DAY, None),)
    assert not any(outcome.error for outcome in write_broker_configs(ends.b, plan.changes))
    shows(ends.b, DEFAULT_OF_ALL, RETENTION, None)
    assert ends.plan(RETENTION).changes == ()


def test_value_that_the_target_refuses_keeps_none_of_its_neighbours_away(ends: Ends) -> None:
    changes = [broker_change(IO_THREADS, None, "100"), broker_change(BACKGROUND, None, "11")]
    refused, written = write_broker_configs(ends.b, changes)
    assert refused.error is not None
    assert "not be greater than double the current value 8" in refused.error.message
    assert written.error is None
    shows(ends.b, DEFAULT_OF_ALL, BACKGROUND, "11")


def test_name_that_no_broker_knows_would_be_taken_without_a_word(ends: Ends, unique: str) -> None:
    name = f"{unique}.of.another.version"
    known = any_broker(ends.b, "b")
    assert not isinstance(known, Unobserved)
    assert name not in known
    # It is a custom config to a broker, so nothing but Lockstep's look at the known ones says that it has no effect.
    assert ends.b.alter({DEFAULT_OF_ALL: {name: "1"}}, validate_only=True) == {DEFAULT_OF_ALL: None}


def test_topic_at_two_defaults_with_two_values_is_told_for_the_topic_and_the_brokers(
    ends: Ends, clusters: Clusters, unique: str
) -> None:
    here = open_cluster("a", {"bootstrap.servers": clusters.a.bootstrap})
    there = open_cluster("b", {"bootstrap.servers": clusters.b.bootstrap})
    upstream, remote = f"{unique}-kept", f"a.{unique}-kept"
    here.create_topics({upstream: TopicSpec(1)})
    there.create_topics({remote: TopicSpec(1)})
    ends.b.alter({DEFAULT_OF_ALL: {RETENTION: DAY}})
    wait_for(
        lambda: not ends.b.describe([ConfigEntity(ResourceType.TOPIC, remote)]).errors, SOON, f"{remote} to be seen"
    )
    shows(ends.b, ConfigEntity(ResourceType.TOPIC, remote), "retention.ms", DAY)
    wait_for(lambda: not here.describe_topic_configs([upstream]).errors, SOON, f"{upstream} to be seen")
    source = here.describe_topic_configs([upstream]).items[upstream]
    target = there.describe_topic_configs([remote]).items[remote]
    planned = plan_configs(remote, source, target, config_filter(), known=(), alias="b")
    found = [one for one in planned.drifts if one.name == "retention.ms"]
    assert [(one.source.value, one.target.value, one.target.origin) for one in found] == [
        ("604800000", DAY, Origin.CLUSTER)
    ]
    assert (
        f"604800000 on a (Kafka's built-in default), {DAY} on b (the cluster-wide default)" in warnings(FLOW, found)[0]
    )
    upstream_broker, remote_broker = any_broker(ends.a, "a"), any_broker(ends.b, "b")
    assert not isinstance(upstream_broker, Unobserved)
    assert not isinstance(remote_broker, Unobserved)
    of_brokers = broker_drifts(upstream_broker, remote_broker, CHOSEN)
    assert [(one.name, one.source.value, one.target.value) for one in of_brokers] == [(RETENTION, "604800000", DAY)]
    for cluster in (here, there):
        cluster.close()
