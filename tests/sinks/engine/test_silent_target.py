"""A target that answers no more is noticed long before a request to it is given up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from sinks.engine.flow_status import KnownStatus
from sinks.engine.report import Report
from sinks.engine.status import Failing, FlowState, Task
from sinks.failover.preflight import FailoverStatus
from sinks.faults import ClusterUnreachable, WrongCluster
from sinks.ledger.lease import EVIDENCE, SILENT_AFTER, Leader
from sinks.model.changes import Kind
from sinks.model.plan import Plan
from sinks.model.times import utc_now
from streaming.errors import LockstepError
from tests.sinks.builders import FLOW, NOON, flow_settings
from tests.sinks.engine.leases import Processes

LEADER = Leader("lockstep-run-7", "h", NOON, age=0.0)


@pytest.fixture
def known() -> KnownStatus:
    """A flow whose last pass was a good one."""
    found = KnownStatus(flow_settings())
    found.succeeded(Report(Plan(FLOW)), utc_now())
    return found


def test_a_leader_whose_renewals_are_confirmed_hears_its_target() -> None:
    processes = Processes()
    lease = processes.leading("one")
    for _ in range(40):
        processes.pass_time(0.5, lease)
        assert lease.leader is not None and lease.leader.here
        assert lease.leader.silence_of("b") is None


def test_a_target_that_confirms_no_renewal_counts_as_silent_in_time() -> None:
    processes = Processes()
    lease = processes.leading("one")
    processes.pass_time(10.0, lease)
    processes.target.reachable = False
    silent_from, died_at = None, processes.now
    while silent_from is None and processes.now < died_at + EVIDENCE:
        with suppress(ClusterUnreachable):
            processes.pass_time(0.5, lease)
        if lease.leader is not None and lease.leader.silence_of("b"):
            silent_from = processes.now
    assert silent_from is not None and silent_from - died_at <= SILENT_AFTER


def test_a_flow_with_a_silent_target_is_in_error_since_the_last_answer(known: KnownStatus) -> None:
    status = known.status(replace(LEADER, age=9.0))
    assert (status.state, status.reason) == (
        FlowState.ERROR,
        "b has not answered for 9 s: is it up, and can it be reached?",
    )
    since = status.kinds[Kind.TOPIC].since
    assert status.kinds[Kind.TOPIC].task is Task.UNKNOWN
    assert since is not None and timedelta(seconds=9) <= utc_now() - since < timedelta(seconds=30)
    assert status.as_json()["error"]["code"] == "CLUSTER_UNREACHABLE"


def test_a_flow_whose_target_answers_again_goes_on(known: KnownStatus) -> None:
    known.status(replace(LEADER, age=9.0))
    status = known.status(replace(LEADER, age=1.0))
    assert (status.state, status.as_json()["error"]) == (FlowState.NO_HEARTBEAT, None)


@pytest.mark.parametrize("leader", [None, replace(LEADER, age=None)], ids=["nobody", "another process"])
def test_who_does_not_lead_knows_nothing_of_the_target(known: KnownStatus, leader: Leader | None) -> None:
    assert known.status(leader).state is FlowState.NO_HEARTBEAT


@pytest.mark.parametrize(
    ("error", "code", "has_remedy"),
    [
        (ClusterUnreachable("b: no answer"), "CLUSTER_UNREACHABLE", True),
        (WrongCluster("another"), "WRONG_CLUSTER", True),
        (LockstepError("odd"), "FAILED", False),
        (ZeroDivisionError("a bug"), "DEFECT", True),
    ],
)
def test_a_flow_in_error_says_its_code_and_remedy(
    known: KnownStatus, error: Exception, code: str, has_remedy: bool
) -> None:
    known.failed(error, str(error), utc_now(), FailoverStatus())
    said = known.status().as_json()["error"]
    assert (said["code"], said["message"], said["remedy"] is not None) == (code, str(error), has_remedy)
    assert said["remedy"] == Failing.of(error).remedy
