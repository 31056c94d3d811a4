"""Could this flow's target take over now, as far as the job sees? Pure.

It tells of what Lockstep keeps, and of what the last preflight saw of records and brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from app.failover_facts import in_step_of_status
from app.http.remedies import advice
from sinks.engine.status import FlowState, FlowStatus, Task, silence
from sinks.engine.verify_status import STALLED, Comparing
from sinks.failover.checks import COUNTED, CheckResult, group_check, kind_check
from sinks.failover.preflight import NO_PREFLIGHT, FailoverLoss, FailoverStatus, NotChecked
from sinks.flow_settings import FailoverRules
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_states import State
from sinks.model.times import utc_now, utc_text
from sinks.protocol.controller import GroupSummary
from sinks.verify.differences import Difference
from streaming.number_of import noun_of

GOES_ON = "docs/failover.md says what leads on from there"


class ReadinessAnswer(str, Enum):
    """UNKNOWN: nothing was compared yet, or another process leads the flow, and compares it. DONE: the target has taken
    over."""

    DONE = "done"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReadinessFinding:
    """`about`: the flow, or a kind. `blocks`: whether it is a reason against a cutover now; `blocks_failover`: against
    a failover without the source as well."""

    about: str
    reason: str
    blocks: bool = True
    remedy: str = ""
    blocks_failover: bool = False

    def as_json(self) -> dict[str, Any]:
        """One row, with what to do."""
        remedy = self.remedy or advice(self.reason)
        blocks = {"blocks": self.blocks, "blocks_failover": self.blocks_failover}
        return {"about": self.about, "reason": self.reason, "remedy": remedy, **blocks}


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one question, and a sentence for it. `since`: from when on no preflight says more than UNKNOWN."""

    answer: ReadinessAnswer
    headline: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        since = utc_text(self.since) if self.since else None
        return {"answer": self.answer.value, "headline": self.headline, "since": since}


@dataclass(frozen=True, slots=True)
class Readiness:
    """Two questions. `cutover`: could the flow be cut over now, which loses nothing? `failover`: could the target take
    over without the source, and what would that lose? And what was found."""

    cutover: Answered
    failover: Answered
    findings: tuple[ReadinessFinding, ...] = ()

    @property
    def answer(self) -> ReadinessAnswer:
        """Of the cutover."""
        return self.cutover.answer

    @property
    def headline(self) -> str:
        """Of the cutover."""
        return self.cutover.headline

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        found = [finding.as_json() for finding in self.findings]
        return {**self.cutover.as_json(), "failover": self.failover.as_json(), "findings": found}


def readiness(
    status: FlowStatus,
    verdicts: Mapping[str, int],
    passes: int,
    rules: FailoverRules | None = None,
    now: datetime | None = None,
) -> Readiness:
    """`verdicts`: partitions of groups by verdict. `passes`: how many came to their end since the job started. `rules`:
    the flow's, None: the defaults. `now`: None: the clock's."""
    if taken := _taken_over(status):
        state = ReadinessFinding("failover", _state_of(status), blocks=False, remedy=GOES_ON)
        return Readiness(taken, taken, (state,))
    found = tuple(_findings(status, verdicts, rules or FailoverRules()))
    failover = _failover(status, found, passes, now or utc_now())
    return Readiness(_cutover(status, found, passes), failover, found)


def _state_of(status: FlowStatus) -> str:
    return f"the flow is {status.failover.record.describe()}"


def _taken_over(status: FlowStatus) -> Answered | None:
    """Where the target has taken over, or is half done with it."""
    record, target = status.failover.record, status.flow.target
    if status.failover.unknown is not None or not record.has_ended:
        return None
    at = f" since {record.begun.at}" if record.begun.at else ""
    if record.doing and not record.has_taken_over:
        doing = f"{target} takes over: `{record.doing.typed}` is half done. Run it again to its end"
        return Answered(ReadinessAnswer.NO, doing)
    how = TAKEN_OVER.get(record.state)
    said = (
        f"{target} has taken over{at}, by {how}"
        if how
        else f"{target} has taken over. The way back: {record.state}{at}"
    )
    return Answered(ReadinessAnswer.DONE, said)


TAKEN_OVER: Mapping[State, str] = {State.PROMOTED: "`lockstep cutover`", State.FAILED_OVER: "`lockstep failover`"}
"""How the target took over."""


