"""Another separator must not cost a flow its ledger: it is found under its old name, and stays in use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.wiring import ledger, with_ledger_in_use
from sinks.engine.cluster_guard import ClusterGuard, former_ledger
from sinks.faults import LedgerUntrusted, WrongCluster
from sinks.flow_settings import FlowSettings
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.pins import FILE, PinFile
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from streaming.flow import Flow
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW, World, flow_settings, put_topic

OLD, NEW = "lockstep-ledger.a.internal", "lockstep-ledger_a_internal"
SECRET = "sixteen characters or more"


@pytest.fixture
def source() -> MemoryCluster:
    return MemoryCluster("a", "id-of-a")


@pytest.fixture
def target(source: MemoryCluster) -> MemoryCluster:
    """It has the flow's ledger under its old name, in which a kind is paused."""
    built = MemoryCluster("b", "id-of-b")
    known = Ledger(OLD, built, built, 1, seal=Seal(FLOW.name, SECRET))
    ClusterGuard(FLOW, source, built).check(known)
    known.put({(Entry.PAUSED, ("acl",)): ""})
    return built


def with_another_separator() -> FlowSettings:
    settings = flow_settings({"replication.policy.separator": "_"})
    assert settings.internal.ledger == NEW
    return replace(settings, safety=replace(settings.safety, ledger_secret=SECRET))


def test_ledger_is_found_under_its_old_name_and_goes_on_being_written_there(
    source: MemoryCluster, target: MemoryCluster, tmp_path: Path
) -> None:
    settings = with_another_separator()
    guard = ClusterGuard(FLOW, source, target, pins=PinFile(tmp_path / FILE, create=True))
    for _ in range(2):
        found = guard.open(lambda: ledger(settings, target, to_write=True))
        guard.check(found)
        assert (found.topic, found.paused()) == (OLD, {Kind.ACL})
    found.put({(Entry.PAUSED, ("acl",)): None})
    assert ledger(settings, target, to_write=False).paused() == set()
    assert NEW not in target.list_topics()


def test_settings_get_the_name_that_is_in_use(target: MemoryCluster) -> None:
    settings = with_another_separator()
    assert with_ledger_in_use(settings, target).internal.ledger == OLD
    assert with_ledger_in_use(settings, MemoryCluster("b", "id-of-b")) is settings
    assert with_ledger_in_use(flow_settings(), target).internal.ledger == OLD


def test_ledger_of_another_source_cluster_is_no_ledger_of_this_flow(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    source.id = "another"
    with pytest.raises(WrongCluster, match="leads to the cluster another"):
        ClusterGuard(FLOW, source, target).open(lambda: ledger(with_another_separator(), target, to_write=False))


def test_ledgers_of_other_flows_and_of_other_targets_are_left_alone(target: MemoryCluster) -> None:
    assert former_ledger(FLOW, target, NEW) == OLD
    assert former_ledger(FLOW, target, OLD) is None
    assert former_ledger(Flow("c", "b"), target, "lockstep-ledger_c_internal") is None
    target.id = "another"
    assert former_ledger(FLOW, target, NEW) is None


@pytest.mark.parametrize(
    "name",
    [
        "lockstep-ledger_a_x",
        "lockstep-ledger.a_internal",
        "lockstep-ledger.a.internal.x",
        "lockstep-ledger.xa.internal",
    ],
)
@pytest.mark.parametrize("secret", [SECRET, None])
def test_topic_of_another_name_is_no_ledger_whatever_it_says(
    source: MemoryCluster, name: str, secret: str | None
) -> None:
    target = MemoryCluster("b", "id-of-b")
    ClusterGuard(FLOW, source, target).check(Ledger(name, target, target, 1))
    settings = with_another_separator()
    settings = replace(settings, safety=replace(settings.safety, ledger_secret=secret))
    assert ledger(settings, target, to_write=False).topic == NEW


@pytest.mark.parametrize("separator", [".", "_", "-"])
def test_ledger_of_each_usual_separator_is_found(source: MemoryCluster, separator: str) -> None:
    target = MemoryCluster("b", "id-of-b")
    settings = flow_settings({"replication.policy.separator": separator})
    ClusterGuard(FLOW, source, target).check(ledger(settings, target, to_write=True))
    assert former_ledger(FLOW, target, "another") == settings.internal.ledger


def test_name_with_the_default_separator_comes_first(source: MemoryCluster, target: MemoryCluster) -> None:
    ClusterGuard(FLOW, source, target).check(Ledger("lockstep-ledger-a-internal", target, target, 1))
    assert former_ledger(FLOW, target, NEW) == OLD


def test_first_contact_begins_under_the_name_that_the_separator_gives(source: MemoryCluster) -> None:
    target = MemoryCluster("b", "id-of-b")
    found = ledger(with_another_separator(), target, to_write=True)
    ClusterGuard(FLOW, source, target).check(found)
    assert target.list_topics() == {NEW: 1}


def of_identity(secret: str | None) -> FlowSettings:
    settings = flow_settings({"topics.exclude": "none"}, policy=IdentityReplicationPolicy())
    return replace(settings, safety=replace(settings.safety, ledger_secret=secret))


def test_former_ledger_that_mm2_may_have_copied_from_the_source_is_followed_with_a_secret_alone() -> None:
    source, target = MemoryCluster("a", "id-of-a"), MemoryCluster("b", "id-of-b")
    ClusterGuard(FLOW, source, target).check(Ledger(NEW, target, target, 1))
    with pytest.raises(LedgerUntrusted, match=r"may have copied.*lockstep\.ledger\.secret"):
        ledger(of_identity(None), target, to_write=False)
    with pytest.raises(LedgerUntrusted, match="not signed"):
        ledger(of_identity(SECRET), target, to_write=False)


def test_flow_stops_while_mm2_copies_a_topic_of_the_source_into_its_ledger() -> None:
    world = World(of_identity(None))
    put_topic(world.source, "x")
    world.settle()
    put_topic(world.source, OLD)
    for _ in range(3):
        with pytest.raises(LedgerUntrusted, match=f"MM2 copies {OLD} of a into "):
            world.run_pass(everything=True)
    assert world.target.writes == 0
    world.source.delete_topics([OLD])
    world.run_pass(everything=True)
