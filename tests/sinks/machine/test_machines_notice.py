"""The machines notice what they look for: each is given a cluster that does harm, and must say so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from sinks.engine import flow_ledger, reconcile
from sinks.every_kind.controller import PassContext, Sighting
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.kafka.ports.cluster import Faults, TopicSpec
from sinks.kafka.ports.groups import GroupFaults, Offsets
from sinks.kinds.offsets import memory
from sinks.kinds.polled_controller import PolledController
from sinks.model.changes import Key, Kind
from tests.sinks.machine.faulty_lists import FaultyAcls, FaultyGroups
from tests.sinks.machine.hazards import FaultyCluster
from tests.sinks.machine.lists_aspect import FOREIGN
from tests.sinks.machine.stage import Stage
from tests.sinks.machine.test_machine_groups import GroupsMachine
from tests.sinks.machine.test_machine_lists import ListsMachine
from tests.sinks.machine.test_machine_topics import TopicsMachine

# Without shrinking: what counts is that it is found. It ends with the first finding, long before so many examples.
UNSHRUNK = settings(
    max_examples=1000,
    stateful_step_count=60,
    deadline=None,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class OneTooFar(FaultyGroups):
    """Each group is sent one record farther than was asked for."""

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        farther = {group: {where: at + 1 for where, at in rows.items()} for group, rows in offsets.items()}
        return super().commit(farther)


@dataclass
class TooWide(FaultyAcls):
    """A deletion takes an ACL along that was not asked for."""

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        self.bindings = {one for one in self.bindings if one.key != FOREIGN[Kind.ACL]}
        return super().delete(bindings)


@dataclass
class Forgetful(FaultyCluster):
    """A creation of topics is acknowledged, and other topics are gone."""

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        super().delete_topics([name for name in self.topics if name.startswith("a.")])
        return super().create_topics(specs)


class SkippingMachine(GroupsMachine):
    """Groups go one record too far."""

    def populate(self) -> None:
        self.world.target_groups = OneTooFar("b", hazard=self.hazard)
        super().populate()
        self.world.restart()


class RevokingMachine(ListsMachine):
    """ACLs of others go along."""

    def populate(self) -> None:
        self.world.target_acls = TooWide("b", hazard=self.hazard)
        super().populate()
        self.world.restart()


class DroppingMachine(TopicsMachine):
    """Topics that the source has are gone."""

    def populate(self) -> None:
        self.target = self.world.target = Forgetful("b", "id-of-b", hazard=self.hazard)
        super().populate()
        self.world.restart()


def all_gone(context: PassContext, keys: Collection[Key]) -> dict[Key, Sighting]:
    return dict.fromkeys(keys, Sighting.GONE)


class BelievingMachine(ListsMachine):
    """No second look follows: what lists lack, or the file leaves out, counts as gone."""

    def populate(self) -> None:
        super().populate()
        self._believe()

    def begin_anew(self) -> None:
        super().begin_anew()
        self._believe()

    def _believe(self) -> None:
        for one in self.world.controllers:
            if isinstance(one, PolledController):
                vars(one)["second_look"] = all_gone


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (SkippingMachine, "and skips|beyond the end"),
        (RevokingMachine, "another client's is gone|differ without a word"),
        (BelievingMachine, "deleted, and still on a source"),
        (DroppingMachine, "gone|deleted|differ without a word"),
    ],
)
def test_a_machine_says_what_harm_a_cluster_does(machine: type[Stage], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        run_state_machine_as_test(machine, settings=UNSHRUNK)


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [GroupsMachine, TopicsMachine])
def test_a_machine_says_that_a_copy_was_changed_whose_clients_may_have_moved(
    machine: type[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reconcile, flow_ledger):
        monkeypatch.setattr(module, "refuse_moved", lambda plan, known, **more: plan)
    monkeypatch.setattr(memory, "takeover_ends", lambda known: {})
    with pytest.raises(
        AssertionError, match=r"that clients may write|of clients that have moved|its offset is its own"
    ):
        run_state_machine_as_test(machine, settings=UNSHRUNK)
