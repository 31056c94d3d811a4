"""The offset in the other cluster at which a consumer group skips no record, and how many it reads twice.

In order of preference, for a group at the upstream offset x, each answer safe by itself:

- tip: the group has read the source to its end E. D, the target's end, was read before E, so that all that lies below D
  comes from before E. It holds where replication alone writes the target's topic, and no more than lies before E. A
  leader that is cut off tells an old end, and MM2 reads from the new leader;
- verified: `verify` compared the records around x, and so knows where x is on the target;
- matched: the record at x was found on the target, between the two syncs around x;
- conservative: MM2's own answer (`OffsetSyncStore.translateDownstream`), from a longer memory;
- checkpoint: MM2's answer for this group, where it is the better one.

Read x and D first, E last: an x that lies beyond E then means that the source's partition was truncated or recreated.

The way back, for a group that worked on the target: the same pairs, read the other way. There is no tip then, since the
source may hold what never reached the target.

After a restart MM2 sends records again. If it dies once more before it has caught up, the new copies may never come. So
only what lies before the restart counts. The same holds for a group whose next records retention took from the source:
perhaps before MM2 sent them again. MM2's own answers rely on copies that are still to come.

By the syncs, a checkpoint or earlier answer may lie behind a record that the group has yet to read. Then it is from
before a truncation of the target's log, and does not count. If even the newest sync lies behind the target's end, it is
unknown how much was lost before the log grew again. Then only tip counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from operator import itemgetter
from typing import NamedTuple

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import History, Pair
from streaming.message_words import Word
from streaming.mm2.records import MAX_INT64

BEYOND_ALL = Pair(MAX_INT64, MAX_INT64)


class Method(Word):
    """How an answer was found, the best first."""

    TIP = "tip"
    VERIFIED = "verified"
    MATCHED = "matched"
    CONSERVATIVE = "conservative"
    CHECKPOINT = "checkpoint"
    SAME = "same"


class Unanswered(str, Enum):
    """Why there is no answer."""

    NO_OFFSET_SYNC = "NO_OFFSET_SYNC"
    """Nothing is known of the partition."""
    TOO_OLD = "TOO_OLD"
    """The group's offset lies before all that is known."""
    BEYOND_END = "BEYOND_END"
    """A log was truncated or recreated: the answer lies behind the target's end, or the offset behind the source's, or
    a truncation made all that was known untrue."""
    OTHER_OFFSETS = "OTHER_OFFSETS"
    """The copier is said to preserve offsets, and no record shows that it does."""
    UNREAD = "UNREAD"
    """The group's own offsets could not be read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`downstream` is where a group at `upstream` continues; translated back, it is the other way round.

    `error_bound`: the most records that are read twice; None: unknown. `skipped`: about how many unread records the log
    lost where the group continues, while the log that it comes from still has them.
    """

    upstream: int
    downstream: int
    method: Method
    error_bound: int | None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Both logs of a partition. `source` None: it could not be read.

    `markers_only`: a consumer gets nothing on the source between the group's offset and the end. `replication_alone`:
    no other client writes the target's topic, and what MM2 wrote there is on the source. `taken_over_at`: where the
    target's log ended when clients could move to it. They may write it since.
    """

    source: LogRange | None
    target: LogRange
    markers_only: bool = False
    replication_alone: bool = True
    taken_over_at: int | None = None

    @property
    def tip(self) -> int:
        """Where a group continues on the target once it has read all of the source."""
        return self.target.end if self.taken_over_at is None else min(self.target.end, self.taken_over_at)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a partition, and of one group there.

    `matched`: where the search found the record at the group's offset in the other log, between the pairs around it. It
    is the offset of the next pair if the group has read all before. `checkpoint`: MM2's newest for the group.
    `previous`: the last answer in this direction. `exact`: no earlier record was mistaken for the match. `verified`:
    where `lockstep verify` found that the group continues. `truncated`: there is no history, because the target's log
    lost its tail and no sync came since. None of them may be from before a topic was recreated.
    """

    history: History | None = None
    matched: int | None = None
    checkpoint: Pair | None = None
    previous: Answer | None = None
    exact: bool = True
    truncated: bool = False
    verified: int | None = None


