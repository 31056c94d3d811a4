"""The result of a preflight, kept until the next one for status, metrics and the page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sinks.failover.journal import LastDrill
from sinks.failover.lost_before_copying import LostRecords, lost_as_json
from sinks.failover.readiness import NO_PREFLIGHT, Readiness
from sinks.failover.readiness_facts import FailoverLoss, NotChecked, ReadinessFacts
from sinks.ledger.failover_record import FailoverRecord, way_on
from sinks.model.times import milliseconds, utc_text


@dataclass(frozen=True)
class Preflight:
    """The result of one preflight."""

    at: datetime
    """When it ended."""
    seconds: float
    """How long it took."""
    records: int | None = None
    """How many records are not on the target yet; None if unknown. Unless `exact`, an upper bound."""
    oldest_ms: int | None = None
    """Lower bound of these records' timestamps, in ms since the epoch. None: unknown, or there are none."""
    exact: bool = True
    read_twice: int = 0
    """Most records that a group would read twice in one partition."""
    trouble: str | None = None
    """Why the clusters could not be observed."""
    loss: FailoverLoss | None = None
    """What a failover would lose, even if the source does not answer. None: not counted."""
    facts: ReadinessFacts | None = None
    """The facts about the clusters. If these did not answer, the facts of the preflight before."""

    def seconds_at_risk(self, now_ms: float) -> float | None:
        """Age (s) of the oldest record that a failover would lose; 0 if it loses none, None if that is unknown."""
        if self.oldest_ms is None:
            return 0.0 if self.records == 0 else None
        return max(0.0, now_ms - self.oldest_ms) / 1000

    def as_json(self, found: Readiness) -> dict[str, Any]:
        """Returns the fields for status and page. `seconds_at_risk` is as of the end of the preflight."""
        age = self.seconds_at_risk(milliseconds(self.at))
        return {
            "checked": utc_text(self.at),
            "check_seconds": round(self.seconds, 2),
            "records_at_risk": self.records,
            "exact": self.exact,
            "seconds_at_risk": None if age is None else round(age, 1),
            "read_twice": self.read_twice,
            "not_well": [check.as_json() for check in found.not_well],
            "trouble": self.trouble,
            "failover_loss": self.loss.as_json() if self.loss else None,
        }


def preflight_of(facts: ReadinessFacts, at: datetime, seconds: float, loss: FailoverLoss | None = None) -> Preflight:
    """Builds a preflight from its facts. Without `loss`, the records that were counted are the loss."""
    ages = [one.age for one in facts.losses.values() if one.age is not None]
    counted = counted_loss(facts)
    return Preflight(
        at,
        seconds,
        records=counted.records,
        oldest_ms=round(facts.losses_at_ms - max(ages) * 1000) if ages and facts.countable else None,
        exact=counted.exact,
        read_twice=facts.in_step.read_twice,
        loss=loss or counted,
        facts=facts,
    )


def counted_loss(facts: ReadinessFacts) -> FailoverLoss:
    """Returns the loss of a failover, as counted on both clusters."""
    losses = facts.losses.values()
    records = sum(one.records for one in losses) if facts.countable else None
    return FailoverLoss(records, all(one.exact for one in losses), unknown=len(facts.untold))


def without_answer(made: Preflight, last: Preflight | None) -> Preflight:
    """Returns a preflight that the source did not fully answer, completed with the facts of `last`, the one before.

    If `last` found no missing record, every missing record is younger than its start.
    """
    if last is None:
        return made
    oldest_ms = milliseconds(last.at) - round(last.seconds * 1000) if last.records == 0 else last.oldest_ms
    return replace(made, facts=made.facts or last.facts, oldest_ms=oldest_ms)


LARGEST_SHARE = 0.1
"""Largest share of the time that a flow's preflights may take. With thousands of moving partitions one preflight takes
as long as dozens of passes, and slows passes down meanwhile."""

COUNTS_LONGER = 2
"""Number of intervals for which a preflight stays valid after the next one is due. If a preflight takes longer than the
interval, its duration counts instead. So one late preflight does not make the last one invalid."""

COUNTS_AT_LEAST_S = 30.0
"""Seconds for which a preflight is valid at least, because a busy machine may miss several short intervals."""


def next_preflight(began: float, ended: float, interval: float) -> float:
    """Returns when the next preflight is due: an interval after the last one began, or later to keep LARGEST_SHARE.

    `began`, `ended`: of the last one. All in monotonic seconds."""
    return began + _pace(ended - began, interval)


def _pace(seconds: float, interval: float) -> float:
    return max(interval, seconds / LARGEST_SHARE)


def not_checked(made: Preflight | None, age: float, interval: float, since: datetime) -> NotChecked | None:
    """Returns why the last preflight is not valid; None if it is. `age`: seconds since it was made. `interval`: seconds
    between two preflights, 0 if the job makes none. `since`: start of the time without a preflight."""
    if made is None:
        none = "the job makes no preflights: lockstep.failover.preflight.interval.seconds is 0"
        return NotChecked("the job has made no preflight yet" if interval else none, since)
    pace = _pace(made.seconds, interval)
    if age <= max(COUNTS_AT_LEAST_S, pace + COUNTS_LONGER * max(interval, made.seconds)):
        return None
    due = f"one is due every {pace:.0f} s, and the last one was made at {utc_text(made.at)}"
    return NotChecked(f"the job's preflight stands still: {due}", made.at)


NOT_READ = "the ledger was not read yet"


@dataclass(frozen=True)
class FailoverStatus:
    """The state of a flow's failover, with its last preflight and drill."""

    record: FailoverRecord = field(default_factory=FailoverRecord)
    """The state as it was last read from the ledger."""
    drill: LastDrill | None = None
    """The document of the last drill."""
    preflight: Preflight | None = None
    """The last preflight; None before the first, or if the job makes none."""
    not_checked: NotChecked | None = NO_PREFLIGHT
    """Why that preflight is not valid; None if it is."""
    unknown: str | None = None
    """Why `record` may be out of date; None if the ledger was just read."""
    lost: LostRecords = field(default_factory=dict)
    """Records that retention deleted on the source before MM2 copied them, without acknowledged ones."""

    def as_json(self, found: Readiness) -> dict[str, Any]:
        """Returns the field `failover` of a flow in `lockstep status`. `found`: the flow's readiness."""
        ready = None if self.not_checked else found.ready
        record = self.record if self.unknown is None else None
        lost = lost_as_json(self.lost)
        return {
            "state": record.state.value if record else None,
            "reason": self.unknown,
            "doing": record.doing.value if record and record.doing else None,
            "who": record.begun.who or None if record else None,
            "why": record.begun.why or None if record else None,
            "at": record.begun.at or None if record else None,
            "remedy": way_on(record) or None if record else None,
            "preflight": {"ready": ready, **self.preflight.as_json(found)} if self.preflight else None,
            "not_checked": self.not_checked.as_json() if self.not_checked else None,
            "last_drill": self.drill,
            "lost_before_copying": lost if self.unknown is None else {**lost, "records": None},
        }


NEVER_READ = FailoverStatus(unknown=NOT_READ)
"""Status of a flow whose ledger was not read yet."""
