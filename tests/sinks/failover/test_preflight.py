"""What a running job's preflight comes to, and what it takes from the comparisons of the kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.failover_facts import in_step_of_pass
from sinks.engine.flow_status import kind_status
from sinks.engine.report import Report
from sinks.engine.status import FlowState, FlowStatus, KindStatus, Task, in_step_of_status
from sinks.every_kind.comparison import GroupSummary
from sinks.failover.lost_before_copying import Lost
from sinks.failover.preflight import NEVER_READ, FailoverStatus, Preflight, preflight_of, without_answer
from sinks.failover.readiness import readiness
from sinks.failover.readiness_facts import ReadinessFacts, TopicLoss
from sinks.model.changes import Kind, Op
from sinks.model.plan import Plan, Refusal
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import FLOW, NOON, World, config_change, put_topic
from tests.sinks.failover.test_readiness import WELL

NOON_MS = round(NOON.timestamp() * 1000)
UNSEEN = readiness(ReadinessFacts(WELL.rules))
GROUPS = GroupSummary({"SYNCED": 4, "TOO_OLD": 1}, {"late": 7, "early": 2})


def made(**facts: Any) -> Preflight:
    """Over at noon, of records that were counted 100 ms before."""
    return preflight_of(replace(WELL, losses_at_ms=NOON_MS - 100, **facts), NOON, 0.25)


def ready(found: Preflight) -> bool | None:
    assert found.facts is not None
    return readiness(found.facts).ready


def age(found: Preflight, seconds: float = 0.0) -> float | None:
    """Of the oldest record at risk, so many seconds after noon."""
    return found.seconds_at_risk(NOON_MS + seconds * 1000)


def status(**kinds: KindStatus) -> FlowStatus:
    return FlowStatus(FLOW, FlowState.LIVE, kinds={Kind[name]: one for name, one in kinds.items()}, groups=GROUPS)


def test_records_at_risk_are_those_of_all_topics_and_as_old_as_the_oldest() -> None:
    found = made(losses={"x": TopicLoss(2, 1.5), "y": TopicLoss(3, 61.0, exact=False)})
    assert (found.records, age(found), found.exact, ready(found)) == (5, 61.1, False, False)


def test_oldest_record_at_risk_grows_older_until_the_next_preflight() -> None:
    assert age(made(losses={"x": TopicLoss(2, 1.5)}), seconds=30) == 31.6
    assert age(made(), seconds=30) == 0.0


def test_without_the_source_a_record_is_at_risk_since_the_last_preflight_that_counted() -> None:
    silent = Preflight(NOON, 0.1, trouble="a gives no answer")
    lagging, well = made(losses={"x": TopicLoss(2, 1.5)}), made()
    assert age(without_answer(silent, None), seconds=30) is None
    assert age(without_answer(silent, lagging), seconds=30) == 31.6
    # What is missing now was written after that preflight had begun.
    assert age(without_answer(silent, well), seconds=30) == 30.25
    in_part = without_answer(made(untold={TopicPartition("y", 0): "gone"}), lagging)
    assert age(in_part, seconds=30) == 31.6
    assert age(without_answer(silent, in_part), seconds=30) == 31.6


def test_records_whose_age_is_not_known_are_not_of_no_age() -> None:
    assert age(made(losses={"x": TopicLoss(2, None)})) is None


def test_with_nothing_missing_nothing_is_at_risk() -> None:
    found = made()
    assert (found.records, age(found), found.exact, ready(found)) == (0, 0.0, True, True)


def test_where_nobody_can_tell_of_a_partition_no_figure_is_given() -> None:
    found = made(losses={"x": TopicLoss(2, 1.5)}, untold={TopicPartition("y", 0): "gone"})
    assert (found.records, age(found), ready(found)) == (None, None, False)


def test_where_topics_may_not_be_read_nothing_is_said_to_be_at_risk_or_not() -> None:
    found = made(missing_reads=["READ on * of a"], by_job=True)
    assert (found.records, age(found), ready(found)) == (None, None, True)


def test_with_the_rights_that_lockstep_rights_prints_the_preflight_of_a_job_is_ready() -> None:
    assert ready(made(missing_rights=["ALTER on kafka-cluster of a"], by_job=True)) is True


def test_json_has_the_checks_that_are_not_well() -> None:
    lost = made(losses={"x": TopicLoss(2, 61.0)})
    assert lost.facts is not None
    document = FailoverStatus(preflight=lost).as_json(readiness(lost.facts))
    assert document["state"] == "MIRRORING"
    assert [row["name"] for row in document["preflight"]["not_well"]] == ["records not copied"]
    assert document["preflight"]["seconds_at_risk"] == 61.1


def test_without_the_ledger_records_lost_before_copying_are_unknown_and_never_zero() -> None:
    lost = {TopicPartition("x", 0): Lost(5, 60, 1_000)}
    gone = FailoverStatus(unknown="b gives no answer", lost=lost)
    for unread in (NEVER_READ, gone):
        assert unread.as_json(UNSEEN)["lost_before_copying"]["records"] is None
    assert [one["topic"] for one in gone.as_json(UNSEEN)["lost_before_copying"]["topics"]] == ["x"]
    assert FailoverStatus(lost=lost).as_json(UNSEEN)["lost_before_copying"]["records"] == 5


@pytest.mark.parametrize("task", [Task.PAUSED, Task.FAULTED, Task.UNKNOWN, Task.STANDBY])
def test_a_kind_that_the_job_does_not_keep_makes_a_flow_not_ready(task: Task) -> None:
    found = in_step_of_status(status(ACL=KindStatus(task, "because")))
    assert found.faulted == {Kind.ACL: "because"}


def test_a_kind_that_was_not_compared_yet_is_not_taken_as_in_step() -> None:
    found = in_step_of_status(status(ACL=KindStatus(Task.ACTIVE)))
    assert found.faulted == {Kind.ACL: "not compared yet"}


def test_kinds_that_nobody_asked_for_are_left_out() -> None:
    found = in_step_of_status(status(ACL=KindStatus(Task.DISABLED), TOPIC=KindStatus(Task.NOT_SUPPORTED)))
    assert found.drift == {}


def test_what_a_job_knows_of_drift_and_groups_is_taken_over() -> None:
    refusal = Refusal(Kind.ACL, Op.CREATE, ("k",), "no")
    found = in_step_of_status(status(ACL=KindStatus(Task.ACTIVE, drift=3, refused=(refusal,))))
    assert (found.drift, found.refused, found.faulted) == ({Kind.ACL: 3}, {Kind.ACL: 1}, {})
    assert (found.verdicts["TOO_OLD"], found.read_twice) == (1, 7)


def test_offsets_that_move_on_are_no_drift() -> None:
    found = in_step_of_status(status(GROUP_OFFSET=KindStatus(Task.ACTIVE, drift=3)))
    assert found.drift == {Kind.GROUP_OFFSET: 0}


def test_a_kind_that_is_paused_makes_a_flow_not_ready_for_a_command_as_well() -> None:
    plan = Plan(FLOW, (config_change("a.t", "retention.ms", None, "1"),))
    report = Report(plan, paused=frozenset({Kind.ACL, Kind.SCRAM_USER}))
    found = in_step_of_pass(report, [Kind.ACL, Kind.TOPIC_CONFIG], GROUPS)
    assert (found.drift, list(found.faulted)) == ({Kind.ACL: 0, Kind.TOPIC_CONFIG: 1}, [Kind.ACL])


def test_a_kind_that_may_not_be_read_makes_a_flow_not_ready_for_the_job_and_for_a_command() -> None:
    world = World()
    put_topic(world.source, "x")
    world.settle()
    world.source_acls.denied = {"describe"}
    report = world.run_pass(everything=True)
    of_job = kind_status(Kind.ACL, KindStatus(Task.ACTIVE, drift=0), report, NOON)
    assert (of_job.task, of_job.drift) == (Task.UNKNOWN, None)
    found = in_step_of_status(status(ACL=of_job)), in_step_of_pass(report, [Kind.ACL], GROUPS)
    assert all("DESCRIBE on the CLUSTER" in one.faulted[Kind.ACL] for one in found)


def test_the_facts_of_a_flow_that_was_not_looked_at_are_not_well() -> None:
    assert UNSEEN.ready is False
