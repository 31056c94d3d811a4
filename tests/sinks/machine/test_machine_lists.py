"""A machine that looks for harm to ACLs, SCRAM users, client quotas and broker configs."""

from __future__ import annotations

from hypothesis import settings

from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.machine.hazards import When
from tests.sinks.machine.lists_aspect import ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.origins import LISTS


class ListsMachine(MishapsAspect, ListsAspect):
    """What is polled as lists alone."""

    kinds = LISTS


ListsMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestLists = ListsMachine.TestCase


def test_users_of_a_process_that_died_are_unsure_until_a_pass_compares_users() -> None:
    """The first pass of the next process compares ACLs alone; a clock that jumps meanwhile makes the users foreign."""
    machine = ListsMachine()
    machine.step(after=1.0)
    machine.fail_a_write(countdown=1, how=When.CRASH_AFTER)
    machine.step(after=1.0, everything=True)
    machine.step(after=1.0, everything=False)
    machine.wall_clock_jumps(hours=-2)
    machine.change_a_password(user="alice", version=1)
    machine.teardown()


def test_what_lockstep_created_is_not_known_to_be_gone_because_it_was_missing_before() -> None:
    """It was missing in a pass before the one that created it. Then another client takes it away and puts it back."""
    machine, right = ListsMachine(), acl("DENY READ User:bob TOPIC a.y")
    machine.fail_a_write(countdown=4, how=When.BEFORE)
    machine.grant_or_revoke_by_hand(one=right, there=False)
    machine.file_names_less_for_a_while(narrower={"topics.exclude": "x"}, principals=".*", after=1.0)
    machine.grant_or_revoke_by_hand(one=right, there=False)
    machine.grant_or_revoke_by_hand(one=right, there=True)
    machine.teardown()
