"""A machine that looks for what two flows of a job do to each other on their target."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from sinks.every_kind.wishes import Wishes
from sinks.kinds.quotas.controller import PORT
from sinks.model.changes import Kind
from streaming.flow import Flow
from tests.sinks.builders import World, flow_settings
from tests.sinks.machine.faulty_lists import FaultyAcls, FaultyQuotas, FaultyUsers
from tests.sinks.machine.hazards import FaultyCluster
from tests.sinks.machine.lists_aspect import ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.origins import Cluster

SHARED = (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA)


class TwoFlowsMachine(MishapsAspect, ListsAspect):
    """a->b and c->b in one process: what both sources have is once on the target, and one of the flows owns it."""

    kinds = (*SHARED, Kind.BROKER_CONFIG)

    def clusters(self) -> tuple[list[Cluster], Cluster]:
        (first,), onto = super().clusters()
        third = FaultyCluster("c", "id-of-c")
        third.topics = self.source.topics
        acls, users, quotas = (made("c", hazard=self.upstream) for made in (FaultyAcls, FaultyUsers, FaultyQuotas))
        world = self.world
        self.other = World(
            flow_settings(flow=Flow("c", "b"), enabled=SHARED),
            third,
            self.target,
            world.clock,
            source_acls=acls,
            target_acls=world.target_acls,
            source_users=users,
            target_users=world.target_users,
            provider=world.provider,
            others={PORT: {"c": quotas, "b": world.others[PORT]["b"]}},
            pins=world.pins,
            now=self.now,
            wishes=world.wishes,
            listings=world.listings,
        )
        return [first, Cluster("c", acls, users, quotas, self.other.source_levels)], onto

    def worlds(self) -> list[World]:
        return [self.world, self.other]

    @rule(after=st.sampled_from([1.0, 15.0, 61.0]), everything=st.booleans())
    def step_of_the_other(self, after: float, everything: bool) -> None:
        self.run(self.other, after, everything)

    def begin_anew(self) -> None:
        """One process has both."""
        wishes = Wishes()
        for world in self.worlds():
            world.wishes = wishes
        super().begin_anew()

    def pass_of_all(self) -> None:
        super().pass_of_all()
        self.run(self.other, 1.0, everything=True, force=True)

    def told_later(self) -> Collection[Kind]:
        """Who deletes what neither wants is settled by two passes."""
        return set(Kind)


TwoFlowsMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestTwoFlows = TwoFlowsMachine.TestCase


def test_flow_that_was_shown_no_acl_at_first_contact_does_not_know_yet_which_users_it_wants() -> None:
    machine = TwoFlowsMachine()
    for kinds in (frozenset[Kind](), frozenset[Kind](), frozenset(Kind)):
        machine.pause_or_resume(kinds=kinds)
    machine.source_shows_nothing(kinds={Kind.ACL})
    for _ in range(2):
        machine.step_of_the_other(after=1.0, everything=False)
    machine.add_or_remove_a_user(which=0, user="alice", there=False)
    machine.teardown()
