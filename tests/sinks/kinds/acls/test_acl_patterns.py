"""What patterns of topics are called on the target, and which of them go along."""

from __future__ import annotations

import pytest

from sinks.kinds.acls.rules import desired_acls
from sinks.model.changes import Kind, Op
from streaming.mm2.replication_policy import DefaultReplicationPolicy
from tests.sinks.kinds.acls.acl_builders import FULL, Behind, acl, identity, lines, one, source_topics, synced


def test_prefix_is_called_after_the_front_that_the_separator_makes() -> None:
    policy = DefaultReplicationPolicy()
    policy.configure({"replication.policy.separator": "__"})
    topics = source_topics("orders", policy=policy)
    assert synced(topics, "ALLOW READ User:al TOPIC ord…", "ALLOW READ User:al TOPIC *") == [
        "ALLOW READ User:al TOPIC a__ord…",
        "ALLOW READ User:al TOPIC a__…",
    ]


def test_prefix_goes_along_if_it_covers_a_replicated_topic_or_could_cover_the_next() -> None:
    only_orders = source_topics("orders", "payments", properties={"topics": "orders.*"})
    assert synced(only_orders, "ALLOW READ User:al TOPIC ord…") == ["ALLOW READ User:al TOPIC a.ord…"]
    assert synced(only_orders, "ALLOW READ User:al TOPIC orders-new…") == ["ALLOW READ User:al TOPIC a.orders-new…"]
    assert one(only_orders, "ALLOW READ User:al TOPIC pay…").skipped == {"not-replicated": 1}
    assert synced(source_topics(), "ALLOW READ User:al TOPIC pay…") == ["ALLOW READ User:al TOPIC a.pay…"]


@pytest.mark.parametrize("name", ["b.…", "b.x", "b.x…"])
def test_patterns_of_what_came_from_the_target_do_not_go_back(name: str) -> None:
    assert synced(source_topics("x", "b.x"), f"ALLOW READ User:al TOPIC {name}") == []
    assert synced(source_topics("x", "b.x"), "ALLOW READ User:al TOPIC *", f"DENY READ User:al TOPIC {name}") == [
        "ALLOW READ User:al TOPIC a.…"
    ]


@pytest.mark.parametrize("secret", ["secret", "sec…"])
@pytest.mark.parametrize("above", ["*", "s…"])
def test_deny_of_what_is_not_replicated_goes_along_beneath_a_prefix_that_does(secret: str, above: str) -> None:
    topics = source_topics("orders", "sales", "secret", properties={"topics.exclude": "sec.*"})
    deny, allow = f"DENY READ User:al TOPIC {secret}", f"ALLOW READ User:al TOPIC {above}"
    assert f"DENY READ User:al TOPIC a.{secret}" in synced(topics, allow, deny)
    assert synced(topics, "ALLOW READ User:al TOPIC orders", deny) == ["ALLOW READ User:al TOPIC a.orders"]


@pytest.mark.parametrize("name", ["ord…", "*"])
def test_pattern_that_covers_more_than_what_is_replicated_is_translated_and_said_so(name: str) -> None:
    topics = source_topics("orders", "ord-dead", properties={"topics.exclude": ".*-dead"})
    desired = one(topics, f"ALLOW READ User:al TOPIC {name}")
    assert len(desired.wanted) == 1
    (note,) = desired.notes
    assert "covers 1 replicated topics and 1 that are not; on the target it is PREFIXED a." in note


def test_pattern_that_covers_replicated_topics_alone_needs_no_word() -> None:
    assert one(source_topics("orders", "ordinary"), "ALLOW READ User:al TOPIC ord…").notes == ()


def test_topic_that_strays_from_the_front_gets_a_literal_beside_the_prefix() -> None:
    topics = source_topics("heartbeats", "heart", "x", policy=identity())
    assert synced(topics, "ALLOW READ User:al TOPIC heart…") == [
        "ALLOW READ User:al TOPIC a.heartbeats",
        "ALLOW READ User:al TOPIC heart…",
    ]


@pytest.mark.parametrize(("name", "said"), [("ord…", "the prefix ord"), ("*", "the wildcard *")])
def test_pattern_is_refused_with_the_reason_where_the_policy_has_no_front(name: str, said: str) -> None:
    topics = source_topics("orders", policy=Behind())
    text = f"ALLOW READ User:al TOPIC {name}"
    desired = desired_acls([acl(text), acl("ALLOW READ User:al TOPIC orders")], FULL, topics)
    assert lines(desired.wanted) == ["ALLOW READ User:al TOPIC orders.a"]
    (refusal,) = desired.refused
    assert (refusal.kind, refusal.op, refusal.key) == (Kind.ACL, Op.CREATE, acl(text).key)
    assert said in refusal.reason
    assert "by hand" in refusal.reason
