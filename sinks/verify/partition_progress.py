"""How far the running job has compared a partition: the tail first, then its history, and what differs. Pure.

Two tracks go on side by side, each from a place that both sides have in common. The tail begins at the newest
offset-sync there is when the job begins; the history is what lies before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sinks.engine.verify_status import STALLED
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.history import Pair
from sinks.kinds.offsets.verified_stretches import Stretch, joined_stretches, without
from sinks.verify.known_differences import KnownDifferences
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict
from sinks.verify.pieces import Piece, first_piece
from sinks.verify.stalls import Stall
from sinks.verify.windows import Window
from streaming.mm2.records import TopicPartition

Cut = Callable[[int, Pair | None], Sequence[Window]]
"""The windows of a partition from an offset of the source on; `Pair`: a place that is known besides the syncs."""

HISTORY_INTERVAL = 24 * 3600.0
"""Seconds after which a history that was compared is compared once more."""

NOT_COMPARED_YET = "UNKNOWN"
"""The verdict of a partition that was not compared yet."""

MOST_LEFT_OUT = 50
"""Stretches of a partition that are remembered as left out; of more the last ones count as one."""

LEFT_OUT = (
    "{} offsets were not compared, since the offset-syncs around them are too far apart for lockstep.verify.rate, or "
    "more differs there than is brought at once: `lockstep verify` compares them"
)


@dataclass(slots=True)
class Track:
    """`at`: up to where all was compared; None before the first piece. `whole`: a slice from there was not equal."""

    at: Pair | None = None
    whole: bool = False


@dataclass
class PartitionProgress:
    """Of one partition. Times in seconds, of any clock that only goes on, and `seen_at` in seconds since the epoch.

    `through`: the source's offset up to which its tail was compared, equal or not. `through_at`: when the source had
    nothing else; None until then. `compared_to`: the ends of both logs then. `waits_at`: the end of the copy's while
    records wait behind it. `history_end`: where the tail began. `left_out`: what was too large to be compared, or
    could not be. `expired`: something could not, since one side had deleted it. `has_compared`: anything at all.
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
        """Both logs as they are now. True where the target lost its tail: then nothing that was compared holds."""
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
        """Another topic, or one that lost records: everything is to be compared once more."""
        self.tail, self.history, self.compared_to, self.waits_at = Track(), Track(), None, None
        self.history_end = self.history_done_at = self.through = self.through_at = None
        self.left_out, self.expired, self.has_compared = [], False, False
        self.known.clear()

    @property
    def has_uncompared(self) -> bool:
        """Whether either side has what was not compared; what waits to be copied is none."""
        if self.waits_at is not None:
            return self.copy.end != self.waits_at
        return self.compared_to != (self.log.end, self.copy.end)

    def begin(self, newest: Pair | None) -> None:
        """`newest`: the newest offset-sync, where the tail begins; without one it begins at the start of the log."""
        if self.history_end is None:
            self.history_end = newest.upstream if newest is not None else self.log.start

    def start_of(self, track: Track) -> int:
        """The offset of the source from which on a track has something to compare."""
        first = (self.history_end or 0) if track is self.tail else 0
        return max(track.at.upstream if track.at else first, self.log.start)

    def next_of_tail(self, cut: Cut, newest: Pair | None, most: int, largest: int) -> Piece | None:
        """None: there is nothing to compare, or too much."""
        self.begin(newest)
        return self._next(self.tail, cut(self.start_of(self.tail), self.tail.at), most, largest)

    def next_of_history(self, cut: Cut, most: int, largest: int) -> Piece | None:
        """None: all of it was compared."""
        end, start = self.history_end or 0, self.start_of(self.history)
        if start >= end:
            return None
        windows = [one for one in cut(start, self.history.at) if one.upstream < end and not one.ends_open]
        return self._next(self.history, windows, most, largest)

    def _next(self, track: Track, windows: Sequence[Window], most: int, largest: int) -> Piece | None:
        for number, window in enumerate(windows):
            piece = first_piece(windows[number:], most, largest, whole=track.whole)
            if piece is None or not piece.too_large:
                return piece
            self.leave_out(window.upstream, window.upstream_end)
            if window.ends_open:
                return None
            # What is too large is left out, and said; what lies behind it is compared all the same.
            track.at, track.whole = Pair(window.upstream_end, window.downstream_end), False
        return None

    def take(self, piece: Piece, report: PartitionReport, *, of_tail: bool, now: float, seen_at: float) -> bool:
        """What was found in a piece. False where a slice was not equal, and its window is to be read whole."""
        track = self.tail if of_tail else self.history
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
        """These offsets of the source could not be compared, say since they are too many at once."""
        found = joined_stretches([*self.left_out, Stretch(start, end)])
        while len(found) > MOST_LEFT_OUT:
            found[-2:] = [Stretch(found[-2].start, found[-1].end)]
        self.left_out = found

    def take_verified(self, stretches: Iterable[Stretch]) -> None:
        """What was compared after all, here or by `lockstep verify`, or is not there any more."""
        if self.left_out:
            for one in stretches:
                self.left_out = without(self.left_out, one)

    @staticmethod
    def _pair_behind(track: Track, piece: Piece, report: PartitionReport, equal: bool) -> Pair | None:
        """Where both sides go on together: behind the piece, or at the beginning of its open end where that differs."""
        last = piece.last
        through = last.upstream_end if report.through is None else report.through
        if not last.ends_open:
            return Pair(last.upstream_end, last.downstream_end)
        if last.begins_open:
            # Without a record that both have nothing tells where they go on together.
            return Pair(through, last.downstream_end) if equal and report.records else track.at
        return Pair(through, last.downstream_end) if equal else Pair(last.upstream, last.downstream)

    def history_is_due(self, now: float) -> bool:
        """Whether something before the tail was not compared, or was so long ago that it is compared again."""
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
        """Of these, those that were compared."""
        return self.history_offsets if self.history_done_at is not None else self.history_offsets - self._history_left

    @property
    def _has_offsets(self) -> bool:
        return self.log.end > self.log.start or self.copy.end > self.copy.start

    def verdict(self, now: float) -> str:
        """The worst that is to be said of it."""
        if self.stall.is_stalled(now):
            return STALLED
        if self.known:
            return PartitionVerdict.DIFFERENT.value
        if self.left_out or (self.expired and not self.has_compared and self._has_offsets):
            return PartitionVerdict.UNVERIFIABLE.value
        return NOT_COMPARED_YET if self.through is None else PartitionVerdict.VERIFIED.value
