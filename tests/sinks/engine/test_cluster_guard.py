"""Two clusters, and always the same two."""

from __future__ import annotations

from pathlib import Path

import pytest

from sinks.engine.cluster_guard import ClusterGuard
from sinks.faults import ClusterUnreachable, LedgerUntrusted, RightsMissing, WrongCluster
from sinks.kafka.ports.cluster import Record
from sinks.ledger.ledger import LEDGER_TOPIC_CONFIGS, Entry, Ledger
from sinks.ledger.pins import FILE, PinFile, Pins
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW

TOPIC = "lockstep-ledger.a.internal"


@pytest.fixture
def source() -> MemoryCluster:
    return MemoryCluster("a", "id-of-a")


@pytest.fixture
def target() -> MemoryCluster:
    return MemoryCluster("b", "id-of-b")


def opened(target: MemoryCluster) -> Ledger:
    """The ledger, read now."""
    return Ledger(TOPIC, target, target, 1)


def test_first_contact_pins_both_ids(source: MemoryCluster, target: MemoryCluster) -> None:
    ClusterGuard(FLOW, source, target).check(opened(target))
    assert opened(target).get(Entry.CLUSTER_ID, "a") == "id-of-a"
    assert opened(target).get(Entry.CLUSTER_ID, "b") == "id-of-b"


def test_same_clusters_again_write_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    guard = ClusterGuard(FLOW, source, target)
    guard.check(opened(target))
    records, writes = target.read_log(TOPIC), target.writes
    guard.check(opened(target))
    assert (target.read_log(TOPIC), target.writes) == (records, writes)


@pytest.mark.parametrize("alias", ["a", "b"])
def test_another_id_stops_and_nothing_is_written(source: MemoryCluster, target: MemoryCluster, alias: str) -> None:
    guard = ClusterGuard(FLOW, source, target)
    guard.check(opened(target))
    records, writes = target.read_log(TOPIC), target.writes
    (source if alias == "a" else target).id = "somewhere-else"
    with pytest.raises(WrongCluster, match=rf"{alias}\.bootstrap\.servers leads to the cluster somewhere-else"):
        guard.check(opened(target))
    assert (target.read_log(TOPIC), target.writes) == (records, writes)


def test_one_cluster_on_both_sides_is_no_flow(source: MemoryCluster) -> None:
    with pytest.raises(WrongCluster, match="lead to one cluster, id-of-a: a flow needs two"):
        ClusterGuard(FLOW, source, source).check(opened(source))
    assert source.writes == 0


def test_comparing_writes_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    entries = ClusterGuard(FLOW, source, target).check_only(Ledger(TOPIC, target, None, 1))
    assert entries == {(Entry.CLUSTER_ID, ("a",)): "id-of-a", (Entry.CLUSTER_ID, ("b",)): "id-of-b"}
    assert target.writes == 0


def test_silent_cluster_pins_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    source.reachable = False
    with pytest.raises(ClusterUnreachable):
        ClusterGuard(FLOW, source, target).check(opened(target))
    assert target.writes == 0


REVERSE = "lockstep-ledger.b.internal"


def guard(source: MemoryCluster, target: MemoryCluster, pins: PinFile | None = None, **said: str) -> ClusterGuard:
    """As the job makes it, in a new process."""
    return ClusterGuard(FLOW, source, target, said=said, pins=pins, ledgers=(TOPIC, REVERSE))


@pytest.fixture
def pins(tmp_path: Path) -> PinFile:
    return PinFile(tmp_path / "checkpoints" / FILE, create=True)


