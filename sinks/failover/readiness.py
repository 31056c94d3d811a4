"""Could the target take over now? `readiness` answers for `preflight`, status, metrics and page alike. Pure.

There are two questions. A cutover loses nothing: could it be done? A failover goes without the source: could it be
done, and how many records would it lose? `readiness_facts` is what was seen, `readiness_checks` the checks behind both
answers. What was not found out is UNKNOWN, never a yes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sinks.failover.readiness_checks import GOES_ON, QUESTIONS, Check, CheckResult, SeenBy, Takeover, remark
from sinks.failover.readiness_facts import FailoverLoss, JobFacts, NotChecked, ReadinessFacts
from sinks.flow_settings import Copier
from sinks.ledger.failover_record import State
from sinks.model.times import utc_now, utc_text
from streaming.message_words import number_of


class ReadinessAnswer(str, Enum):
    """UNKNOWN: not found out, or another process leads the flow, and compares it. DONE: the target has taken over."""

    DONE = "done"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one question, and a sentence for it. `since`: from when on no preflight says more than UNKNOWN."""

    answer: ReadinessAnswer
    headline: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        since = utc_text(self.since) if self.since else None
        return {"answer": self.answer.value, "headline": self.headline, "since": since}


@dataclass(frozen=True, slots=True)
class Readiness:
    """Could the flow be cut over now, without loss? Could the target take over without the source, and what would that
    lose? `checks`: what was found."""

    checks: tuple[Check, ...]
    cutover: Answered
    failover: Answered

    @property
    def ready(self) -> bool | None:
        """Whether the flow could be cut over. None: unknown, or the target has taken over."""
        return {ReadinessAnswer.YES: True, ReadinessAnswer.NO: False}.get(self.cutover.answer)

    @property
    def not_well(self) -> list[Check]:
        return [check for check in self.checks if check.result is not CheckResult.OK]

    def as_json(self) -> dict[str, Any]:
        """For the page. What several checks say alike is one finding."""
        found = {(check.figure, check.remedy): check for check in reversed(self.not_well)}
        rows = [check for check in self.not_well if found[check.figure, check.remedy] is check]
        return {
            **self.cutover.as_json(),
            "failover": self.failover.as_json(),
            "findings": [_finding(check) for check in rows],
        }


def _finding(check: Check) -> dict[str, Any]:
    return {
        "about": check.name.removeprefix("in step: "),
        "reason": check.figure,
        "remedy": check.remedy,
        "blocks": check.stops(Takeover.CUTOVER),
        "blocks_failover": check.stops(Takeover.FAILOVER),
    }


def readiness(facts: ReadinessFacts, now: datetime | None = None) -> Readiness:
    """Returns the answers to both questions, and the checks behind them. `now`: None takes the clock's."""
    if taken := _taken_over(facts):
        return Readiness((remark("failover", f"the flow is {facts.record.describe()}", GOES_ON),), taken, taken)
    asked = [row for row in QUESTIONS if row.seen_by in _seen(facts.job)]
    checks = tuple(replace(check, decides=row.decides) for row in asked for check in row.asks(facts))
    return Readiness(checks, _cutover(facts, checks), _failover(facts, checks, now or utc_now()))


def _seen(job: JobFacts) -> Collection[SeenBy]:
    """Returns who has seen anything that counts now."""
    if job.not_checked:
        return (SeenBy.PASSES,)
    return (SeenBy.PASSES, SeenBy.PREFLIGHT_OF_TARGET) if job.trouble else tuple(SeenBy)


def _taken_over(facts: ReadinessFacts) -> Answered | None:
    """Returns the answer to both questions where the target has taken over, or is half done with it."""
    record, target = facts.record, facts.target
    if facts.record_unknown is not None or not record.has_ended:
        return None
    if record.doing and not record.has_taken_over:
        half = f"{target} takes over: `{record.doing.typed}` is half done. Run it again to its end"
        return Answered(ReadinessAnswer.NO, half)
    if how := TAKEN_OVER.get(record.state):
        return Answered(ReadinessAnswer.DONE, f"{target} has taken over{_since(record.ended_at)}, by {how}")
    back = f"{record.state}{_since(record.begun.at)}"
    return Answered(ReadinessAnswer.DONE, f"{target} has taken over. The way back: {back}")


