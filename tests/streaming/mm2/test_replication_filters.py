"""What a flow replicates, by MM2's own lists. That Kafka's filters agree is shown in tests/parity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import LockstepError
from streaming.mm2.replication_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter

LITERALS = st.text("abcAB019_-", min_size=1, max_size=6)


def topics(**lists: str) -> DefaultTopicFilter:
    """`exclude` stands for `topics.exclude`, `blacklist` for `topics.blacklist`."""
    made = DefaultTopicFilter()
    made.configure({"topics" if key == "include" else f"topics.{key}": value for key, value in lists.items()})
    return made


def configs(**properties: str) -> DefaultConfigPropertyFilter:
    made = DefaultConfigPropertyFilter()
    made.configure({key.replace("_", "."): value for key, value in properties.items()})
    return made


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("orders", True),
        ("a.orders", True),
        ("orders.internal", True),
        ("mm2-offset-syncs.b.internal", False),
        ("a.replica", False),
        ("__consumer_offsets", False),
    ],
)
def test_all_topics_but_mm2s_replicas_and_kafkas_own_are_replicated_by_default(topic: str, expected: bool) -> None:
    assert topics().should_replicate_topic(topic) is expected


@pytest.mark.parametrize(
    ("group", "expected"), [("app", True), ("console-consumer-1", False), ("connect-sink", False), ("__g", False)]
)
def test_all_groups_but_tools_and_connectors_are_replicated_by_default(group: str, expected: bool) -> None:
    made = DefaultGroupFilter()
    made.configure({})
    assert made.should_replicate_group(group) is expected


@pytest.mark.parametrize("name", ["min.insync.replicas", "unclean.leader.election.enable", "message.timestamp.type"])
def test_configs_that_belong_to_one_cluster_are_excluded_by_default(name: str) -> None:
    for made in (configs(), DefaultConfigPropertyFilter()):
        assert not made.should_replicate_config_property(name)
        assert made.should_replicate_config_property("retention.ms")


def test_a_filter_of_topics_or_groups_that_nobody_configured_lets_nothing_through() -> None:
    assert not DefaultTopicFilter().should_replicate_topic("orders")
    assert not DefaultGroupFilter().should_replicate_group("app")


@given(st.lists(LITERALS, min_size=1, max_size=5), LITERALS)
def test_a_list_of_plain_names_lets_through_those_names_alone(listed: list[str], other: str) -> None:
    made = topics(include=" , ".join(listed), exclude="")
    assert all(made.should_replicate_topic(name) for name in listed)
    assert made.should_replicate_topic(other) is (other in listed)


@given(st.lists(LITERALS, min_size=1, max_size=5))
def test_what_is_excluded_is_not_replicated_whatever_is_included(listed: list[str]) -> None:
    made = topics(include=".*", exclude=",".join(listed))
    assert not any(made.should_replicate_topic(name) for name in listed)
    assert made.should_replicate_topic("another")


def test_a_pattern_must_match_the_whole_name() -> None:
    made = topics(include="orders|returns")
    assert made.should_replicate_topic("returns")
    assert not made.should_replicate_topic("orders-eu")
    assert not made.should_replicate_topic("eu-orders")


def test_an_empty_list_matches_nothing() -> None:
    assert not topics(include=" ").should_replicate_topic("")
    assert topics(exclude="").should_replicate_topic("__consumer_offsets")
    assert configs(config_properties_exclude="").should_replicate_config_property("min.insync.replicas")


def test_a_regular_expression_may_go_over_a_comma_as_in_mm2() -> None:
    assert topics(include="(eu,us)-orders").should_replicate_topic("us-orders")


def test_the_old_name_of_a_key_counts_where_the_new_one_is_missing() -> None:
    assert not topics(blacklist="orders").should_replicate_topic("orders")
    assert topics(blacklist="orders").should_replicate_topic("__consumer_offsets")
    assert topics(blacklist="orders", exclude="returns").should_replicate_topic("orders")
    assert configs(config_properties_blacklist="retention.ms").should_replicate_config_property("min.insync.replicas")
    groups = DefaultGroupFilter()
    groups.configure({"groups.blacklist": "app"})
    assert not groups.should_replicate_group("app")


@pytest.mark.parametrize(("side", "expected"), [("source", True), (" source ", True), ("target", False)])
def test_defaults_come_from_the_source_only_where_the_file_says_so(side: str, expected: bool) -> None:
    assert configs(use_defaults_from=side).should_replicate_source_default("retention.ms") is expected
    assert not configs().should_replicate_source_default("retention.ms")


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"include": "a(,b"}, "topics: 'a(|b' is no regular expression"),
        ({"exclude": "["}, "topics.exclude: '[' is no regular expression"),
        ({"blacklist": "*"}, "topics.blacklist: '*' is no regular expression"),
        ({"include": "a,,b"}, "topics: 'a,,b' has nothing between two commas"),
        ({"include": "a, "}, "take that comma out"),
    ],
)
def test_a_list_that_is_none_is_an_error_that_names_the_key_and_the_pattern(lists: dict[str, str], said: str) -> None:
    with pytest.raises(LockstepError) as caught:
        topics(**lists)
    assert said in str(caught.value)