def translate(upstream: int, ends: LogEnds, evidence: Evidence) -> Answer | Unanswered:
    """The answer for a group at `upstream` on the source. It goes back only if the group did."""
    evidence = _without_untrue(evidence, ends.target)
    history, previous = evidence.history, evidence.previous
    limit = limit_of_copies(upstream, history, ends)
    below, following = history.around(upstream, limit) if history else (None, None)
    last = (previous.method, previous.downstream) if previous and previous.upstream <= upstream else None
    found = list(_candidates(upstream, ends, evidence, below, (following or BEYOND_ALL).downstream, limit))
    chosen = _choose(found, last, ends.target)
    if chosen is None:
        return _reason(history, bool(found) or evidence.truncated)
    method, safe = chosen
    # Records before the start are gone. A consumer there would follow auto.offset.reset.
    offset, skipped = max(safe, ends.target.start), 0
    if offset > safe and (unread := first_unread(upstream, ends.source)) is not None:
        around = history.around(unread, limit) if history else (None, None)
        skipped = max(0, offset - max(safe, _place_of(unread, *around)))
    at_end = offset == ends.tip
    bounds = bounds_at_the_end(upstream, ends.source, ends.tip, history) if at_end else []
    if history:
        match = _reached_match(found, offset) if evidence.exact or method is Method.VERIFIED else None
        bounds += bounds_by_syncs(upstream, offset, match, history, (below, following))
    return Answer(upstream, offset, method, min(bounds, default=None), skipped)


def first_unread(offset: int, log: LogRange | None) -> int | None:
    """Where a group at this offset reads its next record in the log that it comes from. None: there is none."""
    if log is None:
        return offset
    return max(offset, log.start) if offset < log.end else None


def _place_of(offset: int, below: Pair | None, following: Pair | None) -> int:
    """About where a record is in the other log, by the pairs around it: from their first number to their second one."""
    if below is None:
        return 0
    return min(below.downstream + offset - below.upstream, (following or BEYOND_ALL).downstream)


def without_truncated(history: History | None, target: LogRange) -> History | None:
    """The history, unless its newest sync shows that the target's log was longer once."""
    return history if history and history.reached <= target.end else None


def _without_untrue(evidence: Evidence, target: LogRange) -> Evidence:
    if evidence.history and without_truncated(evidence.history, target) is None:
        return Evidence(truncated=True)
    known, checkpoint, last = evidence.history, evidence.checkpoint, evidence.previous
    untrue = known and checkpoint and known.contradicts(checkpoint) is not None
    gone = known and last and known.contradicts(Pair(last.upstream, last.downstream)) is not None
    return replace(evidence, checkpoint=None if untrue else checkpoint, previous=None if gone else last)


def limit_while_resending(history: History | None, target: LogRange) -> int:
    """Answers by what MM2 sent must lie before this downstream offset.

    While MM2 sends again what it had sent, that is the place of its restart. If it dies once more, the target has those
    records only before that place.
    """
    since = history.resending_since(target.end) if history else None
    return MAX_INT64 if since is None else since


def limit_of_copies(upstream: int, history: History | None, ends: LogEnds) -> int:
    """The same for a group at `upstream`, whose next records retention may have taken before MM2 sent them again."""
    limit = limit_while_resending(history, ends.target)
    if history is None or ends.source is None or upstream >= ends.source.start:
        return limit
    restart = next((one for one in history.restarts() if upstream < one.was_at), None)
    if restart is None:
        return limit
    # Of joined restarts nothing tells where the first was: only the earliest pair lies before it.
    return min(limit, next(history.pairs()).downstream + 1 if restart.several else restart.downstream)


