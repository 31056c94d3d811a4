"""Flows in every state that the page must show, as a job would hold them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache

from app.http.api import Api, Pulse
from app.http.page_history import INTERVAL, SAMPLES, FlowHistory
from app.reloading import FileStatus, Reloading
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.report import KindTrouble, Report
from sinks.engine.status import FlowStatus, flow_state
from sinks.engine.verify_status import STALLED, Comparing, VerifyStatus
from sinks.every_kind.comparison import GroupSummary
from sinks.every_kind.listing import DesiredTopics, Listed
from sinks.failover.journal import LastDrill
from sinks.failover.preflight import FailoverStatus, Preflight
from sinks.failover.readiness_facts import FailoverLoss, ReadinessFacts, TopicLoss
from sinks.faults import REMEDY_OF_CODE, ClusterUnreachable, ItemFault
from sinks.flow_settings import FailoverRules
from sinks.kinds.offsets.direction import GroupOffset, count_verdicts, worst_bounds
from sinks.kinds.offsets.translation import Answer, Method, Unanswered
from sinks.kinds.offsets.verdicts import Judgement, Verdict
from sinks.ledger.failover_record import Begun, FailoverRecord, State
from sinks.model.changes import Kind, Op, Outcome
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import Plan, Refusal
from sinks.model.times import utc_now, utc_text
from streaming.flow import Flow
from streaming.hints import NewestHeartbeat
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import config_change, flow_settings, topic_change
from tests.sinks.scripted_pass import ScriptedPass

WELL, MM2_DOWN, TARGET_DOWN = Flow("madrid", "oslo"), Flow("oslo", "madrid"), Flow("madrid", "lima")
TROUBLED, BEGINNING = Flow("paris", "oslo"), Flow("rome", "lima")
TOPICS, GROUPS = 1_000, 10_000
HOSTILE = "<img src=x onerror=alert(1)>"
"""A name that would be more than text, were it taken for HTML."""


@dataclass
class ScriptedPulse:
    """The `Pulse` of a job that hangs, or has a query that does."""

    alive: bool = True
    streaming: bool = True
    checking: bool = True

    def is_alive(self) -> bool:
        return self.alive

    def streams(self) -> bool:
        return self.streaming

    def checks(self) -> bool:
        return self.checking


class Unchanged(Reloading):
    """For a job whose file never changes."""

    file = FileStatus()

    def __init__(self) -> None:
        pass


def job_api(
    tasks: Mapping[Flow, FlowTask] | None = None,
    histories: Mapping[Flow, FlowHistory] | None = None,
    *,
    reloading: Reloading | None = None,
    pulse: Pulse | None = None,
) -> Api:
    """The server's routes, of a job in good health unless `pulse` says otherwise."""
    tasks = tasks or {}
    return Api(
        tasks,
        Metrics("1"),
        reloading or Unchanged(),
        histories=histories or {flow: FlowHistory() for flow in tasks},
        spark_ui="http://s:4040",
        pulse=pulse or ScriptedPulse(),
    )


@dataclass
class Shown:
    """What `Api` is made of."""

    tasks: dict[Flow, FlowTask] = field(default_factory=dict)
    histories: dict[Flow, FlowHistory] = field(default_factory=dict)
    scripts: dict[Flow, ScriptedPass] = field(default_factory=dict)

    def add(self, flow: Flow, report: Report | None, error: Exception | None = None, beat: float | None = 1.4) -> None:
        """A flow after one pass that reported this or ended so; `beat`: its newest heartbeat is so many seconds old."""
        script, history = ScriptedPass(), FlowHistory()
        # Groups whose record is gone are no reason against a failover here, but a remark.
        script.settings = replace(flow_settings(flow=flow), failover=FailoverRules(max_groups_skipping=4))
        script.error = error
        task = FlowTask(script, Metrics("0"))  # type: ignore[arg-type]
        self.tasks[flow], self.histories[flow], self.scripts[flow] = task, history, script
        if report is not None:
            is_its_own = report.failover != Report(report.plan).failover
            script.report = report if is_its_own else replace(report, failover=_failover(flow))
        if report is not None or error is not None:
            now = round((time.time() - (beat or 0)) * 1000)
            task.step(NewestHeartbeat(now, 180) if beat is not None else None)
            task.note_preflight(_preflight(flow))
        if report is not None and error is None:
            history.passed(report)
        _hour(history, flow, beat)

    def fail(self, flow: Flow, error: Exception) -> None:
        """The next pass of a flow that was well ends so."""
        self.scripts[flow].error = error
        self.tasks[flow].step(None)

    def beat(self, *flows: Flow) -> None:
        """A new heartbeat of these flows."""
        for flow in flows:
            self.tasks[flow].step(NewestHeartbeat(round(time.time() * 1000) - 700, 180))


