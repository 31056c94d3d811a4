"""What keeps a preflight from counting, and what it says of groups that it cannot see."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from app.failover_facts import ReadinessSurvey, missing_of, unsynced
from app.rights.flow_rights import failover_rights, rights_of_flow
from app.rights.rights_check import RightFinding, RightVerdict, asked_groups
from sinks.failover.commands import cutover, drain, fence
from sinks.failover.readiness_facts import GroupsUnseen
from sinks.faults import ClusterUnreachable, CoordinatorUnavailable, ItemFault, JavaGone, NoAnswer, RightsMissing
from sinks.kinds.shared_listings import list_both
from sinks.ledger.failover_record import State
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.app.rights.test_rights import settings_of
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.failover.scenes import Stage, stage
from tests.sinks.failover.test_unplanned import cut_off, watched

COPY = TopicPartition("a.x", 0)


def test_what_a_preflight_reads_with_is_told_from_what_later_commands_need(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path).flows
    later, reads = missing_of([RightFinding(right, RightVerdict.MISSING) for right in failover_rights(flow)])
    assert sorted(reads) == ["READ on TOPIC * of a", "READ on TOPIC a. of b"]
    assert "ALTER on CLUSTER kafka-cluster of a" in later


def test_with_the_least_rights_of_the_job_a_preflight_counts(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path).flows
    granted = {(one.cluster, one.resource_type, one.resource_name, one.operation) for one in rights_of_flow(flow)}
    lacking = [
        right
        for right in failover_rights(flow)
        if (right.cluster, right.resource_type, right.resource_name, right.operation) not in granted
    ]
    assert missing_of([RightFinding(right, RightVerdict.MISSING) for right in lacking])[1] == []


class Unlisted(MemoryGroups):
    """Groups of a cluster that does not list them."""

    def __init__(self, alias: str, fault: LockstepError) -> None:
        super().__init__(alias)
        self.fault = fault

    def names(self) -> set[str]:
        raise self.fault


def unsynced_of(source: MemoryGroups, target: MemoryGroups) -> int | GroupsUnseen:
    """Where Lockstep writes no offsets, with a topic on both sides."""
    world = World(flow_settings(enabled=[Kind.TOPIC]))
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    listed = list_both(world.settings, world.source, world.target)
    return unsynced(world.settings, source, target, listed)


@pytest.mark.parametrize("error", [ClusterUnreachable, CoordinatorUnavailable, JavaGone, NoAnswer])
def test_groups_that_a_half_dead_source_does_not_list_are_not_known(error: type[NoAnswer]) -> None:
    assert unsynced_of(Unlisted("a", error("a: no answer")), MemoryGroups("b")) == GroupsUnseen("a: no answer")


def test_groups_that_may_not_be_listed_are_not_known_for_a_right() -> None:
    found = unsynced_of(Unlisted("a", RightsMissing("a denies it")), MemoryGroups("b"))
    assert found == GroupsUnseen("a denies it", denied=True)


@pytest.mark.parametrize("code", ["COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED"])
def test_group_whose_offsets_cannot_be_read_has_its_own_reason(code: str) -> None:
    source = MemoryGroups("a", {"g": {TopicPartition("x", 0): 1}}, unreadable={"g": ItemFault(code, "why")})
    assert unsynced_of(source, MemoryGroups("b")) == GroupsUnseen(f"{code}: why", denied=code.startswith("GROUP"))


def test_rights_are_asked_for_while_a_half_dead_source_does_not_list_its_groups(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path, "sync.group.offsets.enabled=true").flows
    required = failover_rights(flow)
    assert any(right.resource_type == "GROUP" for right in required)
    assert asked_groups(flow, Unlisted("a", CoordinatorUnavailable("a: no answer")), required) == set()


def missing(built: Stage) -> int:
    """The records that a preflight counts."""
    scene = built.scene()
    clusters = SimpleNamespace(ports=(scene.source, scene.target))
    survey = ReadinessSurvey(built.world.settings, clusters)  # type: ignore[arg-type]  # it asks the ports alone
    found = survey._arrivals(scene.pairs(scene.listed()), scene.journal.ledger, {}).arrivals
    return sum(one.behind.records for one in found.values() if one.behind)


def test_what_a_job_saw_is_missing_although_a_leader_tells_less() -> None:
    built = watched()
    cut_off(built)
    assert missing(built) == 3


def drained() -> Stage:
    """x is drained; its clients may have moved."""
    built = stage()
    fence(built.scene(), ("x",))
    drain(built.scene())
    return built


def test_nothing_of_a_drained_topic_is_missing_once_the_copys_retention_took_its_records() -> None:
    built = drained()
    built.there.logs[COPY].append(b"moved", b"1", 9000).cut(11).append(b"moved", b"2", 9000)
    assert missing(built) == 0
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


def test_what_came_to_a_drained_topic_is_missing_until_it_is_copied() -> None:
    built = drained()
    built.write("x", super_user=True)
    assert missing(built) == 1
    built.copy()
    assert missing(built) == 0