def _candidates(
    upstream: int, ends: LogEnds, evidence: Evidence, below: Pair | None, following: int, limit: int
) -> Iterator[tuple[Method, int]]:
    """Safe offsets on the target, the preferred first. `following`: the downstream offset of the next pair."""
    matched, checkpoint = evidence.matched, evidence.checkpoint
    if _tip_applies(upstream, ends, evidence.history):
        yield Method.TIP, ends.tip
    verified = evidence.verified
    # At the limit lie records that are sent again: retention may have taken the next ones before that.
    if verified is not None and below and below.downstream <= verified <= following and verified < limit:
        yield Method.VERIFIED, verified
    if matched is not None and below and below.downstream <= matched <= min(following, limit):
        yield Method.MATCHED, matched
    rest = []
    if below:
        rest.append((Method.CONSERVATIVE, below.downstream + (upstream > below.upstream)))
    if checkpoint and checkpoint.upstream <= upstream and checkpoint.downstream < limit:
        rest.append((Method.CHECKPOINT, checkpoint.downstream))
    yield from sorted(rest, key=itemgetter(1), reverse=True)


def _tip_applies(upstream: int, ends: LogEnds, history: History | None) -> bool:
    source, target = ends.source, ends.target
    if source is None:
        return False
    # An empty log has no record to skip, even if other clients write it.
    tells = target.start == target.end or (ends.replication_alone and not _is_old_end(source.end, ends, history))
    # A group before the start missed records that are gone from the source, and may be on the target.
    return tells and (upstream == source.end or (ends.markers_only and source.start <= upstream < source.end))


def _is_old_end(source_end: int, ends: LogEnds, history: History | None) -> bool:
    """Whether the target has more since the newest sync than lies before this end of the source.

    Copies that MM2 or its producer sent twice may look the same. Transaction markers may hide it: they have offsets,
    and no copies.
    """
    since = history.latest if history else Pair(0, 0)
    return ends.tip - since.downstream > source_end - since.upstream


def translate_back(downstream: int, ends: LogEnds, evidence: Evidence) -> Answer | Unanswered:
    """The answer for a group at `downstream` on the target: its `upstream` is where it continues on the source.

    Evidence is as for the way there, with two differences. `matched` is the source's offset of the record at
    `downstream`. A checkpoint says that the group itself had read the source up to its upstream offset.
    """
    if evidence.history and without_truncated(evidence.history, ends.target) is None:
        evidence = Evidence()
    history, previous = evidence.history, evidence.previous
    below, following = history.around_downstream(downstream) if history else (None, None)
    last = (previous.method, previous.upstream) if previous and previous.downstream <= downstream else None
    found = list(_candidates_back(downstream, evidence, below))
    chosen = _choose(found, last, ends.source)
    if chosen is None:
        return _reason(history, bool(found))
    method, safe = chosen
    offset, skipped = max(safe, ends.source.start if ends.source else 0), 0
    if offset > safe and (unread := first_unread(downstream, ends.target)) is not None:
        around = history.around_downstream(unread) if history else (None, None)
        skipped = max(0, offset - max(safe, _place_of(unread, *(pair and Pair(*reversed(pair)) for pair in around))))
    exact = evidence.exact and _reached_match(found, offset) is not None
    bounds = bounds_back(downstream, offset, exact, ends.source, history, (below, following))
    return Answer(offset, downstream, method, min(bounds, default=None), skipped)


def _candidates_back(downstream: int, evidence: Evidence, below: Pair | None) -> Iterator[tuple[Method, int]]:
    """Safe offsets on the source, the preferred first."""
    matched, checkpoint = evidence.matched, evidence.checkpoint
    if matched is not None and below and below.upstream <= matched:
        yield Method.MATCHED, matched
    rest = []
    if below:
        rest.append((Method.CONSERVATIVE, below.upstream + (downstream > below.downstream)))
    if checkpoint and checkpoint.downstream <= downstream:
        rest.append((Method.CHECKPOINT, checkpoint.upstream))
    yield from sorted(rest, key=itemgetter(1), reverse=True)


def _reached_match(found: list[tuple[Method, int]], offset: int) -> int | None:
    """The match, if the answer does not lie before it. The last answer may be that of an earlier record."""
    exact = (Method.VERIFIED, Method.MATCHED)
    return next((matched for method, matched in found if method in exact and matched <= offset), None)


