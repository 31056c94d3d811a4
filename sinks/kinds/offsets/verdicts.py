"""Tells for each partition of a group what a failover would do to it, and whether its offset may be written.

`VERDICTS` is read from the top; the first one that applies counts. A group's offset moves only forward, only while the
group has no member there, and only within the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.translation import Unanswered
from streaming.message_words import Word


class Verdict(Word):
    """The words of `lockstep offsets` for the state of a group's partition."""

    SYNCED = "SYNCED"
    PENDING = "PENDING"
    GROUP_ACTIVE = "GROUP_ACTIVE"
    TARGET_AHEAD = "TARGET_AHEAD"
    NO_OFFSET_SYNC = "NO_OFFSET_SYNC"
    TOO_OLD = "TOO_OLD"
    SOURCE_EMPTY = "SOURCE_EMPTY"
    TOPIC_MISSING = "TOPIC_MISSING"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a group's partition, on the cluster `onto` to which the offset is written."""

    onto: str
    answer: int | Unanswered
    """The translated offset, or why there is none."""
    log: LogRange | None
    """The partition's log on `onto`; None: it does not exist."""
    committed: int | None = None
    """The group's offset on `onto`; None: it has none."""
    members: int = 0
    """Number of the group's members on `onto`."""
    enabled: bool = True
    """Offsets are written."""
    source_empty: bool = False
    """The source partition has no record left, and the group had read them all."""
    beyond_end: bool = False
    """The group's offset lies beyond the end of the log that it comes from."""
    stale: bool = False
    """The group's offset is from before the log that it comes from lost its tail."""
    untrue: bool = False
    """`committed` is from before a truncation of the log on `onto`, and beyond it."""
    own: bool = False
    """The topic was drained in a batch, and the group may have moved."""
    error: str | None = None
    """Why one of these could not be read."""
    skipped: int = 0
    """About how many unread records the log on `onto` lost; see `Answer`."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason, a sentence for the operator. `writes`: the offset may be written now."""

    verdict: Verdict
    reason: str
    writes: bool = False


def _outside(facts: Facts) -> bool:
    return (
        facts.log is not None
        and not isinstance(facts.answer, Unanswered)
        and not facts.log.start <= facts.answer <= facts.log.end
    )


def _ahead(facts: Facts) -> bool:
    return facts.committed is not None and not isinstance(facts.answer, Unanswered) and facts.committed > facts.answer


def _beyond_log(facts: Facts) -> bool:
    return facts.committed is not None and facts.log is not None and facts.committed > facts.log.end


def _untrue(facts: Facts) -> bool:
    return facts.untrue and not facts.members and (isinstance(facts.answer, Unanswered) or _ahead(facts))


SYNCED = "the group goes on at this offset on {onto}"
RECREATED = "the offset lies outside the log on {onto}, which was truncated or recreated"
RESET = ". Reset the group's offset there; then Lockstep writes it again"

VERDICTS: tuple[tuple[Callable[[Facts], bool], Verdict, str], ...] = (
    (lambda facts: facts.error is not None, Verdict.ERROR, "{error}"),
    (lambda facts: facts.log is None, Verdict.TOPIC_MISSING, "the partition does not exist on {onto}"),
    (
        lambda facts: facts.beyond_end,
        Verdict.ERROR,
        "the group's offset lies beyond the end of the log that it comes from, which was truncated or recreated",
    ),
    (
        lambda facts: facts.stale,
        Verdict.ERROR,
        "the group committed this offset before its log lost its tail. Lockstep uses the next offset that it commits "
        "there",
    ),
    (
        _beyond_log,
        Verdict.ERROR,
        "the group is at {committed} on {onto}, beyond the end of the log, which was truncated or recreated" + RESET,
    ),
    (
        _untrue,
        Verdict.ERROR,
        "the group was at {committed} on {onto} before the log there lost its tail, and would skip the records that "
        "were written since" + RESET,
    ),
    (
        lambda facts: facts.answer is Unanswered.BEYOND_END,
        Verdict.ERROR,
        "the log on {onto} was truncated or recreated, and MM2 has written no offset-sync since then",
    ),
    (
        # A group without an offset there would begin by auto.offset.reset, and may skip what producers write first.
        lambda facts: isinstance(facts.answer, Unanswered) and facts.source_empty and facts.committed is not None,
        Verdict.SOURCE_EMPTY,
        "the log that the group comes from has no records left, so no offset can be translated",
    ),
    (
        lambda facts: facts.answer is Unanswered.OTHER_OFFSETS,
        Verdict.ERROR,
        "no record at the end of the copy on {onto} is at the same offset as on the source. Either the copier does not "
        "preserve offsets, as lockstep.copier says, or other clients write to the copy",
    ),
    (
        lambda facts: facts.answer is Unanswered.NO_OFFSET_SYNC,
        Verdict.NO_OFFSET_SYNC,
        "MM2 has written no offset-sync of the partition yet",
    ),
    (
        lambda facts: facts.answer is Unanswered.TOO_OLD,
        Verdict.TOO_OLD,
        "the group is before the earliest offset-sync of the partition",
    ),
    (_outside, Verdict.ERROR, RECREATED),
    (
        lambda facts: facts.skipped > 0 and not facts.members,
        Verdict.TARGET_AHEAD,
        "the log on {onto} begins at {start}: about {skipped} records that the group has not read are gone there, and "
        "the log that it comes from still has them",
    ),
    (lambda facts: facts.committed == facts.answer, Verdict.SYNCED, SYNCED),
    (
        lambda facts: facts.members > 0,
        Verdict.GROUP_ACTIVE,
        "the group has members on {onto} ({members}), so Lockstep does not change its offset {committed} there",
    ),
    (
        lambda facts: facts.own,
        Verdict.GROUP_ACTIVE,
        "the flow drained the topic, so the group may have moved to {onto}. Lockstep does not change its offset "
        "{committed} there",
    ),
    (_ahead, Verdict.TARGET_AHEAD, "the group is at {committed} on {onto} already: offsets move only forward"),
    (
        lambda facts: not facts.enabled,
        Verdict.PENDING,
        "sync.group.offsets.enabled is false: the offset is not written",
    ),
    (lambda facts: True, Verdict.PENDING, "to be written: the group is at {committed} on {onto}"),
)


def verdict_on(facts: Facts) -> Judgement:
    """Returns the verdict. Call it again with fresh facts right before a write, because the group may have a member by
    then."""
    verdict, reason = next((verdict, reason) for applies, verdict, reason in VERDICTS if applies(facts))
    committed = "no offset" if facts.committed is None else facts.committed
    start = facts.log.start if facts.log else 0
    text = reason.format(
        onto=facts.onto,
        error=facts.error,
        members=facts.members,
        committed=committed,
        start=start,
        skipped=facts.skipped,
    )
    # The start of the log skips the fewest of what is left there.
    skips = facts.skipped > 0 and verdict is Verdict.TARGET_AHEAD and facts.committed != facts.answer
    writes = verdict is Verdict.PENDING or (skips and not _ahead(facts))
    return Judgement(verdict, text, writes=writes and facts.enabled)
