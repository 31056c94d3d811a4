"""A machine that looks for harm to topics: foreign hands, gaps in listings, failing writes, crashes, clocks."""

from __future__ import annotations

from hypothesis import settings

from sinks.engine.model import Kind
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.topics_aspect import TopicsAspect


class TopicsMachine(MishapsAspect, TopicsAspect):
    """Topics and their configs alone."""

    kinds = (Kind.TOPIC, Kind.TOPIC_CONFIG)


TopicsMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestTopics = TopicsMachine.TestCase
