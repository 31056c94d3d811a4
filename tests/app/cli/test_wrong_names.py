"""A name that no flow replicates is an error that says which, and why."""

from __future__ import annotations

import pytest

from app.cli.wrong_names import wrong_group, wrong_topic
from sinks.kinds.shared_listings import list_both
from tests.sinks.builders import World, flow_settings, put_topic


def world() -> World:
    built = World(flow_settings({"topics.exclude": "secret.*", "groups.exclude": "console-.*"}))
    for topic in ("orders", "secret-plans", "mm2-offset-syncs.b.internal"):
        put_topic(built.source, topic)
    put_topic(built.target, "a.orders")
    put_topic(built.target, "elsewhere")
    return built


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("orders", None),
        ("a.orders", "is the name on b: write orders, its name on a"),
        ("oders", "does not exist on a; nearest: orders"),
        ("elsewhere", "does not exist on a"),
        ("secret-plans", "is on a, but is not replicated: topics, topics.exclude or the policy leave it out"),
        ("mm2-offset-syncs.b.internal", "is on a, but is not replicated"),
    ],
)
def test_a_topic_that_is_not_replicated_is_told_why(topic: str, said: str | None) -> None:
    here = world()
    reason = wrong_topic(topic, [(here.settings, list_both(here.settings, here.source, here.target))])
    assert (reason is None) is (said is None)
    assert (said or "") in (reason or "")


def test_a_topic_of_one_of_two_flows_is_right() -> None:
    here, other = world(), World(flow_settings(flow=type(world().settings.flow)("c", "b")))
    put_topic(other.source, "payments")
    flows = [(one.settings, list_both(one.settings, one.source, one.target)) for one in (here, other)]
    assert wrong_topic("payments", flows) is None
    assert "does not exist on a and c" in str(wrong_topic("nothing", flows))


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("payrols", "does not exist on a; nearest: payroll"),
        ("console-1", "is not replicated: groups or groups.exclude leave it out"),
        ("payroll", "has no offsets on replicated topics of a"),
    ],
)
def test_a_group_without_offsets_to_tell_is_told_why(group: str, said: str) -> None:
    assert wrong_group(group, [(world().settings, {"payroll", "console-1"})]) == said


def test_on_the_way_back_a_group_is_looked_for_on_the_target() -> None:
    assert wrong_group("g", [(world().settings, set())], back=True) == "does not exist on b"