def _since(at: str) -> str:
    return f" since {at}" if at else ""


TAKEN_OVER: Mapping[State, str] = {State.PROMOTED: "`lockstep cutover`", State.FAILED_OVER: "`lockstep failover`"}
"""How the target took over."""


NOT_COMPARED = "The first comparison is not over yet"


def _cutover(facts: ReadinessFacts, checks: Sequence[Check]) -> Answered:
    job = facts.job
    if job.another:
        return Answered(ReadinessAnswer.UNKNOWN, job.another)
    if not job.compared and not job.stopped:
        return Answered(ReadinessAnswer.UNKNOWN, NOT_COMPARED)
    if reasons := [check for check in checks if check.stops(Takeover.CUTOVER)]:
        return Answered(ReadinessAnswer.NO, _reasons(facts, reasons))
    if job.not_checked:
        return _not_known(job.not_checked)
    remarks = sum(check.result is CheckResult.WARNING for check in checks)
    said = f", with {number_of(remarks, 'remark')}" if remarks else ""
    heard = "MirrorMaker 2 is heard" if facts.copier is Copier.MM2 else f"{facts.copier.label} copies"
    well = f"All that Lockstep keeps is in step, and {heard}{said}: it loses nothing"
    return Answered(ReadinessAnswer.YES, well)


def _not_known(unchecked: NotChecked) -> Answered:
    """Records, brokers and rights were not checked, or too long ago."""
    since = f", since {utc_text(unchecked.since)}" if unchecked.since else ""
    asks = "`lockstep preflight` asks both clusters now"
    return Answered(ReadinessAnswer.UNKNOWN, f"Not known{since}: {unchecked.reason}. {asks}", unchecked.since)


def _reasons(facts: ReadinessFacts, reasons: Sequence[Check]) -> str:
    first, more = reasons[0], len(reasons) - 1
    about = "" if first.name == f"{facts.source}->{facts.target}" else f"{first.name.removeprefix('in step: ')}: "
    return f"{about}{first.figure}" + (f"; and {number_of(more, 'reason')} more" if more else "")


def _failover(facts: ReadinessFacts, checks: Sequence[Check], now: datetime) -> Answered:
    """Without the source: it may be gone, and MM2 with it."""
    job, loss = facts.job, facts.loss
    if job.another:
        return Answered(ReadinessAnswer.UNKNOWN, job.another)
    if facts.seen_at is None or (job.stopped and job.trouble is None):
        asks = f"`lockstep failover --dry-run` asks {facts.target}"
        unchecked = job.not_checked or NO_PREFLIGHT
        why = f"{job.stopped or unchecked.reason}. What it would lose is not known here: {asks}"
        return Answered(ReadinessAnswer.UNKNOWN, why, unchecked.since)
    if job.not_checked:
        return _not_known(job.not_checked)
    if loss is None:
        return Answered(ReadinessAnswer.NO, job.trouble or "What it would lose is not known")
    if reasons := [check for check in checks if check.stops(Takeover.FAILOVER)]:
        return Answered(ReadinessAnswer.NO, _reasons(facts, reasons))
    if loss.records is None:
        of = f" of {number_of(loss.unknown, 'partition')}" if loss.unknown else ""
        dry = f"What it would lose is not known{of}: `lockstep failover --dry-run` names them"
        return Answered(ReadinessAnswer.UNKNOWN, dry)
    loses = _loses(loss, facts.seen_at, facts.source, now)
    if not job.compared:
        return Answered(ReadinessAnswer.UNKNOWN, f"{loses}. {NOT_COMPARED}: what else differs is not known")
    return Answered(ReadinessAnswer.YES, loses)


NO_PREFLIGHT = NotChecked("no preflight was made")


def _loses(loss: FailoverLoss, at: datetime, source: str, now: datetime) -> str:
    """A figure is as old as what it was counted from: what came to the source since is not in it."""
    most = "" if loss.exact else "at most "
    age = max(0, round((now - (loss.source_seen or at)).total_seconds()))
    return (
        f"It would lose {most}{number_of(loss.records or 0, 'record')} that {source} had {age} s ago, and each later "
        "record that was not copied"
    )
