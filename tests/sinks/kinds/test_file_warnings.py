"""A typo in the file's lists is said: what it names and nothing is called, and what it does not name any more."""

from __future__ import annotations

import logging

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.kinds.file_warnings import file_warnings, forgotten_copies, unmatched_groups
from sinks.kinds.shared_listings import list_both
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import World, flow_settings, put_topic


def warned(world: World, topics: str) -> tuple[str, ...]:
    settings = flow_settings({"topics": topics})
    return file_warnings(settings, list_both(settings, world.source, world.target))


@pytest.fixture
def world() -> World:
    built = World()
    for topic in ("orders", "orders.eu", "others"):
        put_topic(built.source, topic)
    return built


@pytest.mark.parametrize("topics", [".*", "orders, others", "orders.eu", "order.*", "ordesr|others", ""])
def test_patterns_and_names_that_are_there_are_no_mistake(world: World, topics: str) -> None:
    assert warned(world, topics) == ()


def test_name_that_no_topic_has_is_said_with_the_nearest_one(world: World) -> None:
    assert warned(world, "ordesr, others") == ("topics names ordesr, and a has no such topic; nearest: orders",)


def test_name_that_no_group_has_is_said_with_the_nearest_one() -> None:
    settings = flow_settings({"groups": "billing, shpping, app-.*"})
    (said,) = unmatched_groups(settings, lambda: {"billing", "shipping"})
    assert said == "groups names shpping, and a has no such group; nearest: shipping"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"topics": ".*"}, []),
        ({"topics": "ordesr, others"}, ["orders", "orders.eu"]),
        ({"topics": "others", "topics.exclude": "orders"}, ["orders.eu"]),
        ({"topics": ".*", "topics.exclude": "orders.*"}, []),
    ],
)
def test_copies_of_topics_that_the_file_neither_names_nor_excludes_are_forgotten(
    world: World, filters: dict[str, str], found: list[str]
) -> None:
    world.settle()
    settings = flow_settings(filters)
    assert forgotten_copies(settings, list_both(settings, world.source, world.target)) == found


def test_copies_that_the_file_stopped_naming_are_in_status_and_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.settle()
    world.settings = flow_settings({"topics": "ordesr, others"})
    world.restart()
    task = FlowTask(world.reconcile, Metrics("test"), clock=world.clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            status = task.step(None)
            world.clock.now += 60.0
    behind = "leaves out 2 topics of a with a copy on b, so Lockstep does not sync them: orders, orders.eu"
    assert status.reason is not None
    assert behind in status.reason
    assert "nearest: orders" in status.reason
    assert sum(behind in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("groups", ["billing, shpping, app-.*", "shpping"])
def test_name_that_no_group_has_is_in_status_and_log_of_a_job_that_read_its_file_again(
    groups: str, caplog: pytest.LogCaptureFixture
) -> None:
    built = World(flow_settings({"groups": "billing"}))
    put_topic(built.source, "orders")
    built.source_groups.offsets = {group: {TopicPartition("orders", 0): 0} for group in ("billing", "shipping")}
    task = FlowTask(built.reconcile, Metrics("test"), clock=built.clock)
    assert "groups names" not in (task.step(None).reason or "")
    built.settings = flow_settings({"groups": groups})
    built.restart()
    task.mailbox.renew(lambda: built.reconcile, [])
    said = "groups names shpping, and a has no such group; nearest: shipping"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            status = task.step(None)
            built.clock.now += 60.0
    assert status.reason is not None
    assert said in status.reason
    assert sum(said in record.getMessage() for record in caplog.records) == 1


def test_copy_of_the_same_name_is_no_copy_where_the_policy_tells_none(world: World) -> None:
    put_topic(world.target, "orders")
    assert warned(world, "others") == ()


def test_topics_without_a_copy_whose_names_mm2_of_kafka_3_leaves_out_are_said() -> None:
    built, settings = World(), flow_settings()
    for topic in ("orders", "orders.internal", "own-internal"):
        put_topic(built.source, topic)
    put_topic(built.target, "a.own-internal")
    (said,) = file_warnings(settings, list_both(settings, built.source, built.target))
    assert said.startswith("b has no copy of orders.internal. MM2 of Kafka 4 creates copies")
    put_topic(built.target, "a.orders.internal")
    assert file_warnings(settings, list_both(settings, built.source, built.target)) == ()
