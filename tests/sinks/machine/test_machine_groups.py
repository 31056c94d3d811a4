"""A machine that looks for groups that would skip records."""

from __future__ import annotations

from hypothesis import settings

from sinks.model.changes import Kind
from tests.sinks.machine.groups_aspect import GroupsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect


class GroupsMachine(MishapsAspect, GroupsAspect):
    """Groups, and the topics that they read."""

    kinds = (Kind.TOPIC, Kind.GROUP_OFFSET)


GroupsMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestGroups = GroupsMachine.TestCase
