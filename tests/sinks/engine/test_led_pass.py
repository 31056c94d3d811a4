"""Passes of two processes over one flow, and of a command beside them: the leader writes, and no other process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.status import FlowState, Task
from sinks.faults import ClusterUnreachable, NotLeading
from sinks.ledger.audit import SettingChange
from sinks.ledger.lease import MARGIN, Lease
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.sinks.builders import World, overrides_of, put_topic, set_config
from tests.sinks.engine.leases import SECONDS, Processes


class Pair:
    """Two processes with the same clusters, and with leases whose time a test moves."""

    def __init__(self) -> None:
        self.one = World()
        self.all = Processes(self.one.target)
        self.leases: list[Lease] = []
        self.one = self._process("one")
        self.two = self._process("two")

    def _process(self, name: str, **lease: object) -> World:
        self.leases.append(self.all.lease(name, **lease))  # type: ignore[arg-type]  # as Processes.lease has it
        return World(
            source=self.one.source,
            target=self.one.target,
            source_acls=self.one.source_acls,
            target_acls=self.one.target_acls,
            leadership=self.leases[-1],
        )

    def command(self, meanwhile: Callable[[], object]) -> World:
        """One that asks the others to hand over, and waits for a minute."""
        return self._process("command", patience=60.0, meanwhile=meanwhile)

    def renewed(self) -> World:
        """The same process once more, with a lease of its own."""
        return self._process("renewed")

    def lease_ends(self) -> None:
        """No process said a word for so long."""
        self.all.now += SECONDS + MARGIN


@pytest.fixture
def pair() -> Pair:
    built = Pair()
    put_topic(built.one.source, "x", 3, retention_ms="1")
    built.one.run_pass()
    with pytest.raises(NotLeading):
        built.two.run_pass()
    return built


def test_process_that_stands_by_writes_nothing(pair: Pair) -> None:
    set_config(pair.one.source, "x", "retention.ms", "2")
    before = pair.one.target.writes
    for _ in range(3):
        with pytest.raises(NotLeading, match="one on here"):
            pair.two.run_pass(everything=True)
    assert pair.one.target.writes == before
    assert pair.one.run_pass(everything=True).outcomes
    assert overrides_of(pair.one.target, "a.x") == {"retention.ms": "2"}


def test_process_that_takes_over_knows_what_the_other_created(pair: Pair) -> None:
    pair.lease_ends()
    pair.two.run_pass()
    assert pair.two.ledger().owned(Kind.TOPIC) == {("a.x",)}
    set_config(pair.one.source, "x", "retention.ms", "3")
    assert pair.two.run_pass(everything=True).outcomes


def test_process_that_slept_writes_nothing_of_what_it_compared_before(pair: Pair) -> None:
    """It compared, was stopped for longer than its lease, and another led and wrote in that time."""
    set_config(pair.one.source, "x", "retention.ms", "2")
    compared = pair.one.reconcile.compare(everything=True)
    assert compared.plan.changes
    pair.lease_ends()
    pair.two.run_pass()
    set_config(pair.one.source, "x", "retention.ms", "3")
    pair.two.run_pass(everything=True)
    with pytest.raises(NotLeading):
        pair.one.reconcile.apply(compared)
    assert overrides_of(pair.one.target, "a.x") == {"retention.ms": "3"}


def test_process_that_sleeps_between_two_of_its_requests_sends_no_more_of_them(pair: Pair) -> None:
    """What it wrote before is in the audit topic, and still an intent in the ledger, as after a crash."""
    for name in ("y", "z"):
        put_topic(pair.one.source, name, 1, retention_ms="1")
    set_config(pair.one.source, "x", "retention.ms", "2")
    compared = pair.one.reconcile.compare(everything=True)
    created: list[int] = []

    def sleeps(done: int, total: int) -> None:
        if not created:
            pair.lease_ends()
        created.append(done)

    with pytest.raises(ClusterUnreachable, match="not confirmed"):
        pair.one.reconcile.apply(compared, sleeps)
    assert overrides_of(pair.one.target, "a.x") == {"retention.ms": "1"}
    assert {event.result for event in pair.one.events() if event.key == ("a.y",)} == {"applied"}
    with pytest.raises(NotLeading):
        pair.two.run_pass()
    pair.lease_ends()
    pair.two.run_pass()
    assert ("a.y",) in pair.two.ledger().owned(Kind.TOPIC)
    assert overrides_of(pair.one.target, "a.x") == {"retention.ms": "2"}


def test_command_leads_for_as_long_as_it_takes_and_the_job_goes_on_afterwards(pair: Pair) -> None:
    set_config(pair.one.source, "x", "retention.ms", "2")
    command = pair.command(meanwhile=pair.leases[0].tend)
    with command.reconcile.leading():
        with pytest.raises(NotLeading, match="command on here"):
            pair.one.run_pass(everything=True)
        assert command.reconcile.apply(command.reconcile.compare(everything=True)).outcomes
    command.reconcile.close()
    assert not pair.one.run_pass().outcomes
    set_config(pair.one.source, "x", "retention.ms", "3")
    assert pair.one.run_pass(everything=True).outcomes


def test_what_a_command_paused_without_the_lead_holds_for_the_one_that_leads(pair: Pair) -> None:
    """`pause` and overrides are entries of their own: they take no lead, and no process overwrites them."""
    pair.all.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    set_config(pair.one.source, "x", "retention.ms", "2")
    assert not pair.one.run_pass(everything=True).outcomes
    assert pair.one.reconcile.paused == {Kind.TOPIC_CONFIG}


def test_settings_are_audited_by_the_one_that_leads_alone(pair: Pair) -> None:
    before = len(pair.one.events())
    with pytest.raises(NotLeading):
        pair.two.reconcile.note_settings(())
    assert len(pair.one.events()) == before


def test_flow_that_goes_on_with_other_settings_leads_again_and_audits_them(pair: Pair) -> None:
    """What it is built of anew has a lease of its own, which it did not claim yet."""
    task = FlowTask(pair.one.reconcile, Metrics("test"), pair.one.clock)
    task.step(None)
    renewed = pair.renewed()
    task.mailbox.renew(lambda: renewed.reconcile, [SettingChange("topics", "x", "x,y")])
    before = len(pair.one.events())
    status = task.step(None)
    assert (task.stands_by, status.leader and status.leader.here) == (False, True)
    assert status.leader is not None and status.leader.client == "renewed"
    assert [(event.kind, event.key) for event in pair.one.events()[before:]] == [("setting", ("topics",))]
    with pytest.raises(NotLeading):
        pair.leases[0].check()


def test_status_says_who_leads_and_the_kinds_of_the_other_stand_by(pair: Pair) -> None:
    tasks = [FlowTask(world.reconcile, Metrics("test"), world.clock) for world in (pair.one, pair.two)]
    leading, standby = (task.step(None, everything=True) for task in tasks)
    assert leading.kinds[Kind.TOPIC].task is Task.ACTIVE
    assert leading.leader is not None and leading.leader.here
    assert standby.leader is not None
    assert (standby.leader.client, standby.leader.here) == ("one", False)
    assert {status.task for status in standby.kinds.values()} <= {Task.STANDBY, Task.DISABLED}
    assert standby.state is FlowState.NO_HEARTBEAT
    assert str(standby.reason).startswith("one on here (since")
    assert standby.as_json()["leader"]["client"] == "one"
    assert not tasks[1].request_pass((), 0.0)


def test_flow_that_stood_by_goes_on_by_itself_once_the_other_ended(pair: Pair) -> None:
    metrics = Metrics("test")
    task = FlowTask(pair.two.reconcile, metrics, pair.two.clock)
    task.step(None)
    leads = {"source": "a", "target": "b"}
    assert metrics.registry.get_sample_value("lockstep_leader", leads) == 0
    pair.one.reconcile.close()
    put_topic(pair.one.source, "new")
    status = task.step(None)
    assert "a.new" in pair.one.target.topics
    assert (status.kinds[Kind.TOPIC].task, status.reason and "stands by" in status.reason) == (Task.ACTIVE, False)
    assert metrics.registry.get_sample_value("lockstep_leader", leads) == 1
