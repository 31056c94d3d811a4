"""How far the running job has compared a partition: the tail first, then its history, and what differs. Pure.

Two tracks go on side by side, each from a place that both sides have in common. The tail begins at the offset-sync that
is newest when the job starts. The history lies before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sinks.engine.verify_status import STALLED
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Stretch, joined_stretches, without
from sinks.kinds.offsets.sync_history import Pair
from sinks.verify.partition_verdicts import Difference, FoundDifference, PartitionReport, PartitionVerdict
from sinks.verify.windows import Window
from streaming.mm2.records import TopicPartition

MOST_SPOTS = 1000
"""Most differences of a partition that are kept with their place; one report names as many."""


@dataclass
class KnownDifferences:
    """What differs in one partition. `spots`: by place. `dropped`: more records than fit, one spot for each kind.

    A dropped spot lies at the last place of its records. It counts until both sides have deleted that place, or
    everything is compared once more.
    """

    spots: list[FoundDifference] = field(default_factory=list)
    dropped: dict[Difference, FoundDifference] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.spots or self.dropped)

    @property
    def counts(self) -> Mapping[Difference, int]:
        counts = Counter[Difference]()
        for one in (*self.spots, *self.dropped.values()):
            counts[one.difference] += one.count
        return counts

    @property
    def dropped_count(self) -> int:
        """How many records are counted without their place."""
        return sum(one.count for one in self.dropped.values())

    def forget_deleted(self, log: LogRange, copy: LogRange) -> None:
        self.spots = [one for one in self.spots if not _is_deleted(one, log, copy)]
        self.dropped = {kind: one for kind, one in self.dropped.items() if not _is_deleted(one, log, copy)}

    def clear(self) -> None:
        """Forget all differences: the topic was recreated, or lost records."""
        self.spots, self.dropped = [], {}

    def restart(self) -> None:
        """Forget records without a place, because everything is compared once more and they would count twice."""
        self.dropped = {}

    def take(self, windows: Sequence[Window], report: PartitionReport) -> None:
        """Replaces what was known of these windows by what was found."""
        first, last = windows[0], windows[-1]
        self.spots = [one for one in self.spots if not _is_within(one, first, last)]
        found = [one for one in report.findings if one.difference is not Difference.UNVERIFIABLE]
        named = Counter[Difference]()
        for one in found:
            named[one.difference] += one.count
        for kind, count in report.differences.items():
            if kind is not Difference.UNVERIFIABLE and count > named[kind]:
                found.append(FoundDifference(kind, first.upstream, None, count - named[kind]))
        self.spots += found
        for one in self.spots[MOST_SPOTS:]:
            self._drop(one)
        del self.spots[MOST_SPOTS:]

    def _drop(self, spot: FoundDifference) -> None:
        known = self.dropped.get(spot.difference, replace(spot, count=0))
        self.dropped[spot.difference] = FoundDifference(
            spot.difference,
            _later(known.upstream, spot.upstream),
            _later(known.downstream, spot.downstream),
            known.count + spot.count,
        )


def _is_deleted(spot: FoundDifference, log: LogRange, copy: LogRange) -> bool:
    """Whether both sides have deleted its first record."""
    return (spot.upstream is None or spot.upstream < log.start) and (
        spot.downstream is None or spot.downstream < copy.start
    )


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)


def _is_within(spot: FoundDifference, first: Window, last: Window) -> bool:
    of_target = spot.difference in (Difference.DUPLICATE, Difference.EXTRA) and spot.downstream is not None
    if spot.upstream is not None and not of_target:
        return first.upstream <= spot.upstream < last.upstream_end
    return spot.downstream is not None and first.downstream <= spot.downstream < last.downstream_end


HISTORY_INTERVAL = 24 * 3600.0
"""Seconds after which a compared history is compared once more."""

NOT_COMPARED_YET = "UNKNOWN"
"""The verdict of a partition that was not compared yet."""

MOST_LEFT_OUT = 50
"""Most stretches of a partition that are remembered as left out. More are joined at the end."""

LEFT_OUT = (
    "{} offsets were not compared, since the offset-syncs around them are too far apart for lockstep.verify.rate, or "
    "too much differs there to fetch at once: `lockstep verify` compares them"
)


@dataclass(slots=True)
class Track:
    """How far one track has compared. `at`: everything before was compared; None before the first piece. `whole`: a
    slice from there was not equal."""

    at: Pair | None = None
    whole: bool = False


@dataclass
class PartitionProgress:
    """What was compared of one partition. Times are monotonic seconds; `seen_at` is in seconds since the epoch.

    `through`: source offset up to which the tail was compared, equal or not. `through_at`: when the source had nothing
    else; None until then. `compared_to`: the ends of both logs then. `waits_at`: the copy's end while records wait
    behind it. `history_end`: where the tail began. `left_out`: stretches that were too large or could not be compared.
    `expired`: one side had deleted something. `has_compared`: anything was compared at all.
    """

    where: TopicPartition
    remote: TopicPartition
    log: LogRange
    copy: LogRange
    stall: Stall
    tail: Track = field(default_factory=Track)
    history: Track = field(default_factory=Track)
    history_end: int | None = None
    history_done_at: float | None = None
    through: int | None = None
    through_at: float | None = None
    compared_at: float = 0.0
    compared_to: tuple[int, int] | None = None
    waits_at: int | None = None
    left_out: list[Stretch] = field(default_factory=list)
    expired: bool = False
    has_compared: bool = False
    known: KnownDifferences = field(default_factory=KnownDifferences)

    def see(self, log: LogRange, copy: LogRange, now: float, seen_at: float) -> bool:
        """Takes in both logs. Returns True if the target lost its tail: then nothing that was compared holds."""
        lost = copy.end < max(self.copy.end, self.tail.at.downstream if self.tail.at else 0)
        self.log, self.copy = log, copy
        self.stall.see(log.end, copy.end, now)
        self.known.forget_deleted(log, copy)
        self.take_verified([Stretch(0, log.start)])
        if lost:
            self.restart()
        elif self.through is not None and self.through >= log.end:
            self.through_at = seen_at
        return lost

    def restart(self) -> None:
        """Compare everything once more: the topic was recreated, or lost records."""
        self.tail, self.history, self.compared_to, self.waits_at = Track(), Track(), None, None
        self.history_end = self.history_done_at = self.through = self.through_at = None
        self.left_out, self.expired, self.has_compared = [], False, False
        self.known.clear()

    @property
    def has_uncompared(self) -> bool:
        """Whether either side has something new to compare. Records that wait for MM2 do not count."""
        if self.waits_at is not None:
            return self.copy.end != self.waits_at
        return self.compared_to != (self.log.end, self.copy.end)

    def begin(self, newest: Pair | None) -> None:
        """Begin the tail at `newest`, the newest offset-sync; without one, at the start of the log."""
        if self.history_end is None:
            self.history_end = newest.upstream if newest is not None else self.log.start

    def start_of(self, track: Track) -> int:
        """The source offset from which a track has something to compare."""
        first = (self.history_end or 0) if track is self.tail else 0
        return max(track.at.upstream if track.at else first, self.log.start)

    def track(self, of_tail: bool) -> Track:
        return self.tail if of_tail else self.history

    def next_piece(self, windows: Sequence[Window], most: int, largest: int, *, of_tail: bool) -> Piece | None:
        """Returns the next piece of a track, from its windows. None: there is nothing to compare, or too much."""
        track = self.track(of_tail)
        if not of_tail:
            end = self.history_end or 0
            if self.start_of(track) >= end:
                return None
            windows = [one for one in windows if one.upstream < end and not one.ends_open]
        for number, window in enumerate(windows):
            piece = first_piece(windows[number:], most, largest, whole=track.whole)
            if piece is not None:
                return piece
            self.leave_out(window.upstream, window.upstream_end)
            if window.ends_open:
                return None
            # A window that is too large is reported as left out. What lies behind it is compared all the same.
            track.at, track.whole = Pair(window.upstream_end, window.downstream_end), False
        return None

    def next_compacted(self, windows: Sequence[Window], largest: int, *, of_tail: bool) -> Piece | None:
        """Returns the next piece of a compacted topic: all windows in one, because log cleaners delete older
        records."""
        if not windows:
            return None
        piece = Piece(tuple(windows))
        if piece.offsets <= largest:
            return piece
        self.leave_out(windows[0].upstream, windows[-1].upstream_end)
        if not of_tail and self.tail.at is not None:
            self.history.at = self.tail.at
        return None

    def take(self, piece: Piece, report: PartitionReport, *, of_tail: bool, now: float, seen_at: float) -> bool:
        """Takes in a report. Returns False if a slice was not equal, so that its whole window must be read."""
        track = self.track(of_tail)
        self.compared_at = now
        equal = report.verdict is PartitionVerdict.VERIFIED
        if piece.is_slice and not equal:
            track.whole = True
            return False
        self.known.take(piece.windows, report)
        self._note_compared(Stretch(piece.windows[0].upstream, piece.last.upstream_end), report)
        track.at, track.whole = self._pair_behind(track, piece, report, equal), False
        if of_tail:
            self.compared_to = (piece.last.upstream_end, piece.last.downstream_end)
            self.waits_at = self.copy.end if piece.waits and report.pending else None
            self.through = report.through
            self.stall.read(piece.last.upstream_end, report.pending)
            if self.through is not None and self.through >= self.log.end:
                self.through_at = seen_at
        return True

    def _note_compared(self, stretch: Stretch, report: PartitionReport) -> None:
        self.has_compared = self.has_compared or bool(report.records)
        if report.verdict is not PartitionVerdict.UNVERIFIABLE:
            self.take_verified([stretch])
        elif report.records:
            self.leave_out(*stretch)
        else:
            self.expired = True

    def leave_out(self, start: int, end: int) -> None:
        """Notes source offsets that could not be compared, say because they are too many at once."""
        found = joined_stretches([*self.left_out, Stretch(start, end)])
        while len(found) > MOST_LEFT_OUT:
            found[-2:] = [Stretch(found[-2].start, found[-1].end)]
        self.left_out = found

    def take_verified(self, stretches: Iterable[Stretch]) -> None:
        """Notes stretches that were compared after all, here or by `lockstep verify`, or that were deleted."""
        if self.left_out:
            for one in stretches:
                self.left_out = without(self.left_out, one)

    @staticmethod
    def _pair_behind(track: Track, piece: Piece, report: PartitionReport, equal: bool) -> Pair | None:
        """Returns the offsets at which both sides go on: behind the piece, or at the start of its open end if that
        differs."""
        last = piece.last
        through = last.upstream_end if report.through is None else report.through
        if not last.ends_open:
            return Pair(last.upstream_end, last.downstream_end)
        if last.begins_open:
            # Only a record that both have shows where they go on together.
            return Pair(through, last.downstream_end) if equal and report.records else track.at
        return Pair(through, last.downstream_end) if equal else Pair(last.upstream, last.downstream)

    def history_is_due(self, now: float) -> bool:
        """Whether something before the tail was not compared, or is due again."""
        if self.history_done_at is not None and now - self.history_done_at >= HISTORY_INTERVAL:
            self.history, self.history_done_at = Track(), None
            self.known.restart()
            self.history_end = self.tail.at.upstream if self.tail.at else self.history_end
        if self.history_done_at is None and self.history_end is not None and not self._history_left:
            self.history_done_at = now
        return self.history_end is not None and self.history_done_at is None

    @property
    def history_offsets(self) -> int:
        """Offsets of the source before the tail."""
        return max(0, (self.history_end or 0) - self.log.start)

    @property
    def _history_left(self) -> int:
        return max(0, (self.history_end or 0) - self.start_of(self.history))

    @property
    def history_compared(self) -> int:
        """Offsets of the source before the tail that were compared."""
        return self.history_offsets if self.history_done_at is not None else self.history_offsets - self._history_left

    def verdict(self, now: float) -> str:
        """The worst verdict that applies."""
        if self.stall.is_stalled(now):
            return STALLED
        if self.known:
            return PartitionVerdict.DIFFERENT.value
        has_offsets = self.log.end > self.log.start or self.copy.end > self.copy.start
        if self.left_out or (self.expired and not self.has_compared and has_offsets):
            return PartitionVerdict.UNVERIFIABLE.value
        return NOT_COMPARED_YET if self.through is None else PartitionVerdict.VERIFIED.value


# What the running job compares next of a partition: as many windows as it may read, or a slice of one.


@dataclass(frozen=True, slots=True)
class Piece:
    """Successive windows that are compared together.

    `is_slice`: part of one window, on the guess that each record lies at the same distance from the window's edge.
    Equal sides prove the guess; different sides prove nothing.
    """

    windows: tuple[Window, ...]
    is_slice: bool = False

    @property
    def offsets(self) -> int:
        """Offsets on the side that has more of them."""
        first, last = self.windows[0], self.windows[-1]
        return max(last.upstream_end - first.upstream, last.downstream_end - first.downstream)

    @property
    def waits(self) -> bool:
        """Whether the target has nothing of it."""
        return self.last.downstream_end == self.windows[0].downstream

    @property
    def last(self) -> Window:
        return self.windows[-1]


def first_piece(windows: Sequence[Window], most: int, largest: int, *, whole: bool) -> Piece | None:
    """Returns the first windows with at most `most` offsets together, and at least one of up to `largest`.

    A longer window is sliced to `most` offsets, unless `whole` says that a slice was not equal. None: the first window
    is more than may be read at once, and cannot be sliced.
    """
    if (waiting := _waiting(windows[0], most)) is not None:
        return Piece((waiting,))
    chosen = [windows[0]]
    for window in windows[1:]:
        if Piece((*chosen, window)).offsets > most:
            break
        chosen.append(window)
    piece = Piece(tuple(chosen))
    if piece.offsets <= most:
        return piece
    if not whole and (cut := _slice(windows[0], most)) is not None:
        return Piece((cut,), is_slice=True)
    return piece if piece.offsets <= largest else None


def _waiting(window: Window, most: int) -> Window | None:
    """Returns the first offsets of an end that the target lacks: they show whether a record waits there at all."""
    if not window.ends_open or window.begins_open or window.downstream_end > window.downstream:
        return None
    return replace(window, upstream_end=min(window.upstream_end, window.upstream + max(1, most)))


def _slice(window: Window, most: int) -> Window | None:
    """Returns the first `most` offsets of a window whose records may lie at one distance; None if they cannot."""
    if window.resent or (window.begins_open and window.ends_open):
        return None
    if not (window.ends_open or window.begins_open or window.is_even):
        return None
    core = window.even_core()
    length = min(most, core.upstream_end - core.upstream)
    if not length:
        return None
    return Window(core.upstream, core.upstream + length, core.downstream, core.downstream + length)


STALLS_AFTER = 30.0
"""Seconds without a new record on the target while the source has records that it lacks."""


@dataclass(slots=True)
class Stall:
    """Whether a target partition stands still while the source's moves: MM2 no longer copies it. Monotonic seconds.

    Ends also move without records, when transactions end. So what was read wins over what ends alone say.
    """

    _source_end: int
    _copy_end: int
    _grew_at: float | None = None

    def see(self, source_end: int, copy_end: int, now: float) -> None:
        if copy_end != self._copy_end:
            self._source_end, self._copy_end, self._grew_at = source_end, copy_end, None
        elif source_end > self._source_end and self._grew_at is None:
            self._grew_at = now

    def read(self, source_end: int, pending: int) -> None:
        """All records up to this end were read; `pending` of them are only on the source."""
        if not pending and source_end >= self._source_end:
            self._source_end, self._grew_at = source_end, None

    def is_stalled(self, now: float) -> bool:
        return self._grew_at is not None and now - self._grew_at >= STALLS_AFTER
