"""A machine that looks for groups that would skip records."""

from __future__ import annotations

from hypothesis import settings

from sinks.model.changes import Kind
from tests.sinks.machine.groups_aspect import GroupsAspect
from tests.sinks.machine.mirrored_topic import SOURCE
from tests.sinks.machine.mishaps_aspect import MishapsAspect


class GroupsMachine(MishapsAspect, GroupsAspect):
    """Groups, and the topics that they read."""

    kinds = (Kind.TOPIC, Kind.GROUP_OFFSET)


GroupsMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestGroups = GroupsMachine.TestCase


def test_a_group_skips_nothing_that_retention_took_before_mm2_sent_it_again() -> None:
    machine = GroupsMachine()
    machine.translate_by(matching=False, committed=True)
    machine.mm2_sends_again(name="orders", back=9)
    for _ in range(3):
        machine.retention_takes_records(name="orders", side=SOURCE, share=0.3)
    machine.mm2_copies(name="orders", count=1)
    machine.mm2_sends_again(name="orders", back=0)
    machine.retention_takes_records(name="orders", side=SOURCE, share=0.9)
    machine.mm2_copies(name="orders", count=1)
    machine.teardown()
