"""Compacted topics: what the last record of each key proves. Pure.

Cleaners take what they like, each side at its own time, so that only the last record of a key can be compared. MM2
copies in order: once one record has arrived, all before it have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sinks.verify.differences import Difference, FoundDifference
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_report import MOST_FINDINGS, NOTHING_LEFT
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict
from streaming.number_of import number_of

UNSEEN = "{} not agree; no more were brought, and nothing tells whether they are only late"
"""A reason."""

UNPROVEN_DELETION = (
    "a deletion is not on the target, and what the target has from before was too much to be read for it: `lockstep "
    "verify` reads it"
)
"""A reason."""


class Last(Protocol):
    """The last record of a key on one side; its digests, its timestamp in ms."""

    @property
    def offset(self) -> int: ...

    @property
    def value(self) -> int: ...

    @property
    def headers(self) -> int: ...

    @property
    def ms(self) -> int: ...

    @property
    def tombstone(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class OddKey:
    """A key whose last records do not agree; None where a side has none."""

    source: Last | None
    target: Last | None


@dataclass(frozen=True, slots=True)
class Keys:
    """Of a partition: how many keys, how many of them odd, the source's greatest offset whose record has arrived.

    `times`: timestamps were compared. `resending`: MM2 sends records again, so that older values come last for now.
    `deletion`: the source's least offset of a deletion of which the target has nothing, as far as it was read.
    """

    keys: int
    odd: int
    arrived: int | None
    last_ms: int | None
    times: bool
    resending: bool = False
    deletion: int | None = None


def arrived_before(plan: PartitionPlan, keys: Keys) -> int:
    """The source's offset before which all records must have arrived."""
    known = max((window.upstream for window in plan.windows if not window.begins_open), default=0)
    return max(known, -1 if keys.arrived is None else keys.arrived + 1)


def is_unproven(plan: PartitionPlan, keys: Keys) -> bool:
    """Whether a deletion must have arrived, and the target may have another value from before what was read of it."""
    reaches_back = not plan.windows or plan.windows[0].downstream <= plan.target.start
    return keys.deletion is not None and not reaches_back and keys.deletion < arrived_before(plan, keys)


def compacted_report(
    plan: PartitionPlan,
    keys: Keys,
    odd: Iterable[OddKey],
    notes: Iterable[str] = (),
    most: int = MOST_FINDINGS,
    unproven: bool = False,
) -> PartitionReport:
    """The verdict on a partition; `odd` may be cut off, `keys.odd` counts all of them: what was not seen proves
    nothing. `unproven`: nor do deletions (`is_unproven`) that could not be read for."""
    arrived = arrived_before(plan, keys)
    findings: list[FoundDifference] = []
    pending: list[Last] = []
    expired = seen = 0
    for key in odd:
        seen += 1
        if key.source is not None and (key.source.offset >= arrived or keys.resending):
            pending.append(key.source)
        elif keys.resending:
            continue
        elif _is_expired(plan, key):
            expired += 1
        else:
            findings.append(_finding(key, keys.times))
    counts = {kind: sum(one.difference is kind for one in findings) for kind in Difference}
    # Those that were cut off are most likely of the same kinds; how many of each is not known.
    counts[Difference.CHANGED] += keys.odd - seen if findings else 0
    said = [*notes, *_notes(keys, expired, len(findings) - most)]
    reason = _reason(keys.odd - seen, unproven)
    if keys.odd == keys.keys and (expired or (pending and plan.may_have_expired)):
        reason = NOTHING_LEFT
    unsure = PartitionVerdict.UNVERIFIABLE if reason else PartitionVerdict.VERIFIED
    return PartitionReport(
        plan.where,
        plan.remote.topic,
        PartitionVerdict.DIFFERENT if findings else unsure,
        reason,
        start=plan.windows[0].upstream if plan.windows else plan.source.start,
        through=min((one.offset for one in pending), default=plan.source.end),
        through_ms=keys.last_ms,
        records=keys.keys if reason is not NOTHING_LEFT else 0,
        pending=len(pending),
        pending_ms=min((one.ms for one in pending), default=None),
        differences={kind: count for kind, count in counts.items() if count},
        findings=findings[:most],
        times=keys.times,
        notes=tuple(said),
    )


def _notes(keys: Keys, expired: int, left_out: int) -> Iterator[str]:
    yield f"compacted: the last record of each of {number_of(keys.keys, 'key')} was compared"
    if not keys.times:
        yield "timestamps are left out: the target's brokers give them (LogAppendTime)"
    if expired:
        yield f"{number_of(expired, 'key is', 'keys are')} on one side alone, by retention"
    if left_out > 0:
        yield f"left out: {number_of(left_out, 'more finding')}"


def _reason(unseen: int, unproven: bool) -> str | None:
    """Why nothing is proved, whatever was found."""
    if unseen:
        return UNSEEN.format(number_of(unseen, "more key does", "more keys do"))
    return UNPROVEN_DELETION if unproven else None


def _is_expired(plan: PartitionPlan, key: OddKey) -> bool:
    """Whether one side may have deleted by retention what the other one still has (`compact,delete`)."""
    head = plan.windows[0] if plan.windows else None
    if head is None or not head.begins_open:
        return False
    if key.target is None and key.source is not None:
        return plan.target.start > 0 and key.source.offset < head.upstream_end
    return key.source is None and key.target is not None and plan.source.start > 0


def _finding(key: OddKey, times: bool) -> FoundDifference:
    ours, theirs = key.source, key.target
    if ours is None or theirs is None:
        only = Difference.MISSING if theirs is None else Difference.EXTRA
        found = ours or theirs
        upstream, downstream = (ours.offset if ours else None), (theirs.offset if theirs else None)
        return FoundDifference(only, upstream, downstream, 1, (), found.ms if found else None)
    compared = ("value", "headers", "ms") if times else ("value", "headers")
    names = [name for name in compared if getattr(ours, name) != getattr(theirs, name)]
    fields = tuple("timestamp" if name == "ms" else name for name in names)
    return FoundDifference(Difference.CHANGED, ours.offset, theirs.offset, 1, fields, ours.ms)
