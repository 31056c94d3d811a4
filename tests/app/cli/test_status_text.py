"""`status` for people: states, what is not known, and each reason once."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from app.cli.output import DONE, FAILED, PENDING, STALE
from app.cli.status_command import UNCOMPARED, counted_state, exit_code
from app.cli.status_text import print_status
from app.single_pass import status_without_job
from sinks.engine.status import FlowState, FlowStatus, KindStatus, Task, as_far_as_known
from sinks.engine.verify_status import STALLED, Comparing, VerifyStatus
from sinks.failover.journal import LastDrill
from sinks.failover.lost_before_copying import Lost
from sinks.failover.preflight import FailoverStatus, NotChecked, Preflight
from sinks.ledger.failover_record import Begun, Command, FailoverRecord, State
from sinks.ledger.lease import Leader
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind, Op
from sinks.model.plan import Refusal
from streaming.hints import NewestHeartbeat
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import FLOW, world_in_step

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


def shown(status: FlowStatus, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "60")
    print_status(status.as_json())
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_an_error_is_said_once_and_no_kind_looks_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {kind: KindStatus(Task.ACTIVE, None, 0, NOON) for kind in Kind}
    kinds = as_far_as_known(known, FlowState.ERROR, NOON)
    lines = shown(FlowStatus(FLOW, FlowState.ERROR, reason="b is down", kinds=kinds), capsys, monkeypatch)
    assert sum("b is down" in line for line in lines) == 1
    assert "ERROR  heartbeat not known" in lines[0]
    assert not any("ACTIVE" in line for line in lines)
    assert f"  UNKNOWN since 2026-11-22T12:00:00Z: {', '.join(kind.value for kind in Kind)}" in lines
    assert sum(line.split()[1:3] == ["UNKNOWN", "unknown"] for line in lines) == len(Kind)


def test_a_flow_without_a_job_looks_neither_live_nor_kept_in_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_in_step()
    report = world.reconcile.report_only(world.reconcile.compare(everything=True))
    beat = NewestHeartbeat(round(time.time() * 1000))
    last = Leader("lockstep-run-7", "h", NOON)
    status = status_without_job(world.settings, report, beat, last, "no job answers at http://h:1")
    lines = shown(status, capsys, monkeypatch)
    assert lines[0].startswith("a->b  NO JOB  newest heartbeat 0.")
    assert (
        "no job answers at http://h:1; lockstep-run-7 on h (since 2026-11-22T12:00:00Z) led the flow last" in lines[1]
    )
    kinds = [line.split()[1:] for line in lines[4 : 4 + len(Kind)]]
    assert ["UNKNOWN", "0", "-"] in kinds
    assert not any(row[0] == "ACTIVE" for row in kinds)
    assert not any("led by" in line for line in lines)
    assert exit_code({status.state.value}, rejected=False) == STALE


def test_flow_that_failed_over_needs_no_job(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_in_step()
    begun = Begun("ann@ops", "2026-11-22T11:00:00Z")
    world.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(State.FAILED_OVER, begun=begun).to_text()})
    world.clock.now += 60.0
    report = world.reconcile.report_only(world.reconcile.compare(everything=True))
    status = status_without_job(world.settings, report, None, None, "no job answers at http://h:1")
    lines = shown(status, capsys, monkeypatch)
    assert lines[:2] == [
        "a->b  ENDED  no heartbeat seen",
        "  failover: FAILED_OVER, by ann@ops at 2026-11-22T11:00:00Z",
    ]
    assert exit_code({counted_state(status.as_json())}, rejected=False) == DONE


def test_a_failover_under_way_what_is_at_risk_and_the_last_drill_are_a_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = FailoverRecord(State.FENCED, Command.DRAIN, (), Begun("ann@ops", "2026-11-22T11:00:00Z"))
    made = Preflight(NOON, 0.2, records=3, oldest_ms=round(NOON.timestamp() * 1000) - 1500, exact=False)
    drill = LastDrill(topic="d", agrees=True, who="ann@ops", at="2026-11-21T12:00:00Z")
    lost = {
        TopicPartition("orders", 0): Lost(50, 60, 1_000),
        TopicPartition("orders", 1): Lost(0, 60, 1_000, unknown=True),
        TopicPartition("users", 0): Lost(0, 60, 1_000, unknown=True),
    }
    failover = FailoverStatus(record, drill, made, None, lost=lost)
    status = FlowStatus(FLOW, FlowState.LIVE, 1.0, failover=failover, compared=True)
    lines = shown(status, capsys, monkeypatch)
    assert lines[1:] == [
        "  failover: FENCED, `cutover` is half done, by ann@ops at 2026-11-22T11:00:00Z: "
        "`lockstep unfence` or run `lockstep cutover` again to its end",
        "  preflight at 2026-11-22T12:00:00Z: not ready, at most 3 records at risk then, the oldest 1.5 s old; "
        "later records are not counted",
        "  LOST BEFORE COPYING: at most 50 records of orders, found at 1970-01-01T00:00:01Z (not known of 1 partition)",
        "  whether users lost records before they were copied is not known of 1 partition",
        "  last drill at 2026-11-21T12:00:00Z: as predicted",
    ]
    old = replace(failover, not_checked=NotChecked("the job's preflight stands still", NOON))
    lines = shown(FlowStatus(FLOW, FlowState.LIVE, 1.0, failover=old), capsys, monkeypatch)
    assert lines[2].startswith("  preflight at 2026-11-22T12:00:00Z: not known, ")
    assert lines[3] == "  whether it could fail over now is not known: the job's preflight stands still"


def test_what_differs_of_a_paused_kind_is_called_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {Kind.ACL: KindStatus(Task.PAUSED, "paused: so it is", None, NOON), Kind.TOPIC: KindStatus(Task.DISABLED)}
    lines = shown(FlowStatus(FLOW, FlowState.LIVE, 1.0, kinds=kinds), capsys, monkeypatch)
    assert ["acl", "PAUSED", "unknown", "2026-11-22T12:00:00Z"] in [line.split() for line in lines]
    assert ["topic", "DISABLED", "-", "-"] in [line.split() for line in lines]
    assert "  acl: paused: so it is" in lines


def test_a_reason_that_kinds_share_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = (Refusal(Kind.TOPIC_CONFIG, Op.UPDATE, ("a.t", "retention.ms"), "too long"),)
    kinds = {
        Kind.ACL: KindStatus(Task.FAULTED, "denied", 0),
        Kind.SCRAM_USER: KindStatus(Task.FAULTED, "denied", 0),
        Kind.TOPIC_CONFIG: KindStatus(Task.ACTIVE, "too long", 1, NOON, refused),
    }
    lines = shown(FlowStatus(FLOW, FlowState.LIVE, 1.0, kinds=kinds), capsys, monkeypatch)
    assert "  acl, scram-user: denied" in lines
    assert "  backed off: topic-config a.t retention.ms" in lines
    assert sum("too long" in line for line in lines) == 1


def test_every_state_of_a_flow_fits_sixty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {kind: KindStatus(Task.NOT_SUPPORTED, None, 1000, NOON) for kind in Kind}
    lines = shown(FlowStatus(FLOW, FlowState.NO_HEARTBEAT, kinds=kinds), capsys, monkeypatch)
    assert len(lines) == 2 + len(Kind)
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({"LIVE"}, DONE),
        ({"LIVE", "NO_HEARTBEAT"}, DONE),
        ({"LIVE", "STALE"}, STALE),
        ({"LIVE", "NO_JOB"}, STALE),
        ({"LIVE", "ENDED"}, DONE),
        ({"STALE", "ERROR"}, FAILED),
        ({"NO_JOB", "ERROR"}, FAILED),
    ],
)
def test_the_worst_state_decides_the_exit_code(states: set[str], code: int) -> None:
    assert exit_code(states, rejected=False) == code


@pytest.mark.parametrize(("state", "code"), [("LIVE", PENDING), ("STALE", STALE), ("ERROR", FAILED)])
def test_a_rejected_file_is_something_to_look_at(state: str, code: int) -> None:
    assert exit_code({state}, rejected=True) == code


def test_what_is_known_of_records_is_said_in_a_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = VerifyStatus(
        Comparing.RUNNING,
        through=NOON,
        partitions={"DIFFERENT": 1, "STALLED": 1},
        differences={("orders", "MISSING"): 3, ("clicks", STALLED): 1},
        stalled=("clicks-0",),
        history=0.5,
    )
    lines = shown(FlowStatus(FLOW, FlowState.LIVE, 1.0, verify=verify), capsys, monkeypatch)
    assert lines[-3:] == [
        "  records: RUNNING; 1 DIFFERENT, 1 STALLED; compared through 2026-11-22T12:00:00Z; 50% of the history",
        "  records differ: 3 MISSING in orders",
        "  STALLED, the source moves and the target does not: clicks-0",
    ]


@pytest.mark.parametrize(
    ("state", "tasks", "expected"),
    [
        ("NO_HEARTBEAT", {"topic": "UNKNOWN", "acl": "UNKNOWN", "client-quota": "DISABLED"}, UNCOMPARED),
        ("NO_HEARTBEAT", {"topic": "ACTIVE", "acl": "UNKNOWN"}, "NO_HEARTBEAT"),
        ("LIVE", {"topic": "UNKNOWN"}, "LIVE"),
    ],
)
def test_a_flow_of_which_nothing_is_known_yet_does_not_count_as_well(
    state: str, tasks: dict[str, str], expected: str
) -> None:
    row = {"state": state, "kinds": {kind: {"task": task} for kind, task in tasks.items()}}
    assert counted_state(row) == expected
    assert (exit_code({counted_state(row)}, rejected=False) == STALE) is (expected == UNCOMPARED)