def _cutover(status: FlowStatus, found: Sequence[ReadinessFinding], passes: int) -> Answered:
    if another := _of_another(status):
        return another
    if status.state is not FlowState.ERROR and not passes:
        return Answered(ReadinessAnswer.UNKNOWN, NOT_COMPARED)
    blocking = [finding for finding in found if finding.blocks]
    if blocking:
        return Answered(ReadinessAnswer.NO, _reasons(status, blocking))
    if unchecked := status.failover.not_checked:
        return _not_known(unchecked)
    remarks = f", with {_count(len(found), 'remark')}" if found else ""
    return Answered(
        ReadinessAnswer.YES,
        f"All that Lockstep keeps is in step, and MirrorMaker 2 is heard{remarks}: it loses nothing",
    )


def _not_known(unchecked: NotChecked) -> Answered:
    """Records, brokers and rights were not checked, or too long ago."""
    since = f", since {utc_text(unchecked.since)}" if unchecked.since else ""
    asks = "`lockstep preflight` asks both clusters now"
    return Answered(ReadinessAnswer.UNKNOWN, f"Not known{since}: {unchecked.reason}. {asks}", unchecked.since)


NOT_COMPARED = "The first comparison is not over yet"


def _of_another(status: FlowStatus) -> Answered | None:
    """Where another process leads the flow."""
    if status.state is FlowState.ERROR or all(kind.task is not Task.STANDBY for kind in status.kinds.values()):
        return None
    return Answered(ReadinessAnswer.UNKNOWN, status.reason or "Another process leads the flow")


def _reasons(status: FlowStatus, blocking: Sequence[ReadinessFinding]) -> str:
    """The first, and how many more."""
    first, more = blocking[0], len(blocking) - 1
    about = "" if first.about == status.flow.name else f"{first.about}: "
    return f"{about}{first.reason}" + (f"; and {_count(more, 'reason')} more" if more else "")


def _failover(status: FlowStatus, found: Sequence[ReadinessFinding], passes: int, now: datetime) -> Answered:
    """Without the source: it may be gone, and MM2 with it."""
    made, flow = status.failover.preflight, status.flow
    if another := _of_another(status):
        return another
    stopped = status.state in (FlowState.ERROR, FlowState.NO_JOB)
    if made is None or (stopped and made.trouble is None):
        asks = f"`lockstep failover --dry-run` asks {flow.target}"
        why = status.reason if stopped else (status.failover.not_checked or NO_PREFLIGHT).reason
        since = status.failover.not_checked.since if status.failover.not_checked else None
        return Answered(ReadinessAnswer.UNKNOWN, f"{why}. What it would lose is not known here: {asks}", since)
    if status.failover.not_checked:
        return _not_known(status.failover.not_checked)
    if made.loss is None:
        return Answered(ReadinessAnswer.NO, made.trouble or "What it would lose is not known")
    if blocking := [finding for finding in found if finding.blocks_failover]:
        return Answered(ReadinessAnswer.NO, _reasons(status, blocking))
    if made.loss.records is None:
        of = f" of {_count(made.loss.unknown, 'partition')}" if made.loss.unknown else ""
        return Answered(
            ReadinessAnswer.UNKNOWN, f"What it would lose is not known{of}: `lockstep failover --dry-run` names them"
        )
    loses = _loses(made.loss, made.at, flow.source, now)
    if not passes:
        return Answered(ReadinessAnswer.UNKNOWN, f"{loses}. {NOT_COMPARED}: what else differs is not known")
    return Answered(ReadinessAnswer.YES, loses)


def _loses(loss: FailoverLoss, at: datetime, source: str, now: datetime) -> str:
    """A figure is as old as what it was counted from: what came to the source since is not in it."""
    seen = loss.source_seen or at
    most = "" if loss.exact else "at most "
    age = max(0, round((now - seen).total_seconds()))
    return (
        f"It would lose {most}{_count(loss.records or 0, 'record')} of those that {source} had {age} s ago, "
        "and what came since without being copied"
    )


def _remedy_of(status: FlowStatus) -> str:
    """That of the error which stopped the flow; empty where there is none."""
    stopped = status.failure if status.state is FlowState.ERROR else None
    return (stopped.remedy if stopped else None) or ""


