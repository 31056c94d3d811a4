"""A plan says what the target's version will refuse of a topic's configs; everything else goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.engine.flow_status import first_status, kind_status
from sinks.engine.report import Report
from sinks.kafka.ports.cluster import ConfigEntry, Origin
from sinks.kinds.refused_configs import BEFORE_4, too_small, why_refused
from sinks.kinds.topics.config_rules import plan_configs
from sinks.model.changes import Kind, Op
from tests.sinks.builders import (
    NOON,
    World,
    config_change,
    config_filter,
    override,
    overrides_of,
    put_topic,
    set_config,
)

KAFKA_3 = frozenset({BEFORE_4, "message.timestamp.difference.max.ms", "retention.ms", "segment.bytes"})
KAFKA_4 = frozenset({"retention.ms", "segment.bytes"})
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("name", "value", "known", "said"),
    [
        (BEFORE_4, "2.8-IV1", KAFKA_4, "KIP-724"),
        ("message.timestamp.difference.max.ms", "1000", KAFKA_4, "KIP-937"),
        ("new.in.5", "1", KAFKA_4, "do not know new.in.5"),
        ("segment.bytes", str(MIB - 1), KAFKA_4, "below 1048576"),
        ("segment.bytes", str(MIB), KAFKA_4, None),
        ("segment.bytes", str(MIB - 1), KAFKA_3, None),
        (BEFORE_4, "2.8-IV1", KAFKA_3, None),
        ("retention.ms", "1", KAFKA_4, None),
        ("segment.bytes", "no number", KAFKA_4, None),
    ],
)
def test_refused_is_what_the_version_does_not_take(name: str, value: str, known: frozenset[str], said: str) -> None:
    reason = why_refused(name, value, known, "b")
    assert reason is None if said is None else said in (reason or "")


@given(st.text(max_size=9), st.text(max_size=9))
def test_where_nobody_knows_what_the_target_has_nothing_is_refused(name: str, value: str) -> None:
    assert why_refused(name, value, frozenset(), "b") is None


@given(st.integers(0, 4 * MIB))
def test_the_least_segment_is_a_mebibyte(size: int) -> None:
    assert (too_small("segment.bytes", str(size), "b") is None) == (size >= MIB)


def test_taking_an_override_away_is_never_refused() -> None:
    change = config_change("a.x", "segment.bytes", "77", None)
    source, target = {"segment.bytes": ConfigEntry("77", Origin.DEFAULT)}, {"segment.bytes": override("77")}
    planned = plan_configs("a.x", source, target, config_filter(), known=KAFKA_4, alias="b")
    assert (planned.changes, planned.refused) == ([change], [])


def refused(report: Report) -> list[tuple[Kind, Op, tuple[str, ...]]]:
    return [one.subject for one in report.plan.refused]


@pytest.mark.parametrize("already", [False, True], ids=["topic is created", "topic is there"])
def test_a_segment_that_is_too_small_stays_away_alone_and_is_told_until_it_is_mended(already: bool) -> None:
    world = World()
    put_topic(world.target, "other")
    put_topic(world.source, "x", segment_bytes="1000", retention_ms="7")
    if already:
        put_topic(world.target, "a.x")
    for _ in range(3):
        report = world.run_pass()
        assert refused(report) == [(Kind.TOPIC_CONFIG, Op.CREATE, ("a.x", "segment.bytes"))]
    status = kind_status(Kind.TOPIC_CONFIG, first_status(Kind.TOPIC_CONFIG, world.settings), report, NOON)
    assert (status.drift, "below 1048576" in (status.reason or "")) == (1, True)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "7"}
    set_config(world.source, "x", "segment.bytes", str(2 * MIB))
    world.run_pass(everything=True)
    assert refused(world.run_pass()) == []
    assert overrides_of(world.target, "a.x") == {"retention.ms": "7", "segment.bytes": str(2 * MIB)}


def test_a_config_that_the_target_does_not_know_is_refused_once_in_the_audit_topic() -> None:
    world = World()
    put_topic(world.source, "x")
    world.source.topics["x"].overrides[BEFORE_4] = "2.8-IV1"
    put_topic(world.target, "a.x")
    for _ in range(3):
        world.run_pass()
    events = [event for event in world.events() if event.result == "refused"]
    assert [event.key for event in events] == [("a.x", BEFORE_4)]


def test_what_is_refused_beforehand_is_forgotten_with_its_topic() -> None:
    world = World()
    put_topic(world.target, "a.x")
    put_topic(world.source, "x", segment_bytes="1000")
    put_topic(world.source, "y")
    assert refused(world.run_pass())
    del world.source.topics["x"]
    assert refused(world.run_pass()) == []
