"""What topics are called on both sides of a flow. That Kafka calls them so, too, is shown in tests/parity."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.errors import NamingError
from streaming.mm2.replication_filters import DefaultTopicFilter
from streaming.mm2.replication_policy import (
    is_cycle,
    replicates,
)
from tests.streaming.mm2.policy_builders import Loops, default, identity

SEPARATORS = st.sampled_from([".", "_", "-", "..", "|", "$", "*", "^", "\\", "[", "(?:", "{2}", "+"])
TOPICS = st.text("abc._-|$*\\[", min_size=1, max_size=12)
ALIASES = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)


@given(SEPARATORS, ALIASES, TOPICS)
def test_a_remote_topic_gives_back_its_source_and_its_upstream_name(separator: str, alias: str, topic: str) -> None:
    # Java drops what is behind the last separator when it is empty: a remote topic without a name.
    assume(topic.replace(separator, ""))
    policy = default(separator)
    remote = policy.format_remote_topic(alias, topic)
    assert policy.upstream_topic(remote) == topic
    assert policy.topic_source(remote) == alias


@given(SEPARATORS, st.lists(ALIASES, max_size=5), st.from_regex(r"[A-Z]{1,9}", fullmatch=True))
def test_the_original_topic_is_found_over_any_number_of_hops(separator: str, hops: list[str], topic: str) -> None:
    policy = default(separator)
    name = topic
    for alias in hops:
        name = policy.format_remote_topic(alias, name)
    assert policy.original_topic(name) == topic
    assert {alias for alias in [*hops, "NOWHERE"] if is_cycle(policy, name, alias)} == set(hops)


@pytest.mark.parametrize("topic", ["orders", "orders.", "orders..", "", ".", ".."])
def test_a_topic_with_nothing_behind_a_separator_is_not_remote(topic: str) -> None:
    assert default().topic_source(topic) is None
    assert default().upstream_topic(topic) is None
    assert default().original_topic(topic) == topic


def test_a_topic_that_begins_with_the_separator_comes_from_a_nameless_source() -> None:
    assert (default().topic_source(".a"), default().upstream_topic(".a")) == ("", "a")


def test_an_empty_separator_splits_into_characters_as_java_does() -> None:
    assert (default("").topic_source("abc"), default("").upstream_topic("abc")) == ("a", "bc")
    assert default("").original_topic("abc") == "c"


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("mm2-offset-syncs.b.internal", True),
        ("mm2-configs.a.internal", True),
        ("a.checkpoints.internal", True),
        ("__consumer_offsets", True),
        (".hidden", True),
        ("orders.internal", False),  # a user's own since KIP-1074
        ("connect-configs-internal", False),
        ("heartbeats", False),
        ("orders", False),
    ],
)
def test_internal_is_what_mm2_and_kafka_write_for_themselves(topic: str, internal: bool) -> None:
    assert default().is_internal_topic(topic) is internal
    assert identity().is_internal_topic(topic) is internal


@given(st.text("abc._-heartbeats", max_size=12).filter(lambda topic: not topic.endswith("heartbeats")))
def test_the_identity_policy_leaves_names_alone(topic: str) -> None:
    assert identity("a").format_remote_topic("a", topic) == topic == identity("a").upstream_topic(topic)
    assert identity("a").topic_source(topic) == "a"
    assert identity().topic_source(topic) is None


@pytest.mark.parametrize("topic", ["heartbeats", "c.heartbeats", "my-heartbeats"])
def test_the_identity_policy_renames_what_ends_like_heartbeats(topic: str) -> None:
    assert identity("z").format_remote_topic("a", topic) == f"a.{topic}"
    assert identity("z").topic_source(f"a.{topic}") == "a"
    assert identity("z").upstream_topic(f"a.{topic}") == topic


def test_heartbeats_are_known_at_any_hop() -> None:
    for policy in (default(), identity("z")):
        assert policy.is_heartbeats_topic("heartbeats")
        assert policy.is_heartbeats_topic("b.a.heartbeats")
        assert not policy.is_heartbeats_topic("my-heartbeats")


def test_a_second_configuration_keeps_what_it_does_not_name() -> None:
    policy = default("_")
    policy.configure({"replication.policy.internal.topic.separator.enabled": "false"})
    assert (policy.format_remote_topic("a", "t"), policy.internal_separator) == ("a_t", "_")


def test_a_topic_that_was_on_the_target_before_is_a_cycle() -> None:
    assert is_cycle(default(), "b.orders", "b")
    assert is_cycle(default(), "c.b.orders", "b")
    assert not is_cycle(default(), "c.orders", "b")
    assert not is_cycle(default(), "orders", "b")
    assert not is_cycle(identity("a"), "orders", "b")


def test_upstream_names_that_lead_round_are_an_error_that_shows_the_way() -> None:
    with pytest.raises(
        NamingError, match=re.escape("Loops.upstream_topic makes a replication cycle: orders -> returns -> orders")
    ):
        is_cycle(Loops(), "orders", "b")
    with pytest.raises(NamingError, match="mend the policy"):
        Loops().original_topic("returns")


@pytest.mark.parametrize(
    ("topic", "heartbeats_replication", "expected"),
    [
        ("orders", False, True),
        ("payments", False, False),
        ("heartbeats", True, True),
        ("c.heartbeats", True, True),
        ("heartbeats", False, False),
        ("b.heartbeats", True, False),
        ("b.orders", True, False),
        ("orders.checkpoints.internal", True, False),
    ],
)
def test_what_is_wanted_not_internal_and_no_cycle_is_replicated(
    topic: str, heartbeats_replication: bool, expected: bool
) -> None:
    topic_filter = DefaultTopicFilter()
    topic_filter.configure({"topics": "(b.)?orders.*"})
    assert replicates(default(), topic_filter, topic, "b", heartbeats_replication) is expected
