"""Could this flow's target take over now, as far as the job sees? Pure.

It tells of what Lockstep keeps, and of what the last preflight saw of records and brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from app.http.remedies import advice
from sinks.engine.status import FlowState, FlowStatus, Task, silence
from sinks.engine.verify_status import STALLED, Comparing
from sinks.failover.checks import CheckResult, group_check, kind_check
from sinks.failover.in_step import in_step_of_status
from sinks.failover.preflight import FailoverStatus
from sinks.failover.states import State
from sinks.flow_settings import FailoverRules
from sinks.kinds.controller import GroupSummary
from sinks.kinds.offsets.verdicts import Verdict
from sinks.verify.differences import Difference
from streaming.number_of import noun_of

GOES_ON = "docs/failover.md says what leads on from there"


class ReadinessAnswer(str, Enum):
    """UNKNOWN: nothing was compared yet, or another process leads the flow, and compares it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReadinessFinding:
    """`about`: the flow, or a kind. `blocks`: whether it is a reason against a failover now."""

    about: str
    reason: str
    blocks: bool = True
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """One row, with what to do."""
        remedy = self.remedy or advice(self.reason)
        return {"about": self.about, "reason": self.reason, "remedy": remedy, "blocks": self.blocks}


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, a sentence for it, and what was found."""

    answer: ReadinessAnswer
    headline: str
    findings: tuple[ReadinessFinding, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        found = [finding.as_json() for finding in self.findings]
        return {"answer": self.answer.value, "headline": self.headline, "findings": found}


def readiness(
    status: FlowStatus, verdicts: Mapping[str, int], passes: int, rules: FailoverRules | None = None
) -> Readiness:
    """`verdicts`: partitions of groups by verdict. `passes`: how many came to their end since the job started. `rules`:
    the flow's, None: the defaults."""
    found = tuple(_findings(status, verdicts, rules or FailoverRules()))
    if status.state is not FlowState.ERROR and any(kind.task is Task.STANDBY for kind in status.kinds.values()):
        return Readiness(ReadinessAnswer.UNKNOWN, status.reason or "Another process leads the flow", found)
    if status.state is not FlowState.ERROR and not passes:
        return Readiness(ReadinessAnswer.UNKNOWN, "The first comparison is not over yet", found)
    blocking = [finding for finding in found if finding.blocks]
    if not blocking:
        remarks = f", with {_count(len(found), 'remark')}" if found else ""
        return Readiness(
            ReadinessAnswer.YES, f"All that Lockstep keeps is in step, and MirrorMaker 2 is heard{remarks}", found
        )
    first, more = blocking[0], len(blocking) - 1
    about = "" if first.about == status.flow.name else f"{first.about}: "
    others = f"; and {_count(more, 'reason')} more" if more else ""
    return Readiness(ReadinessAnswer.NO, f"{about}{first.reason}{others}", found)


def _remedy_of(status: FlowStatus) -> str:
    """That of the error which stopped the flow; empty where there is none."""
    stopped = status.failure if status.state is FlowState.ERROR else None
    return (stopped.remedy if stopped else None) or ""


def _findings(status: FlowStatus, verdicts: Mapping[str, int], rules: FailoverRules) -> Iterator[ReadinessFinding]:
    flow = status.flow.name
    trouble = STATES[status.state](status)
    if trouble is not None:
        yield ReadinessFinding(flow, trouble, remedy=_remedy_of(status))
    if status.reason and status.reason != trouble:
        yield ReadinessFinding(flow, status.reason, blocks=False)
    yield from _of_kinds(status, rules)
    groups = group_check({Verdict(word): count for word, count in verdicts.items()}, rules)
    if groups.result is not CheckResult.OK:
        yield ReadinessFinding("groups", groups.figure, groups.result is CheckResult.FAILED, groups.remedy)
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
            yield ReadinessFinding(kind.value, reason, check.result is not CheckResult.OK)
        seen.add(fault)


def _of_preflight(failover: FailoverStatus, said: str) -> Iterator[ReadinessFinding]:
    """`said`: the flow's reason, which is not said again."""
    record, made = failover.record, failover.preflight
    if failover.unknown is not None:
        why = "" if failover.unknown in said else f": {failover.unknown}"
        remedy = "it is known again once the ledger can be read"
        yield ReadinessFinding("failover", f"whether one is under way is not known{why}", blocks=False, remedy=remedy)
    elif record.state is not State.MIRRORING or record.doing is not None:
        yield ReadinessFinding("failover", f"the flow is {record.describe()}", blocks=record.has_ended, remedy=GOES_ON)
    if made is None:
        return
    if made.trouble:
        yield ReadinessFinding("preflight", f"nobody can tell what a failover would lose: {made.trouble}")
    for check in made.of_clusters:
        if check.result is not CheckResult.OK:
            blocks = check.result is not CheckResult.WARNING
            yield ReadinessFinding(check.name, check.figure, blocks, check.remedy)


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
            yield ReadinessFinding(
                "records", f"{_count(count, 'record')} {kind}", blocks=kind not in HARMLESS_TO_READERS
            )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun_of(number, noun)}"


STATES: Mapping[FlowState, Callable[[FlowStatus], str | None]] = {
    FlowState.LIVE: lambda status: None,
    FlowState.STALE: lambda status: status.reason or "MirrorMaker 2 is not heard",
    FlowState.NO_HEARTBEAT: lambda status: silence(status.state, None),
    FlowState.NO_JOB: lambda status: status.reason or "no job answers",
    FlowState.ERROR: lambda status: status.reason or "the flow is stopped",
}
"""What a state has against a failover."""