def test_target_s_address_that_leads_to_a_new_empty_cluster_stops_the_running_job_and_nothing_is_made_there(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    running = guard(source, target)
    running.check(opened(target))
    target.id, target.topics, target.writes = "new-and-empty", {}, 0
    with pytest.raises(WrongCluster, match=r"b\.bootstrap\.servers leads to the cluster new-and-empty, .* id-of-b"):
        running.check_ids()
    assert (target.topics, target.writes) == ({}, 0)


@pytest.mark.parametrize("command", [False, True])
def test_so_it_does_after_a_restart_and_for_commands_by_the_local_file(
    source: MemoryCluster, target: MemoryCluster, pins: PinFile, command: bool
) -> None:
    guard(source, target, pins).check(opened(target))
    kept = PinFile(Path(pins.where), create=not command)
    new = MemoryCluster("b", "new-and-empty")
    again = guard(source, new, kept)
    for check in (
        again.check_ids,
        lambda: again.check(opened(new)),
        lambda: again.open(lambda: opened(new)),
        lambda: again.open_for_target(lambda: opened(new)),
    ):
        with pytest.raises(WrongCluster, match=r"b\.bootstrap\.servers leads to the cluster new-and-empty") as stopped:
            check()
        for part in ("id-of-b", pins.where, TOPIC, "`lockstep ledger reset`", "nothing is written"):
            assert part in str(stopped.value)
    assert new.topics == {}


def test_the_first_check_needs_no_ledger_and_reads_nothing_else_of_a_wrong_cluster(
    source: MemoryCluster, target: MemoryCluster, pins: PinFile
) -> None:
    guard(source, target, pins).check(opened(target))
    new = MemoryCluster("b", "new", denied={"describe", "alter"})
    with pytest.raises(WrongCluster, match="leads to the cluster new"):
        guard(source, new, pins).check_ids()


@pytest.mark.parametrize("alias", ["a", "b"])
def test_id_that_the_file_says_must_be_the_one_that_the_address_leads_to(
    source: MemoryCluster, target: MemoryCluster, alias: str
) -> None:
    with pytest.raises(
        WrongCluster, match=rf"leads to the cluster id-of-{alias}, but {alias}\.lockstep\.cluster\.id says"
    ):
        guard(source, target, **{alias: "another"}).check_ids()
    assert guard(source, target, a="id-of-a", b="id-of-b").check_ids() == {"a": "id-of-a", "b": "id-of-b"}


def test_exchanged_source_and_target_are_seen_without_any_file_by_the_ledger_on_what_is_called_source(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    guard(source, target).check(opened(target))
    before = target.writes
    exchanged = guard(target, source)
    for check in (exchanged.check_ids, lambda: exchanged.open_for_target(lambda: opened(source))):
        with pytest.raises(WrongCluster) as stopped:
            check()
        assert "a.bootstrap.servers and b.bootstrap.servers are exchanged. Nothing is written" in str(stopped.value)
        assert f"Its topic {TOPIC} says that a is the cluster id-of-a, not id-of-b" in str(stopped.value)
    assert (source.topics, target.writes) == ({}, before)


def test_ledger_of_the_flow_the_other_way_round_is_no_reason_to_stop(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    guard(source, target).check(opened(target))
    back = ClusterGuard(Flow("b", "a"), target, source, ledgers=(REVERSE, TOPIC))
    back.check(Ledger(REVERSE, source, source, 1))
    guard(source, target).check(opened(target))


def test_exchanged_addresses_are_seen_by_the_reverse_flow_s_ledger_as_well(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    ClusterGuard(Flow("b", "a"), target, source, ledgers=(REVERSE, TOPIC)).check(Ledger(REVERSE, source, source, 1))
    with pytest.raises(WrongCluster, match=f"Its topic {REVERSE}"):
        guard(target, source).check_ids()


def test_ledger_that_may_not_be_read_on_the_source_stops_nothing(
    source: MemoryCluster, target: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreadable(MemoryCluster):
        def read_log(self, topic: str, last: int | None = None) -> list[Record]:
            raise RightsMissing("no READ")

    hidden = Unreadable("a", "id-of-a")
    hidden.create_log(REVERSE, 1, {})
    assert guard(hidden, target).check_ids() == {"a": "id-of-a", "b": "id-of-b"}
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("trouble", ["gone", "recreated"])
def test_ledger_that_the_local_file_says_was_there_never_counts_as_empty(
    source: MemoryCluster, target: MemoryCluster, pins: PinFile, trouble: str
) -> None:
    guard(source, target, pins).check(opened(target))
    target.delete_topics([TOPIC])
    if trouble == "recreated":
        target.create_log(TOPIC, 1, LEDGER_TOPIC_CONFIGS)
    before = target.writes
    again = guard(source, target, pins)
    checks = (lambda: again.check(opened(target)), lambda: again.open_for_target(lambda: opened(target)))
    for check in checks:
        with pytest.raises(LedgerUntrusted, match=rf"{trouble}.* `lockstep ledger reset`"):
            check()
    assert (target.writes, target.read_log(TOPIC)) == (before, [])


def test_ledger_under_another_name_is_not_a_new_one(
    source: MemoryCluster, target: MemoryCluster, pins: PinFile
) -> None:
    guard(source, target, pins).check(opened(target))
    with pytest.raises(LedgerUntrusted, match=f"the ledger is renamed now, and was {TOPIC}"):
        guard(source, target, pins).check(Ledger("renamed", target, target, 1))


def test_flow_that_was_forgotten_begins_anew(source: MemoryCluster, target: MemoryCluster, pins: PinFile) -> None:
    guard(source, target, pins).check(opened(target))
    pins.keep(FLOW, None)
    new = MemoryCluster("b", "new")
    guard(source, new, pins).check(opened(new))
    assert pins.of(FLOW) == Pins({"a": "id-of-a", "b": "new"}, TOPIC)


def test_ledger_alone_is_enough_for_a_machine_without_the_file(source: MemoryCluster, target: MemoryCluster) -> None:
    guard(source, target).check(opened(target))
    source.id = "elsewhere"
    with pytest.raises(WrongCluster, match="leads to the cluster elsewhere"):
        guard(source, target).check(opened(target))


def test_target_that_is_known_can_be_written_while_the_source_is_down(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    guard(source, target).check(opened(target))
    source.reachable = False
    guard(source, target).open_for_target(lambda: opened(target))


def test_target_that_nobody_knows_is_not_written_while_the_source_is_down(
    source: MemoryCluster, target: MemoryCluster
) -> None:
    source.reachable = False
    with pytest.raises(ClusterUnreachable):
        guard(source, target).open_for_target(lambda: opened(target))
    assert target.topics == {}