def _choose(
    found: list[tuple[Method, int]], last: tuple[Method, int] | None, log: LogRange | None
) -> tuple[Method, int] | None:
    """The first that the log reaches to, unless the last answer lies further on."""
    end = log.end if log else MAX_INT64
    chosen = next((candidate for candidate in found if candidate[1] <= end), None)
    if last and last[1] <= end and (chosen is None or chosen[1] < last[1]):
        chosen = last
    return chosen


def _reason(history: History | None, beyond: bool) -> Unanswered:
    if beyond:
        return Unanswered.BEYOND_END
    return Unanswered.TOO_OLD if history else Unanswered.NO_OFFSET_SYNC


# Limits of the records that a group reads twice at an answer; the least of them is its error bound.
#
# An error bound holds as far as the syncs were read. It does not include what MM2 sends again after its next crash. A
# restart stays unseen if MM2 joined its sync with a later one, and as many offsets are missing as were sent twice.


Around = tuple[Pair | None, Pair | None]
"""The last pair at or before a group's offset, and the next one."""


def bounds_at_the_end(upstream: int, source: LogRange | None, tip: int, history: History | None) -> list[int]:
    """For an answer at the target's end, `tip`: what the source has before `upstream` and the target still lacks."""
    bounds = [max(0, upstream - source.start)] if source else []
    if history:
        latest = history.latest
        arrived = latest.upstream + max(0, tip - latest.downstream)
        bounds.append(max(0, upstream - arrived))
    return bounds


def bounds_by_syncs(upstream: int, offset: int, matched: int | None, history: History, around: Around) -> list[int]:
    """Limits of the records before `upstream` that the target has, or will have, at or behind `offset`.

    `matched`: where the group's record was found, at or before `offset`.
    """
    below, following = around
    bounds = []
    if following:
        later = max(offset, following.downstream)
        bounds.append(later - offset + history.resent_after(later))
    if matched is not None:
        # An answer behind the match may lie among records that a restart after the match sent again.
        bounds.append(history.resent_after(matched))
    elif below and offset >= below.downstream + (upstream > below.upstream):
        bounds.append(max(0, upstream - below.upstream - 1) + history.resent_after(below.downstream))
    return bounds


def bounds_back(
    downstream: int, offset: int, exact: bool, source: LogRange | None, history: History | None, around: Around
) -> list[int]:
    """Limits of the records at or behind `offset` on the source that a group has read at `downstream` on the target.

    `exact`: `offset` is that of the record at `downstream`.
    """
    below, following = around
    bounds = [max(0, source.end - offset)] if source else []
    if history and below:
        # Before a restart the target got records far ahead of the pair. The next pair shows where that was.
        newest = following.downstream if following else downstream
        read = 0 if exact else max(0, downstream - below.downstream - 1)
        bounds.append(read + history.resent_before(newest))
    return bounds


class SearchWindow(NamedTuple):
    """Where to search the record at a group's offset in the other log, between the pairs around it: from `low` on,
    before `high`.

    `until`: originals of records before `high` there lie before this offset here; None: unknown.
    """

    low: int
    high: int | None
    until: int | None


def search_window(upstream: int, ends: LogEnds, history: History | None) -> SearchWindow | None:
    """Where to search on the target. None: the pairs already say all that a search could find."""
    history = without_truncated(history, ends.target)
    limit = limit_of_copies(upstream, history, ends)
    below, following = history.around(upstream, limit) if history else (None, None)
    if below is None or below.upstream == upstream:
        return None
    if _tip_applies(upstream, ends, history):
        return None
    high = min((following or BEYOND_ALL).downstream, limit)
    end = ends.source.end if ends.source and not _is_old_end(ends.source.end, ends, history) else None
    until = following.upstream if following else end
    return SearchWindow(below.downstream, None if high == MAX_INT64 else high, until)


def search_window_back(downstream: int, history: History | None) -> SearchWindow | None:
    """Where on the source."""
    below, following = history.around_downstream(downstream) if history else (None, None)
    if below is None or below.downstream == downstream:
        return None
    if following is None or following.upstream <= below.upstream:
        return SearchWindow(below.upstream, None, None)
    return SearchWindow(below.upstream, following.upstream, following.downstream)
