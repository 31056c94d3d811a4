"""A machine that looks for harm to ACLs, SCRAM users, client quotas and broker configs."""

from __future__ import annotations

from hypothesis import settings

from tests.sinks.machine.lists_aspect import ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.origins import LISTS


class ListsMachine(MishapsAspect, ListsAspect):
    """What is polled as lists alone."""

    kinds = LISTS


ListsMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestLists = ListsMachine.TestCase
