"""What a preflight came to, kept until the next: for status, metrics and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sinks.engine.times import utc_text
from sinks.failover.checks import FROM_CLUSTERS, OF_TARGET, Check, CheckResult, ReadinessFacts, is_ready, readiness
from sinks.failover.last_drill import LastDrill
from sinks.failover.lost_before_copying import LostRecords, lost_as_json
from sinks.failover.record import FailoverRecord


@dataclass(frozen=True)
class FailoverLoss:
    """What a failover loses. `records`: None: not known, of so many `unknown` partitions. Not `exact`: at most so many.
    `source_seen`: when the ends that it is counted from were seen; None: by the preflight itself."""

    records: int | None
    exact: bool = False
    source_seen: datetime | None = None
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
        """For status and page."""
        return {
            "records": self.records,
            "exact": self.exact,
            "source_seen": utc_text(self.source_seen) if self.source_seen else None,
            "partitions_not_known": self.unknown,
        }


@dataclass(frozen=True)
class Preflight:
    """`at`: when it was over, after `seconds`. `checks`: all of them; `of_clusters`: those that say what no comparison
    of a kind does. `records`: that a failover now would lose, the oldest of them `age` seconds old; None: nobody can
    tell. Not `exact`: at most so many. `trouble`: why the clusters could not be observed.

    `loss`: of a failover, also where the source gives no answer, wholly or in part; None: not looked for. `of_target`:
    of the checks those that such a failover depends on, as they were seen last.
    """

    at: datetime
    seconds: float
    checks: Sequence[Check] = ()
    of_clusters: Sequence[Check] = ()
    records: int | None = None
    age: float | None = None
    exact: bool = True
    read_twice: int = 0
    trouble: str | None = None
    loss: FailoverLoss | None = None
    of_target: Sequence[Check] = ()

    @property
    def ready(self) -> bool | None:
        """None: nobody can tell."""
        return None if self.trouble else is_ready(self.checks)

    def as_json(self) -> dict[str, Any]:
        """For status and page; of the checks those that are not well."""
        return {
            "ready": self.ready,
            "checked": utc_text(self.at),
            "check_seconds": round(self.seconds, 2),
            "records_at_risk": self.records,
            "exact": self.exact,
            "seconds_at_risk": None if self.age is None else round(self.age, 1),
            "read_twice": self.read_twice,
            "not_well": [check.as_json() for check in self.checks if check.result is not CheckResult.OK],
            "trouble": self.trouble,
            "failover_loss": self.loss.as_json() if self.loss else None,
        }


def preflight_of(facts: ReadinessFacts, at: datetime, seconds: float, loss: FailoverLoss | None = None) -> Preflight:
    """Of what was seen. `loss`: None: what was counted."""
    losses = facts.losses.values()
    ages = [one.age for one in losses if one.age is not None]
    records = sum(one.records for one in losses) if facts.countable else None
    exact = all(one.exact for one in losses)
    return Preflight(
        at,
        seconds,
        readiness(facts),
        readiness(facts, FROM_CLUSTERS),
        records=records,
        age=max(ages, default=0.0) if facts.countable else None,
        exact=exact,
        read_twice=facts.read_twice,
        loss=loss or FailoverLoss(records, exact, unknown=len(facts.untold)),
        of_target=readiness(facts, OF_TARGET),
    )


NOT_READ = "the ledger was not read yet"


@dataclass(frozen=True)
class FailoverStatus:
    """How far a flow's failover is, and what it would cost. `drill`: the document of the last one that came to its end.

    `record` is what the ledger said when it was read last. `unknown`: why it may say something else by now; None where
    it was read. `preflight`: None before the first, and where a job makes none. `lost`: records that retention took
    from the source before MM2 copied them, and that nobody has acknowledged.
    """

    record: FailoverRecord = field(default_factory=FailoverRecord)
    drill: LastDrill | None = None
    preflight: Preflight | None = None
    unknown: str | None = None
    lost: LostRecords = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """`failover` of a flow in `status`."""
        record = self.record if self.unknown is None else None
        return {
            "state": record.state.value if record else None,
            "reason": self.unknown,
            "doing": record.doing.value if record and record.doing else None,
            "who": record.begun.who or None if record else None,
            "why": record.begun.why or None if record else None,
            "at": record.begun.at or None if record else None,
            "preflight": self.preflight.as_json() if self.preflight else None,
            "last_drill": self.drill,
            "lost_before_copying": lost_as_json(self.lost),
        }


NEVER_READ = FailoverStatus(unknown=NOT_READ)
"""Of a flow whose ledger nobody has read so far."""
