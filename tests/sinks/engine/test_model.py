"""Changes derive their operation, and what contradicts itself cannot be built."""

from __future__ import annotations

import pytest

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import ALLOW, DENY, Change, Kind, Op, Outcome, count_by, key_as_json
from tests.sinks.builders import config_change, topic_change


@pytest.mark.parametrize(
    ("before", "after", "op"),
    [
        (None, "1", Op.CREATE),
        ("1", "2", Op.UPDATE),
        ("1", None, Op.DELETE),
        ("", None, Op.DELETE),
        (None, "", Op.CREATE),
    ],
)
def test_operation_follows_from_the_side_that_is_absent(before: str | None, after: str | None, op: Op) -> None:
    assert config_change("a.t", "retention.ms", before, after).op is op


@pytest.mark.parametrize("side", [None, "1", TopicSpec(3)])
def test_equal_sides_are_no_change(side: str | TopicSpec | None) -> None:
    with pytest.raises(ValueError, match="no change"):
        Change(Kind.TOPIC_CONFIG, ("a.t", "retention.ms"), side, side)


def test_topics_that_differ_in_configs_alone_are_no_change_of_the_topic() -> None:
    with pytest.raises(ValueError, match="no change"):
        Change(Kind.TOPIC, ("a.t",), TopicSpec(3), TopicSpec(3, 2, (("retention.ms", "1"),)))


@pytest.mark.parametrize(("kind", "key"), [(Kind.TOPIC, ("a.t", "x")), (Kind.TOPIC_CONFIG, ("a.t",))])
def test_key_has_the_parts_of_its_kind(kind: Kind, key: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="must have the parts"):
        Change(kind, key, None, "1")


def test_partitions_never_shrink() -> None:
    with pytest.raises(ValueError, match=r"a\.t: partitions never shrink \(4 to 3\)"):
        topic_change("a.t", 4, 3)


def test_topic_without_partitions_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        TopicSpec(0)


def test_no_two_steps_of_all_kinds_have_the_same_rank() -> None:
    ranks = [rank for kind in Kind for rank in kind.row.order.values()]
    assert len(ranks) == len(set(ranks))


def test_every_kind_is_looked_up_by_its_name_and_names_the_parts_of_its_key() -> None:
    assert all(Kind(kind.value) is kind and kind.row.key_fields for kind in Kind)


def test_every_number_in_a_key_is_one_of_its_parts() -> None:
    assert all(kind.row.numbers <= set(kind.row.key_fields) for kind in Kind)


def acl(before: str | None, after: str | None, permission: str) -> Change:
    key = ("TOPIC", "a.t", "LITERAL", "User:alice", "*", "READ", permission)
    return Change(Kind.ACL, key, before, after)


def test_a_denial_comes_in_first_and_goes_out_last() -> None:
    allowed, denied = acl(None, ALLOW, ALLOW), acl(None, DENY, DENY)
    no_longer_allowed, no_longer_denied = acl(ALLOW, None, ALLOW), acl(DENY, None, DENY)
    changes = [no_longer_denied, no_longer_allowed, allowed, denied]
    assert sorted(changes, key=lambda change: change.order) == [denied, allowed, no_longer_allowed, no_longer_denied]


def test_a_permission_that_is_neither_allow_nor_deny_is_refused() -> None:
    with pytest.raises(ValueError, match="ALLOW or DENY"):
        acl(None, "UNKNOWN", "UNKNOWN")


def test_topics_come_before_configs_and_deletions_of_topics_last() -> None:
    changes = [
        topic_change("a.a", 1, None),
        config_change("a.z", "retention.ms", "1", None),
        config_change("a.z", "retention.bytes", None, "1"),
        topic_change("a.z", None, 1),
        topic_change("a.b", 1, 2),
    ]
    ordered = sorted(changes, key=lambda change: change.order)
    assert [(change.kind, change.op) for change in ordered] == [
        (Kind.TOPIC, Op.CREATE),
        (Kind.TOPIC, Op.UPDATE),
        (Kind.TOPIC_CONFIG, Op.CREATE),
        (Kind.TOPIC_CONFIG, Op.DELETE),
        (Kind.TOPIC, Op.DELETE),
    ]


def test_json_of_a_change_names_the_parts_of_its_key() -> None:
    assert config_change("a.t", "retention.ms", "1", None).as_json() == {
        "kind": "topic-config",
        "op": "delete",
        "key": {"topic": "a.t", "name": "retention.ms"},
        "before": "1",
        "after": None,
    }


def test_json_of_a_topic_is_an_object() -> None:
    assert topic_change("a.t", None, 3, retention_ms="1").as_json()["after"] == {
        "partitions": 3,
        "replication_factor": -1,
        "configs": {"retention.ms": "1"},
    }
    assert key_as_json(Kind.TOPIC, ("a.t",)) == {"topic": "a.t"}


def test_what_was_so_already_counts_as_applied() -> None:
    assert Outcome(topic_change("a.t", None, 1), already=True).result == "applied"


def test_outcome_says_what_the_cluster_said() -> None:
    outcome = Outcome(config_change("a.t", "retention.ms", None, "x"), ItemFault("INVALID_CONFIG", "not a number"))
    assert outcome.as_json() == {
        "kind": "topic-config",
        "op": "create",
        "key": {"topic": "a.t", "name": "retention.ms"},
        "result": "failed",
        "error": "INVALID_CONFIG: not a number",
    }


def test_counts_have_all_operations_of_every_kind_seen() -> None:
    assert count_by([topic_change("a.t", None, 1)]) == {Kind.TOPIC: {Op.CREATE: 1, Op.UPDATE: 0, Op.DELETE: 0}}
