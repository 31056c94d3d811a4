"""A machine that looks for harm to topics: foreign hands, gaps in listings, failing writes, crashes, clocks."""

from __future__ import annotations

from hypothesis import settings

from sinks.model.changes import Kind
from tests.sinks.machine.hazards import When
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.topics_aspect import TopicsAspect


class TopicsMachine(MishapsAspect, TopicsAspect):
    """Topics and their configs alone."""

    kinds = (Kind.TOPIC, Kind.TOPIC_CONFIG)


TopicsMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestTopics = TopicsMachine.TestCase


def test_topic_of_a_process_that_died_is_owned_although_its_configs_are_paused() -> None:
    """A clock that jumps later costs no ownership: a full comparison has settled the intent before."""
    machine = TopicsMachine()
    machine.step(after=1.0)
    machine.create_on_the_source(topic="y")
    machine.fail_a_write(countdown=1, how=When.CRASH_AFTER)
    machine.step(after=61.0)
    machine.pause_or_resume(kinds=frozenset({Kind.TOPIC_CONFIG}))
    machine.step(after=61.0, everything=True)
    assert not machine.world.ledger().unsettled(Kind.TOPIC)
    machine.wall_clock_jumps(hours=-2)
    machine.teardown()


def test_a_copy_that_is_known_to_be_owned_after_a_clock_jumped_goes_before_all_counts_as_equal() -> None:
    machine = TopicsMachine()
    machine.fail_a_write(countdown=6, how=When.BEFORE)
    machine.step(after=1.0)
    machine.delete_on_the_source(topic="w")
    machine.wall_clock_jumps(hours=-2)
    machine.teardown()


def test_topic_made_by_hand_soon_after_an_intent_without_an_outcome_counts_as_lockstep_s() -> None:
    machine = TopicsMachine()
    machine.fail_a_write(countdown=4, how=When.BEFORE)
    machine.step(after=1.0)
    machine.delete_on_the_source(topic="w")
    machine.recreate_by_hand(topic="w")
    machine.teardown()


def test_creation_without_a_refused_config_tells_of_the_configs_that_were_added_to_it() -> None:
    machine = TopicsMachine()
    machine.target_refuses(topic="w", name="retention.ms")
    machine.configure_on_the_source(topic="w", name="retention.ms", value="1")
    machine.configure_on_the_source(topic="w", name="cleanup.policy", value="1")
    machine.step(after=1.0, everything=False)
    machine.teardown()
