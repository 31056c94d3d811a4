"""When a pass is due for topics: never for what it could not poll, and for all topics once a log is understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sinks.faults import ItemFault
from sinks.flow_settings import Pace
from sinks.kafka.ports.cluster import Faults
from sinks.kinds.topics.poll_schedule import TURN
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config
from tests.sinks.one_signal import with_signal

ALONE = (Kind.TOPIC,)
HOUR = 3600.0
MINUTES = 10 * 60.0


def test_what_changed_while_the_rhythm_was_learnt_is_found_whatever_else_changes_all_the_time() -> None:
    world = World()
    signal = with_signal(world, works=False)
    for number in range(300):
        put_topic(world.source, f"t{number:03}", 1, retention_ms="1")
    world.settle()
    busy = ("t001", "t002")
    for topic in busy:
        set_config(world.source, topic, "retention.ms", "2")
    for _ in range(2):
        world.run_pass(after=0.5)
    for topic in (*busy, "t200"):
        set_config(world.source, topic, "retention.ms", "3")
    signal.works, signal.records = True, 1
    world.run_pass(after=0.5)
    assert overrides_of(world.target, "a.t200")["retention.ms"] == "3"


@pytest.mark.parametrize("interval", [None, MINUTES], ids=["paused", "rests"])
def test_one_more_pass_is_due_for_a_record_while_configs_rest_or_are_paused_and_then_none(
    interval: float | None,
) -> None:
    intervals = {} if interval is None else {Kind.TOPIC_CONFIG: interval}
    pace = Pace(observe_rate=0, full_comparison_interval=HOUR, intervals=intervals)
    world = World(flow_settings(enabled=(Kind.TOPIC, Kind.TOPIC_CONFIG), pace=pace))
    signal = with_signal(world)
    put_topic(world.source, "x")
    world.settle()
    if interval is None:
        world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    assert Kind.TOPIC_CONFIG in world.run_pass(everything=interval is None).idle
    signal.records = 1
    assert world.run_pass().due <= world.clock.now + TURN
    assert world.run_pass(after=TURN).due > world.clock.now + MINUTES / 2


def test_a_topic_that_came_while_no_configs_are_synced_leaves_nothing_to_be_compared_again() -> None:
    world = World(flow_settings(enabled=ALONE))
    signal = with_signal(world)
    for number in range(5):
        put_topic(world.source, f"t{number}")
        signal.records = 1
        world.run_pass(after=1.0)
    assert {f"a.t{number}" for number in range(5)} <= world.target.list_topics().keys()
    assert world.run_pass(after=1.0).due > world.clock.now + 10


def try_in_vain(world: World, request: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target does not do this for a moment; then comes the pass that is due at once."""

    def not_now(changes: Mapping[str, object]) -> Faults:
        return dict.fromkeys(changes, ItemFault("NOT_CONTROLLER", "elected in a moment", retriable=True))

    with monkeypatch.context() as broken:
        broken.setattr(world.target, request, not_now)
        report = world.run_pass(after=60.0)
    assert [outcome.error is not None for outcome in report.outcomes] == [True]
    assert report.due <= world.clock.now
    world.run_pass(after=1.0)


def test_a_topic_that_could_not_be_created_for_a_moment_is_tried_again_soon_while_no_configs_are_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(flow_settings(enabled=ALONE))
    with_signal(world)
    world.run_pass()
    put_topic(world.source, "x")
    try_in_vain(world, "create_topics", monkeypatch)
    assert "a.x" in world.target.list_topics()


def test_a_partition_that_could_not_be_added_for_a_moment_is_tried_again_soon_while_no_configs_are_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(flow_settings(enabled=ALONE))
    with_signal(world)
    put_topic(world.source, "x")
    world.settle()
    world.source.create_partitions({"x": 3})
    try_in_vain(world, "create_partitions", monkeypatch)
    assert world.target.list_topics()["a.x"] == 3


@pytest.mark.parametrize("enabled", [ALONE, (Kind.TOPIC, Kind.TOPIC_CONFIG)], ids=["configs disabled", "synced"])
def test_a_topic_that_the_listing_of_the_signals_pass_did_not_show_yet_is_created_soon(enabled: Sequence[Kind]) -> None:
    world = World(flow_settings(enabled=enabled))
    signal = with_signal(world)
    put_topic(world.source, "x")
    world.settle()
    signal.records = 1
    assert world.run_pass(after=1.0).due <= world.clock.now + TURN
    put_topic(world.source, "late")
    world.run_pass(after=TURN)
    assert "a.late" in world.target.list_topics()


def test_a_new_topic_has_no_pass_due_while_topics_are_paused() -> None:
    world = World(flow_settings(enabled=(Kind.TOPIC, Kind.TOPIC_CONFIG), pace=Pace(full_comparison_interval=HOUR)))
    signal = with_signal(world)
    world.settle()
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC.value,)): ""})
    assert Kind.TOPIC in world.run_pass(everything=True).idle
    put_topic(world.source, "x")
    signal.records = 1
    due = [world.run_pass(after=TURN).due - world.clock.now for _ in range(5)]
    assert due[-1] > MINUTES


def test_what_changed_while_a_log_told_of_nothing_and_configs_rested_is_found_when_they_wake() -> None:
    pace = Pace(full_comparison_interval=HOUR, intervals={Kind.TOPIC_CONFIG: 60.0})
    world = World(flow_settings(enabled=(Kind.TOPIC, Kind.TOPIC_CONFIG), pace=pace))
    signal = with_signal(world)
    put_topic(world.source, "x", 1, retention_ms="1")
    for _ in range(4):
        world.run_pass(after=61.0)
    signal.works = False
    world.run_pass(after=1.0)
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass(after=1.0)
    signal.works = True
    for _ in range(13):
        world.run_pass(after=5.0)
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"