def _findings(status: FlowStatus, verdicts: Mapping[str, int], rules: FailoverRules) -> Iterator[ReadinessFinding]:
    flow = status.flow.name
    trouble = STATES[status.state](status)
    if trouble is not None:
        yield ReadinessFinding(flow, trouble, remedy=_remedy_of(status))
    compared = [one.last_success for one in status.kinds.values() if one.last_success is not None]
    if status.state is FlowState.ERROR and compared:
        last = f"what Lockstep keeps was last in step at {utc_text(min(compared))}"
        yield ReadinessFinding(flow, last, blocks=False, remedy="it is compared again once both clusters answer")
    if status.reason and status.reason != trouble:
        yield ReadinessFinding(flow, status.reason, blocks=False)
    yield from _of_kinds(status, rules)
    groups = group_check({Verdict(word): count for word, count in verdicts.items()}, rules)
    if groups.result is not CheckResult.OK:
        blocks = groups.result is CheckResult.FAILED
        yield ReadinessFinding("groups", groups.figure, blocks, groups.remedy, blocks)
    yield from _of_preflight(status.failover, status.reason or "")
    yield from _of_records(status)
    if status.effective:
        differing = sum(group.configs for group in status.effective)
        yield ReadinessFinding(
            "effective", f"{_count(differing, 'config')} set on neither side with different values", False
        )


def _of_kinds(status: FlowStatus, rules: FailoverRules) -> Iterator[ReadinessFinding]:
    """Judged as `preflight` judges them. The flow says what makes a kind UNKNOWN or STANDBY, unless the kind has a
    reason of its own. A reason that kinds share is one row."""
    found, seen = in_step_of_status(status, GroupSummary({}, {})), {status.reason}
    for kind, drift in found.drift.items():
        one = status.kinds[kind]
        if one.task is Task.STANDBY:
            continue
        fault = None if one.task is Task.UNKNOWN and not one.reason else found.faulted.get(kind)
        check = kind_check(kind, drift, found.refused.get(kind, 0), fault, rules)
        detail = f": {one.reason}" if one.reason else ""
        reason = fault or f"{_count(drift, 'difference')} not mended{detail}"
        if (fault or drift) and reason not in seen:
            blocks = check.result is not CheckResult.OK
            yield ReadinessFinding(kind.value, reason, blocks, blocks_failover=blocks)
        seen.add(fault)


def _of_preflight(failover: FailoverStatus, said: str) -> Iterator[ReadinessFinding]:
    """`said`: the flow's reason, which is not said again."""
    record, made = failover.record, failover.preflight
    if failover.unknown is not None:
        why = "" if failover.unknown in said else f": {failover.unknown}"
        remedy = "it is known again once the ledger can be read"
        yield ReadinessFinding("failover", f"whether one is under way is not known{why}", blocks=False, remedy=remedy)
    elif record.state is not State.MIRRORING or record.doing is not None:
        yield ReadinessFinding("failover", f"the flow is {record.describe()}", blocks=False, remedy=GOES_ON)
    if made is None or failover.not_checked:
        return
    if made.trouble and made.trouble not in said:
        yield ReadinessFinding("preflight", f"the clusters cannot be observed: {made.trouble}")
    for check in (*made.of_clusters, *(one for one in made.of_target if one not in made.of_clusters)):
        if check.result is not CheckResult.OK:
            blocks = check.result is not CheckResult.WARNING
            stops = blocks and (check in made.of_target or check.name == COUNTED)
            yield ReadinessFinding(check.name, check.figure, blocks, check.remedy, stops)


HARMLESS_TO_READERS = frozenset({Difference.DUPLICATE, Difference.EXTRA})
"""What the target has too much of; anything else would be lost, or another record."""


def _of_records(status: FlowStatus) -> Iterator[ReadinessFinding]:
    found = status.verify
    if found is None:
        return
    if found.state is Comparing.FAULTED:
        yield ReadinessFinding("records", f"are not compared: {found.reason}", blocks=False)
    for kind, count in found.by_kind.items():
        if kind == STALLED:
            yield ReadinessFinding(
                "records",
                f"{count:,} {noun_of(count, 'partition stands', 'partitions stand')} still while the source moves",
            )
        else:
            blocks = kind not in HARMLESS_TO_READERS
            yield ReadinessFinding("records", f"{_count(count, 'record')} {kind}", blocks, blocks_failover=blocks)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun_of(number, noun)}"


STATES: Mapping[FlowState, Callable[[FlowStatus], str | None]] = {
    FlowState.LIVE: lambda status: None,
    FlowState.STALE: lambda status: status.reason or "MirrorMaker 2 is not heard",
    FlowState.NO_HEARTBEAT: lambda status: silence(status.state, None),
    FlowState.NO_JOB: lambda status: status.reason or "no job answers",
    FlowState.ENDED: lambda status: "the flow has ended",
    FlowState.ERROR: lambda status: status.reason or "the flow is stopped",
}
"""What a state has against a failover."""
