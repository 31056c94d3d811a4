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
    """Result of one preflight. `at`: when it ended, after `seconds`. `trouble`: why the clusters could not be observed.

    `records`: how many a failover now would lose. None: unknown. Unless `exact`, an upper bound.
    `oldest_ms`: none of these records is older, in ms since the epoch. None: unknown, or there are none.
    `loss`: of a failover, even if the source does not answer, or only in part. None: not looked for.
    `facts`: what was seen of the clusters. If they did not answer, what the one before saw.
    """

    at: datetime
    seconds: float
    records: int | None = None
    oldest_ms: int | None = None
    exact: bool = True
    read_twice: int = 0
    trouble: str | None = None
    loss: FailoverLoss | None = None
    facts: ReadinessFacts | None = None

    def seconds_at_risk(self, now_ms: float) -> float | None:
        """Age of the oldest record that a failover would lose; 0 where it loses none, None where it is not known."""
        if self.oldest_ms is None:
            return 0.0 if self.records == 0 else None
        return max(0.0, now_ms - self.oldest_ms) / 1000

    def as_json(self, found: Readiness) -> dict[str, Any]:
        """Returns the fields for status and page. `seconds_at_risk`: when it ended."""
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
    """Builds a preflight from what was seen. `loss`: None takes what was counted."""
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
    """Returns what a failover loses by what was counted with both clusters."""
    losses = facts.losses.values()
    records = sum(one.records for one in losses) if facts.countable else None
    return FailoverLoss(records, all(one.exact for one in losses), unknown=len(facts.untold))


def without_answer(made: Preflight, last: Preflight | None) -> Preflight:
    """Fills a preflight that the source did not fully answer with the facts of `last`.

    If `last` found nothing missing, no missing record is older than its start.
    """
    if last is None:
        return made
    oldest_ms = milliseconds(last.at) - round(last.seconds * 1000) if last.records == 0 else last.oldest_ms
    return replace(made, facts=made.facts or last.facts, oldest_ms=oldest_ms)


LARGEST_SHARE = 0.1
"""Largest share of time for a flow's preflights. With thousands of moving partitions one preflight takes as long as
dozens of passes. Passes wait for the interpreter meanwhile."""

COUNTS_LONGER = 2
"""A preflight counts until the next is due, and so many intervals longer. If one takes longer than the interval, that
time counts instead. One late preflight is no reason to distrust the last; several are."""

COUNTS_AT_LEAST_S = 30.0
"""Minimum for intervals so short that a busy machine misses several."""


def next_preflight(began: float, ended: float, interval: float) -> float:
    """Returns when the next preflight is due: an interval after the last began, or later to keep LARGEST_SHARE. All in
    monotonic seconds."""
    return began + _pace(ended - began, interval)


def _pace(seconds: float, interval: float) -> float:
    return max(interval, seconds / LARGEST_SHARE)


def not_checked(made: Preflight | None, age: float, interval: float, since: datetime) -> NotChecked | None:
    """Returns why the last preflight does not count; None where it does. `age`: seconds since it was made. `interval`:
    between two of them, 0 where the job makes none. `since`: start of the time without a preflight."""
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
    """State of a flow's failover, and what it would cost. `drill`: the document of the last one that was completed.

    `record`: as the ledger was last read. `unknown`: why the ledger may have changed since; None if it was just read.
    `preflight`: the last one. None before the first, and where the job makes none. `not_checked`: why that preflight is
    out of date; None if it counts. `lost`: records that retention deleted on the source before MM2 copied them, without
    acknowledged ones.
    """

    record: FailoverRecord = field(default_factory=FailoverRecord)
    drill: LastDrill | None = None
    preflight: Preflight | None = None
    not_checked: NotChecked | None = NO_PREFLIGHT
    unknown: str | None = None
    lost: LostRecords = field(default_factory=dict)

    def as_json(self, found: Readiness) -> dict[str, Any]:
        """Returns `failover` of a flow in `status`."""
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