def _failover(flow: Flow) -> FailoverStatus:
    drill = LastDrill(topic=HOSTILE, agrees=True, at=utc_text(utc_now() - timedelta(days=3)), who="ann@ops1")
    begun = Begun("ann@ops1", utc_text(utc_now()), "move to oslo")
    return (
        FailoverStatus(FailoverRecord(State.FENCED, begun=begun)) if flow == TROUBLED else FailoverStatus(drill=drill)
    )


def ms_ago(seconds: float) -> int:
    """In ms since the epoch."""
    return round((utc_now().timestamp() - seconds) * 1000)


def _preflight(flow: Flow) -> Preflight:
    if flow == TARGET_DOWN:
        return Preflight(utc_now(), 5.0, trouble="the cluster lima at 10.0.0.7:9092 gives no answer")
    facts = ReadinessFacts(FailoverRules())
    if flow != MM2_DOWN:
        made = Preflight(utc_now(), 0.3, records=2, oldest_ms=ms_ago(0.4), read_twice=2, loss=FailoverLoss(2, True))
        return replace(made, facts=facts)
    lost = replace(facts, losses={HOSTILE: TopicLoss(8120, 93.6)})
    return Preflight(utc_now(), 0.3, records=8120, oldest_ms=ms_ago(93.6), loss=FailoverLoss(8120, True), facts=lost)


def _hour(history: FlowHistory, flow: Flow, beat: float | None) -> None:
    now = utc_now()
    for number in range(SAMPLES):
        ago = (SAMPLES - number) * INTERVAL
        age = None if beat is None else max(0.4 + number % 7 / 5, beat - ago)
        state = flow_state(None, age, 30)
        history.sample(FlowStatus(flow, state, age, 150 + number % 40), now - timedelta(seconds=ago))


@cache
def group_rows() -> tuple[GroupOffset, ...]:
    """One partition of each of ten thousand groups."""
    return tuple(_group(number) for number in range(GROUPS))


def _group(number: int) -> GroupOffset:
    where = TopicPartition(f"madrid.orders-{number % TOPICS:04}", 0)
    verdict = Verdict.TOO_OLD if number % 2_500 == 7 else Verdict.SYNCED
    lost = verdict is Verdict.TOO_OLD
    answer = Unanswered.TOO_OLD if lost else Answer(number * 10, number * 10 - 3, Method.MATCHED, number % 3)
    reason = (
        "the group is before the earliest offset-sync of the partition" if lost else "the group goes on at this offset"
    )
    return GroupOffset(f"billing-{number:05}", where, number * 10, answer, Judgement(verdict, reason))


def _listed(count: int) -> Listed:
    remote: Mapping[str, str] = {f"orders-{number:04}": f"madrid.orders-{number:04}" for number in range(count)}
    return Listed(dict.fromkeys(remote, 1), dict.fromkeys(remote.values(), 1), DesiredTopics(remote))


