"""What `status` says of a flow."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from sinks.engine.status import FlowState, FlowStatus, KindStatus, Task, as_far_as_known, flow_state
from sinks.ledger.lease import Leader
from sinks.model.changes import Kind, Op
from sinks.model.effective_drift import MOST_SHOWN, DifferingConfig, grouped
from sinks.model.plan import Refusal
from tests.sinks.builders import FLOW


@pytest.mark.parametrize(
    ("error", "age", "state"),
    [
        ("no answer", None, FlowState.ERROR),
        ("no answer", 0.0, FlowState.ERROR),
        (None, None, FlowState.NO_HEARTBEAT),
        (None, 0.0, FlowState.LIVE),
        (None, 30.0, FlowState.LIVE),
        (None, 30.1, FlowState.STALE),
    ],
)
def test_state_is_error_first_then_the_age_of_the_heartbeat(
    error: str | None, age: float | None, state: FlowState
) -> None:
    assert flow_state(error, age, timeout=30.0) is state


def test_json_is_the_document_that_interface_promises() -> None:
    refusal = Refusal(Kind.TOPIC, Op.CREATE, ("a.long",), "too long")
    when = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)
    kinds = {Kind.TOPIC: KindStatus(Task.ACTIVE, "too long", 1, when, (refusal,))}
    leader = Leader("lockstep-run-7", "h", when, age=0.0)
    assert FlowStatus(FLOW, FlowState.LIVE, 1.26, 90, None, kinds, leader=leader).as_json() == {
        "source": "a",
        "target": "b",
        "state": "LIVE",
        "heartbeat_age_seconds": 1.3,
        "heartbeat_copied": True,
        "replication_latency_ms": 90,
        "reason": None,
        "error": None,
        "leader": {"client": "lockstep-run-7", "host": "h", "since": "2024-02-29T12:30:00Z", "here": True},
        "failover": {
            "state": "MIRRORING",
            "reason": None,
            "doing": None,
            "who": None,
            "why": None,
            "at": None,
            "remedy": None,
            "preflight": None,
            "not_checked": {"reason": "no preflight was made", "since": None},
            "last_drill": None,
            "lost_before_copying": {"records": 0, "topics": []},
        },
        "kinds": {
            "topic": {
                "task": "ACTIVE",
                "reason": "too long",
                "drift": 1,
                "last_success": "2024-02-29T12:30:00Z",
                "refused": [{"kind": "topic", "op": "create", "key": {"topic": "a.long"}, "reason": "too long"}],
                "since": None,
            }
        },
        "effective": {"drift": None, "configs": []},
        "verify": None,
    }


@pytest.mark.parametrize("state", FlowState)
@pytest.mark.parametrize("task", Task)
def test_only_an_active_kind_becomes_unknown_and_only_where_nothing_keeps_the_flow_in_step(
    state: FlowState, task: Task
) -> None:
    noon = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
    found = as_far_as_known({Kind.ACL: KindStatus(task, drift=0, last_success=noon)}, state, noon)[Kind.ACL]
    hidden = task in (Task.ACTIVE, Task.UNKNOWN) and state in (FlowState.ERROR, FlowState.STALE, FlowState.NO_JOB)
    assert found.task is (Task.UNKNOWN if hidden else task)
    assert found.since == (noon if hidden else None)
    assert found.drift == (None if hidden and state is FlowState.ERROR else 0)
    assert found.last_success == (None if hidden and state is FlowState.NO_JOB else noon)


def test_what_is_not_known_is_null() -> None:
    document = FlowStatus(FLOW, FlowState.NO_HEARTBEAT, kinds={Kind.TOPIC: KindStatus(Task.DISABLED)}).as_json()
    assert document["kinds"]["topic"]["drift"] is None
    assert document["heartbeat_age_seconds"] is None
    assert document["kinds"]["topic"]["last_success"] is None


def test_configs_in_force_with_two_values_are_all_counted_and_the_most_frequent_shown() -> None:
    cases = {
        DifferingConfig(Kind.TOPIC_CONFIG, "retention.ms", "1", str(number)): number
        for number in range(2, MOST_SHOWN + 3)
    }
    cases[DifferingConfig(Kind.BROKER_CONFIG, "num.io.threads", "8", "9")] = 1
    effective = FlowStatus(FLOW, FlowState.LIVE, effective=grouped(cases)).as_json()["effective"]
    assert effective["drift"] == sum(range(2, MOST_SHOWN + 3)) + 1
    assert len(effective["configs"]) == MOST_SHOWN
    most = MOST_SHOWN + 2
    assert effective["configs"][0] == {
        "kind": "topic-config",
        "name": "retention.ms",
        "topics": most,
        "source": "1",
        "target": str(most),
    }
