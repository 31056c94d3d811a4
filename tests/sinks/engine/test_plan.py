"""A plan is sorted, has a digest that ignores order, and says what is refused of it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.model.changes import Change, Kind, Op
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import Plan, Refusal, Unobserved, join_plans, make_plan
from streaming.flow import Flow
from tests.sinks.builders import FLOW, config_change, topic_change

VALUES = st.none() | st.sampled_from(["", "1", "2"])
CONFIG_CHANGES = st.builds(
    lambda topic, name, sides: config_change(topic, name, *sides),
    st.sampled_from(["a.x", "a.y", "a.z"]),
    st.sampled_from(["retention.ms", "cleanup.policy"]),
    st.tuples(VALUES, VALUES).filter(lambda sides: sides[0] != sides[1]),
)


def may_follow(before: int | None, after: int | None) -> bool:
    """Partitions never shrink."""
    return before is None or after is None or before < after


COUNTS = st.none() | st.integers(1, 5)
TOPIC_CHANGES = st.builds(
    lambda topic, sides: topic_change(topic, *sides),
    st.sampled_from(["a.x", "a.y", "a.z"]),
    st.tuples(COUNTS, COUNTS).filter(lambda sides: sides[0] != sides[1] and may_follow(*sides)),
)
CHANGES = st.lists(CONFIG_CHANGES | TOPIC_CHANGES, unique_by=lambda change: (change.kind, change.key), max_size=9)


@given(CHANGES, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_digest_and_order_do_not_depend_on_the_order_of_the_input(changes: list[Change], random: Random) -> None:
    shuffled = list(changes)
    random.shuffle(shuffled)
    first, second = make_plan(FLOW, changes), make_plan(FLOW, shuffled)
    assert first.digest == second.digest
    assert first.changes == second.changes


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_changes_are_sorted_by_order_then_key(changes: list[Change]) -> None:
    plan = make_plan(FLOW, changes)
    assert [change.order for change in plan.changes] == sorted(change.order for change in changes)


@given(CHANGES.filter(bool))
@settings(max_examples=60, deadline=None)
def test_digest_differs_when_a_change_is_missing(changes: list[Change]) -> None:
    assert make_plan(FLOW, changes).digest != make_plan(FLOW, changes[1:]).digest


def test_digest_differs_between_flows() -> None:
    assert Plan(FLOW).digest != Plan(Flow("b", "a")).digest


def test_digest_tells_creations_with_other_configs_apart() -> None:
    plain, configured = topic_change("a.t", None, 1), topic_change("a.t", None, 1, retention_ms="1")
    assert make_plan(FLOW, [plain]).digest != make_plan(FLOW, [configured]).digest


def test_digest_is_a_promise_to_plans_on_disk() -> None:
    digest = make_plan(FLOW, [config_change("a.t", "retention.ms", "1", "2")]).digest
    assert digest == "sha256:b0e301ccfb466b4a51ccfc54628cbd47e52eae93e0a91d5e2b0aaa3de127299b"


def test_two_changes_of_one_key_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two changes of topic-config"):
        make_plan(FLOW, [config_change("a.t", "x", None, "1"), config_change("a.t", "x", None, "2")])


def test_refused_kind_leaves_the_plan_with_its_reason_and_the_others_stay() -> None:
    plan = join_plans(
        FLOW,
        [
            make_plan(FLOW, [topic_change(f"a.{n}", 1, None) for n in range(4)]),
            make_plan(FLOW, [config_change("a.t", "x", "1", "2")]),
        ],
    )
    left = plan.refusing_kinds({Kind.TOPIC: "too many"})
    assert [change.kind for change in left.changes] == [Kind.TOPIC_CONFIG]
    assert [(refusal.kind, refusal.op, refusal.reason) for refusal in left.refused] == [
        (Kind.TOPIC, Op.DELETE, "too many")
    ] * 4


def test_summary_names_every_kind() -> None:
    summary = make_plan(FLOW, [config_change("a.t", "x", "1", "2")]).summary()
    assert set(summary) == {kind.value for kind in Kind}
    assert summary.pop("topic-config") == {"create": 0, "update": 1, "delete": 0}
    assert all(counts == {"create": 0, "update": 0, "delete": 0} for counts in summary.values())


def test_json_is_the_document_that_interface_promises() -> None:
    plan = make_plan(
        FLOW,
        [config_change("a.orders", "retention.ms", "604800000", "3600000")],
        refused=[Refusal(Kind.TOPIC, Op.CREATE, ("a.long",), "too long")],
        errors=[Unobserved(Kind.TOPIC_CONFIG, "denied"), Unobserved(Kind.TOPIC_CONFIG, "denied")],
        skipped={"sensitive": 2},
    )
    document = plan.as_json()
    assert (document["source"], document["target"], document["digest"]) == ("a", "b", plan.digest)
    assert document["changes"] == [
        {
            "kind": "topic-config",
            "op": "update",
            "key": {"topic": "a.orders", "name": "retention.ms"},
            "before": "604800000",
            "after": "3600000",
        }
    ]
    assert document["refused"] == [{"kind": "topic", "op": "create", "key": {"topic": "a.long"}, "reason": "too long"}]
    assert document["errors"] == [{"kind": "topic-config", "reason": "denied"}]
    assert document["skipped"] == {"sensitive": 2}


def test_configs_in_force_with_two_values_are_told_and_are_no_change() -> None:
    group = DriftGroup(DifferingConfig(Kind.TOPIC_CONFIG, "retention.ms", "1", "2"), 3)
    plain, told = make_plan(FLOW, []), make_plan(FLOW, [], effective=[group])
    assert (told.changes, told.digest) == ((), plain.digest)
    assert join_plans(FLOW, [plain, told]).as_json()["effective"] == [
        {"kind": "topic-config", "name": "retention.ms", "topics": 3, "source": "1", "target": "2"}
    ]