def _well() -> Report:
    rows = group_rows()
    verdicts = {verdict.value: count for verdict, count in count_verdicts(rows).items()}
    outcomes = (
        Outcome(topic_change("madrid.orders-0999", None, 6)),
        Outcome(config_change("madrid.orders-0001", "retention.ms", "604800000", "3600000")),
    )
    return Report(
        Plan(WELL),
        outcomes,
        listed=_listed(TOPICS),
        groups=GroupSummary(verdicts, worst_bounds(rows), rows),
        seconds={"observe": 0.14, "plan": 0.02},
        everything=True,
    )


def _troubled() -> Report:
    refused = (
        Refusal(
            Kind.TOPIC_CONFIG,
            Op.UPDATE,
            ("paris.orders", "retention.ms"),
            "POLICY_VIOLATION: at most 7 days",
            remedy=REMEDY_OF_CODE["POLICY_VIOLATION"],
        ),
        Refusal(Kind.TOPIC_CONFIG, Op.UPDATE, (f"paris.{HOSTILE}", "segment.bytes"), "INVALID_CONFIG: too small"),
    )
    failed = config_change("paris.orders", "retention.ms", "604800000", "31536000000")
    trouble = KindTrouble()
    trouble.faulted[Kind.SCRAM_USER] = "no right to read SCRAM users of paris; grant DESCRIBE on the CLUSTER"
    return Report(
        Plan(TROUBLED, refused=refused),
        (Outcome(failed, ItemFault("POLICY_VIOLATION", "at most 7 days")),),
        trouble=trouble,
        paused=frozenset({Kind.ACL}),
        effective=(DriftGroup(DifferingConfig(Kind.TOPIC_CONFIG, "retention.ms", "604800000", "86400000"), 120),),
        listed=_listed(3),
        seconds={"observe": 0.3},
    )


def every_state() -> Shown:
    """A flow in each of them."""
    shown = Shown()
    shown.add(WELL, _well())
    shown.add(MM2_DOWN, Report(Plan(MM2_DOWN), listed=_listed(40), seconds={"observe": 0.1}), beat=94.0)
    unreachable = ClusterUnreachable("the cluster lima at 10.0.0.7:9092 gives no answer")
    shown.add(TARGET_DOWN, Report(Plan(TARGET_DOWN)), unreachable)
    shown.add(TROUBLED, _troubled())
    shown.add(BEGINNING, None, beat=None)
    return shown


def switching() -> Shown:
    """A job whose one source is gone, and of whose other flow the target has taken over."""
    shown, gone = Shown(), "the cluster madrid at 10.0.0.5:9092 gives no answer"
    shown.add(WELL, _well())
    shown.fail(WELL, ClusterUnreachable(gone))
    loss = FailoverLoss(120, False, utc_now() - timedelta(seconds=12))
    shown.tasks[WELL].note_preflight(Preflight(utc_now(), 2.1, trouble=gone, loss=loss))
    begun = Begun("ann@ops1", utc_text(utc_now() - timedelta(hours=2)), "move to lima")
    taken = Report(Plan(BEGINNING), failover=FailoverStatus(FailoverRecord(State.PROMOTED, begun=begun)))
    shown.add(BEGINNING, taken, beat=7200.0)
    return shown


def one_in_step() -> Shown:
    """A job whose only flow is well."""
    shown = Shown()
    shown.add(WELL, _well())
    return shown


def records_differ() -> Shown:
    """A job whose only flow is well but for its records: some differ, and a partition is no longer copied."""
    shown = one_in_step()
    shown.tasks[WELL].verify = VerifyStatus(
        Comparing.RUNNING,
        "120 offsets are too many for lockstep.verify.rate",
        utc_now() - timedelta(seconds=95),
        {"VERIFIED": 995, "DIFFERENT": 3, "STALLED": 1, "UNVERIFIABLE": 1},
        {("orders-0007", "MISSING"): 1_204, (HOSTILE, "DUPLICATE"): 12, ("orders-0042", STALLED): 1},
        ("orders-0042-0",),
        8_120_000,
        dropped=204,
        history=0.625,
    )
    return shown
