"""A machine that looks for harm by `lockstep adopt`: what it takes over, and what becomes of that."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sinks.engine.adopting import adoptable, take_over
from sinks.engine.cluster_guard import ClusterGuard
from sinks.ledger.audit import Audit
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.machine.lists_aspect import CONFIGS, ENTITIES, LINES, ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect
from tests.sinks.machine.origins import LISTS

ADOPTED = (Kind.ACL, Kind.CLIENT_QUOTA, Kind.BROKER_CONFIG)


class AdoptingMachine(MishapsAspect, ListsAspect):
    """Whatever is adopted is as the source has it, by the machine's own judgement, and Lockstep's from then on."""

    kinds = LISTS

    @precondition(lambda self: self.trusted and self.target.reachable and self.hazard.failing is None)
    @rule(kind=st.sampled_from(ADOPTED), item=st.integers(0, 2), same=st.booleans())
    def adopt(self, kind: Kind, item: int, same: bool) -> None:
        """Right after another client put an item onto the target that the source has, too, or has not."""
        if kind is Kind.ACL:
            self.grant_or_revoke_by_hand(acl(LINES[item].replace("TOPIC ", "TOPIC a.")), True)
            self.grant_or_revoke_on_the_source(0, acl(LINES[item]), same)
        elif kind is Kind.CLIENT_QUOTA:
            self.set_a_quota_by_hand(ENTITIES[item], 3.0)
            self.set_a_quota(0, ENTITIES[item], 3.0 if same else 2.0)
        else:
            self.configure_the_targets_brokers_by_hand(list(CONFIGS)[item], 1)
            self.configure_the_brokers(list(CONFIGS)[item], 1 if same else 0)
        self.begin_anew()
        world = self.world
        guard = ClusterGuard(world.settings.flow, world.source, world.target, pins=world.pins)
        try:
            found = adoptable(world.reconcile, kind)
        except LockstepError:
            return
        if kind in self.upstream.misread:
            # A command compares once: a broker that is behind showed it what the source had before.
            return
        there, wanted = self.onto.items(kind), self.origins[0].wanted(kind, world.provider)
        wrong = {key for key in found.plan.items if there.get(key) != wanted.get(key, object())}
        assert not wrong, f"adopted, and not as the source has it: {wrong}"
        assert not (found.plan.items and kind in self.paused), "adopted while paused"
        take_over(
            found.plan, found.ledger, guard, Audit(world.settings.internal.audit, world.target, 1, "me", self.now)
        )
        for key in found.plan.items:
            self.mine[kind][key] = world.settings.flow
            self.theirs[kind].discard(key)
            for doubtful in (self.either, self.unowned, *self.unsure.values()):
                doubtful.discard((kind, key))


AdoptingMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestAdopted = AdoptingMachine.TestCase
