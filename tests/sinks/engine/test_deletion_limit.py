"""A kind that would delete more than the limits allow is refused, with numbers and the remedy."""

from __future__ import annotations

import pytest

from sinks.engine.deletion_limit import beyond_limit
from sinks.engine.model import Kind
from sinks.engine.plan import Plan, make_plan
from sinks.flow_settings import Limits
from tests.sinks.builders import FLOW, config_change, topic_change


def deleting(deletes: int, existing: int, kind: Kind = Kind.TOPIC) -> Plan:
    """A plan with so many deletions of what Lockstep may delete."""
    changes = [
        topic_change(f"a.{n}", 1, None) if kind is Kind.TOPIC else config_change(f"a.{n}", "retention.ms", "1", None)
        for n in range(deletes)
    ]
    return make_plan(FLOW, changes, existing={kind: existing})


def test_too_many_deletions_are_refused_with_numbers_and_remedy() -> None:
    reason = beyond_limit(deleting(4, 10), Limits())[Kind.TOPIC]
    for part in ("a->b", "4 of 10", "topic", "allows (3)", "lockstep.limits.max.delete.percent=30", "was written"):
        assert part in reason
    assert "`lockstep apply --force`" in reason


@pytest.mark.parametrize(("deletes", "existing"), [(3, 10), (3, 9), (1, 1), (0, 0), (30, 100)])
def test_up_to_the_limit_nothing_is_refused(deletes: int, existing: int) -> None:
    assert beyond_limit(deleting(deletes, existing), Limits()) == {}


@pytest.mark.parametrize(("deletes", "existing"), [(4, 4), (4, 8), (9, 9), (31, 100)])
def test_limit_holds_for_small_numbers_as_well(deletes: int, existing: int) -> None:
    assert set(beyond_limit(deleting(deletes, existing), Limits())) == {Kind.TOPIC}


@pytest.mark.parametrize(("percent", "deletes"), [(0.0, 1), (50.0, 6), (29.9, 3)])
def test_limit_is_what_the_properties_say(percent: float, deletes: int) -> None:
    assert beyond_limit(deleting(deletes, 10), Limits(max_delete_percent=percent))


def test_minimum_is_what_the_properties_say() -> None:
    assert beyond_limit(deleting(2, 2), Limits(max_delete_minimum=2))


def test_deletions_of_topic_configs_have_no_limit() -> None:
    assert beyond_limit(deleting(100, 100, Kind.TOPIC_CONFIG), Limits(max_delete_percent=0)) == {}
