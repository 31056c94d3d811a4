"""A machine that looks for writes by a ledger that is not to be trusted, or on a cluster that is not meant."""

from __future__ import annotations

from hypothesis import settings

from sinks.model.changes import Kind
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.machine.ledger_aspect import LedgerAspect
from tests.sinks.machine.lists_aspect import ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.topics_aspect import TopicsAspect


class LedgerMachine(LedgerAspect, MishapsAspect, TopicsAspect, ListsAspect):
    """Topics and lists; without users: a reset makes Lockstep refuse the ones that it created."""

    kinds = (Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL, Kind.CLIENT_QUOTA, Kind.BROKER_CONFIG)


LedgerMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestLedger = LedgerMachine.TestCase


def test_right_that_another_client_took_away_before_a_pass_saw_it_counts_as_not_shown_yet() -> None:
    machine = LedgerMachine()
    machine.pause_or_resume(kinds=frozenset())
    machine.grant_or_revoke_on_the_source(which=0, one=acl("DENY READ User:bob TOPIC y"), there=False)
    machine.grant_or_revoke_by_hand(one=acl("DENY READ User:bob TOPIC a.y"), there=False)
    machine.pause_or_resume(kinds=frozenset())
    machine.grant_or_revoke_by_hand(one=acl("DENY READ User:bob TOPIC a.y"), there=True)
    machine.teardown()
