"""The same names from our policies and from Kafka's own, over generated topics, aliases and separators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from streaming.errors import NamingError
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import internal_topics
from streaming.mm2.replication_filters import DefaultTopicFilter
from streaming.mm2.replication_policy import (
    BaseReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    check_topic_name,
    is_cycle,
    replicates,
)
from tests.parity.kafka_classes import MIRROR, Kafka

POLICIES = (DefaultReplicationPolicy, IdentityReplicationPolicy)
OF_TOPIC = {
    "topic_source": "topicSource",
    "upstream_topic": "upstreamTopic",
    "original_topic": "originalTopic",
    "is_heartbeats_topic": "isHeartbeatsTopic",
    "is_checkpoints_topic": "isCheckpointsTopic",
    "is_mm2_internal_topic": "isMM2InternalTopic",
    "is_internal_topic": "isInternalTopic",
}
OF_ALIAS = {"offset_syncs_topic": "offsetSyncsTopic", "checkpoints_topic": "checkpointsTopic"}

SEPARATORS = st.sampled_from([".", "_", "-", "..", "__", "|", "$", "*", "^", "\\", "\\E", "[", "(?", "{2}", "+a", ""])
WORDS = st.sampled_from(
    ["a", "b", "us-west", "", "orders", "heartbeats", "checkpoints", "internal", "mm2", "mm2-offset-syncs", "__x", "."]
) | st.text("ab._-|$*\\ é", max_size=4)
ALIASES = st.sampled_from(["a", "b", "us-west", "heartbeats", ""]) | st.text("ab._-$", max_size=3)
SWITCHES = st.sampled_from(["true", "TRUE", "false", "False", "no", " true", ""])


def properties() -> st.SearchStrategy[dict[str, str]]:
    """What a policy reads, each key there or not."""
    return st.fixed_dictionaries(
        {},
        optional={
            "replication.policy.separator": SEPARATORS,
            "replication.policy.internal.topic.separator.enabled": SWITCHES,
            "source.cluster.alias": ALIASES,
        },
    )


def ours(policy: type[DefaultReplicationPolicy], *configured: Mapping[str, str]) -> DefaultReplicationPolicy:
    made = policy()
    for one in configured:
        made.configure(one)
    return made


@st.composite
def topics(draw: st.DrawFn, configured: Mapping[str, str]) -> str:
    """Words with the separator between them, or another."""
    separator = draw(st.just(configured.get("replication.policy.separator", ".")) | SEPARATORS)
    return separator.join(draw(st.lists(WORDS, max_size=5)))


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_method_says_what_kafkas_says(
    kafka: Kafka, policy: type[DefaultReplicationPolicy], data: st.DataObject
) -> None:
    configured = data.draw(st.lists(properties(), max_size=2))
    topic = data.draw(topics(configured[-1] if configured else {}))
    alias = data.draw(ALIASES)
    mine, theirs = ours(policy, *configured), kafka.configured(policy.__name__, *configured)
    for name, java_name in OF_TOPIC.items():
        assert getattr(mine, name)(topic) == getattr(theirs, java_name)(topic), name
    for name, java_name in OF_ALIAS.items():
        assert getattr(mine, name)(alias) == getattr(theirs, java_name)(alias), name
    assert mine.format_remote_topic(alias, topic) == theirs.formatRemoteTopic(alias, topic)
    assert mine.heartbeats_topic() == theirs.heartbeatsTopic()


class Plain(BaseReplicationPolicy):
    """A user's policy of three methods: names as the default policy's, everything else inherited."""

    _names = DefaultReplicationPolicy()

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self._names.format_remote_topic(source_alias, topic)

    def topic_source(self, topic: str) -> str | None:
        return self._names.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        return self._names.upstream_topic(topic)


@settings(max_examples=100, deadline=None)
@given(topics({}), ALIASES)
def test_what_a_users_policy_inherits_is_what_kafkas_interface_does(kafka: Kafka, topic: str, alias: str) -> None:
    theirs = kafka.configured("DefaultReplicationPolicy")
    for name, java_name in OF_TOPIC.items():
        assert getattr(Plain(), name)(topic) == getattr(theirs, java_name)(topic), name
    for name, java_name in OF_ALIAS.items():
        assert getattr(Plain(), name)(alias) == getattr(theirs, java_name)(alias), name


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_topic_is_replicated_and_a_cycle_exactly_where_mm2s_source_connector_says_so(
    kafka: Kafka, policy: type[DefaultReplicationPolicy], data: st.DataObject
) -> None:
    configured = data.draw(properties())
    filtered = data.draw(st.sampled_from([{}, {"topics": "orders, a.*"}, {"topics.exclude": ""}, {"topics": ""}]))
    heartbeats = data.draw(st.booleans())
    topic = data.draw(topics(configured))
    target = data.draw(ALIASES)
    mine, topic_filter = ours(policy, configured), DefaultTopicFilter()
    topic_filter.configure(filtered)
    theirs = kafka.source_connector(
        ("s", target),
        kafka.configured(policy.__name__, configured),
        kafka.configured("DefaultTopicFilter", filtered),
        heartbeats,
    )
    assert is_cycle(mine, topic, target) == kafka.ask(theirs, "isCycle", topic)
    assert replicates(mine, topic_filter, topic, target, heartbeats) == kafka.ask(theirs, "shouldReplicateTopic", topic)


@pytest.mark.parametrize("location", ["source", "target"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=30, deadline=None)
@given(configured=properties(), aliases=st.lists(ALIASES, min_size=2, max_size=2, unique=True))
def test_mm2s_connectors_look_for_their_topics_where_we_do(
    kafka: Kafka,
    policy: type[DefaultReplicationPolicy],
    location: str,
    configured: dict[str, str],
    aliases: list[str],
) -> None:
    assume(all(aliases))
    flow = Flow(*aliases)
    switch = configured.get("replication.policy.internal.topic.separator.enabled")
    assume(switch is None or switch.strip().lower() in ("true", "false"))  # MM2 refuses any other word
    everything = configured | {
        "name": "connector",
        "connector.class": f"{MIRROR}MirrorSourceConnector",
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
        "replication.policy.class": f"{MIRROR}{policy.__name__}",
        "offset-syncs.topic.location": location,
    }
    mine = internal_topics(ours(policy, everything), flow, location)
    source = kafka.mirror.MirrorSourceConfig(everything)
    checkpoint = kafka.mirror.MirrorCheckpointConfig(everything)
    assert mine.offset_syncs == kafka.ask(source, "offsetSyncsTopic") == kafka.ask(checkpoint, "offsetSyncsTopic")
    assert mine.checkpoints == kafka.ask(checkpoint, "checkpointsTopic")
    assert mine.offset_syncs_cluster == (flow.source if location == "source" else flow.target)


def valid(check: Any, name: str) -> bool:
    try:
        check(name)
    except (NamingError, Py4JJavaError):
        return False
    return True


@settings(max_examples=100, deadline=None)
@given(topics({}) | st.text(max_size=3) | st.integers(247, 252).map(lambda length: "x" * length))
def test_a_name_is_legal_exactly_where_kafka_says_so(kafka: Kafka, name: str) -> None:
    assert valid(check_topic_name, name) == valid(kafka.jvm.org.apache.kafka.common.internals.Topic.validate, name)
