"""Whether a cluster's metadata changed at all, from the length of its metadata log. Pure: times come in, in seconds.

A KRaft controller appends a NoOpRecord every `metadata.max.idle.interval.ms` (500 ms) and one record for each change
of a topic, a config, an ACL. So while nothing changes the log grows by a steady beat, and anything more is a
metadata-change signal.
It is a hint and no more: a full comparison comes all the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import repeat

BEATS_TO_LEARN, BEATS_THAT_AGREE = 8, 6
"""Successive beats, and how many of them must agree before the rhythm counts as known. On a busy machine some come
late."""

SHORTEST = 0.35
"""Shortest rhythm in seconds that is learnt. A faster beat cannot be told from Kafka's default with changes between the
beats."""

SILENCE = 15.0
"""Seconds without any growth after which the log counts as one without a beat (`metadata.max.idle.interval.ms=0`)."""

NOT_USUAL = 60.0
"""Seconds for which Kafka's default is not assumed again amid other records, after it proved to be wrong."""

UNEVEN = 0.3
"""How far the time between two beats may be from the median, as a share of it, while the rhythm is learnt."""

MISSED = 2
"""Most beats that may be overdue. If more are, the log stood still for a while, or has another rhythm."""

STANDSTILLS, FORGIVEN = 5.0, 0.1
"""Times that the log may stand still before its rhythm is learnt anew, and what each beat in time takes off that
count."""

EARLY = 0.06
"""How far an early beat may move the anchor, as a share of the rhythm. It is little, because a change just before a
beat looks like an early beat."""

NEWEST = 12
"""Newest beats; the earliest of them sets the anchor. A busy machine makes beats late, and none early. If the
anchor followed a late beat, the next one would look like a signal."""

SHIFTED = 0.25
"""Share of the rhythm. If a beat is certainly later than that, a change may have passed for a beat. So one more signal
follows, once the rhythm has settled."""

AMID_CHANGES = 6
"""Beats after a signal for which the anchor follows no early beat: it may be one more change."""

NOISY = 20
"""Newest samples with growth. If each of them is a signal, the log always moves and hints at nothing."""


class MetadataBeat:
    """Learns the rhythm in which one metadata log grows without changes, from samples of its length.

    Due beats are counted from the anchor, the time of an earlier beat.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._grown_at: float | None = None
        self._intervals: list[float] = []
        self._usual, self._usual_from, self._took_usual = UsualBeat(), float("-inf"), False
        self._period: float | None = None
        self._anchor = 0.0
        self._base = 0
        self._recent: list[bool] = []
        self._grew = False
        self._standstills = 0.0
        self._late: list[float] = []
        self._sampled_at = 0.0
        self._unsettled = 0
        self._signalled_at = float("-inf")

    @property
    def is_known(self) -> bool:
        """Whether the rhythm is known. Then no signal means no change."""
        return self._period is not None

    def sample(self, at: float, length: int) -> int:
        """Take the length of the log at a time (seconds). Returns by how many records it grew beyond its beat.

        Samples come about every 0.1 s while `is_known` is False. Later they come at uneven intervals of up to half a
        second.
        """
        before, self._last = self._last, length
        if before is None or length < before:
            self._forget(at)
            return 0
        if self._period is None:
            self._learn(at, before, length)
            return 0
        extra = self._compare(at, before, length)
        self._sampled_at = at
        if length > before:
            self._recent = [*self._recent[-(NOISY - 1) :], extra > 0]
            if len(self._recent) == NOISY and all(self._recent):
                if self._took_usual:
                    self._usual_from = at + NOT_USUAL
                self._forget(at)
        return extra

    def _forget(self, at: float) -> None:
        self._period, self._grown_at, self._intervals, self._recent = None, at, [], []
        self._usual = UsualBeat()

    def _learn(self, at: float, before: int, length: int) -> None:
        beat = self._usual.sample(at, length > before)
        if length == before:
            # A number that never moved may be no log's length: what a broker without such a log answers.
            if self._grew and self._grown_at is not None and at - self._grown_at > SILENCE:
                self._know(float("inf"), at, length)
            return
        if self._grown_at is not None and length == before + 1:
            self._intervals = [*self._intervals[-(BEATS_TO_LEARN - 1) :], at - self._grown_at]
        else:
            self._intervals = []
        self._grown_at, self._grew = at, True
        agreeing = self._agreeing()
        period = statistics.fmean(agreeing) if agreeing else PERIOD
        if period < SHORTEST:
            return
        if beat is not None and at >= self._usual_from:
            self._know(PERIOD, beat, length)
            self._took_usual = True
        elif agreeing:
            self._know(period, at, length)

    def _agreeing(self) -> list[float]:
        """Returns the intervals that show a rhythm; none while too few agree."""
        if len(self._intervals) < BEATS_TO_LEARN:
            return []
        middle = statistics.median(self._intervals)
        agreeing = [interval for interval in self._intervals if abs(interval - middle) <= UNEVEN * middle]
        return agreeing if len(agreeing) >= BEATS_THAT_AGREE else []

    def _know(self, period: float, at: float, length: int) -> None:
        self._period, self._anchor, self._base, self._recent = period, at, length, []
        self._standstills, self._late, self._unsettled, self._took_usual = 0.0, [], 0, False

    def _compare(self, at: float, before: int, length: int) -> int:
        """Returns by how many records the log grew beyond one per due beat. They are a signal, and `length` the new
        base."""
        period = self._period or float("inf")
        due = 0 if period == float("inf") else int((at - self._anchor + UNEVEN * period) // period)
        beats = length - self._base
        if beats > due:
            self._signalled_at = at
            self._base += beats - due
            return beats - due
        if due - beats > MISSED:
            self._standstills, self._unsettled = self._standstills + 1, NEWEST
            self._anchor += (due - beats) * period
            if self._standstills > STANDSTILLS:
                self._forget(at)
        elif length > before and period != float("inf"):
            self._follow(at, beats, period)
        return self._settle(length - before)

    def _settle(self, beats: int) -> int:
        """Count beats after a late one. Returns 1, a signal, once so many came that the rhythm has settled; else 0."""
        if self._unsettled and beats:
            self._unsettled = max(0, self._unsettled - beats)
            return int(not self._unsettled)
        return 0

    def _follow(self, at: float, beats: int, period: float) -> None:
        """Move the anchor to the newest beat, as counted from the earliest of the last ones.

        `beats`: how many came since the anchor. `period`: seconds between two.
        """
        self._anchor += beats * period
        self._base += beats
        self._standstills = max(0.0, self._standstills - FORGIVEN)
        follows = EARLY * period if at - self._signalled_at > AMID_CHANGES * period else 0.0
        if self._sampled_at - self._anchor > SHIFTED * period and len(self._late) >= NEWEST and not self._unsettled:
            self._unsettled = NEWEST
        if beats > NEWEST:
            # After a sleep of the process, say: what is known is too far away to be compared with.
            self._late.clear()
        else:
            # Of beats that one sample shows together only the last one has a time.
            self._late += repeat(float("inf"), beats - 1)
        self._late.append(max(at - self._anchor, -follows))
        if len(self._late) >= 2 * NEWEST:
            self._tune(period)
        self._move()

    def _tune(self, period: float) -> None:
        """Correct the rhythm by the delay between the earliest beats of the older and of the newer half."""
        older, newer = self._late[-2 * NEWEST : -NEWEST], self._late[-NEWEST:]
        drift = (min(newer) - min(older)) / NEWEST
        self._period = period + drift
        self._late = [late - drift * (number - NEWEST) for number, late in enumerate(newer, 1)]

    def _move(self) -> None:
        """Move the anchor to where the earliest of the newest beats would be; to a later time only if there are NEWEST
        beats."""
        by = min(self._late[-NEWEST:])
        if len(self._late) < NEWEST:
            by = min(by, 0.0)
        self._anchor += by
        self._late = [late - by for late in self._late]


# Kafka's default rhythm of a metadata log, found in the midst of other records. Pure: times come in, in seconds.
#
# `metadata.max.idle.interval.ms` is 500 on almost every cluster. So these beats are looked for before
# any other rhythm is guessed: whatever else the log tells of, it grows half a second after half a second.


PERIOD = 0.5
"""Seconds from one beat to the next."""

BEATS, MAY_LACK = 9, 1
"""Beats in a row that show the rhythm, and how many of them may be missing or later than `LATE`."""

LATE = 0.5
"""How late a beat may come, as a share of `PERIOD`."""

BETWEEN = 4
"""Most gaps between the beats in which the log may grow. If it grows in all of them, it may have another rhythm."""

SILENT = 0.4
"""Least share of samples without growth. A log that always moves would fit any rhythm."""


class UsualBeat:
    """Looks for Kafka's default rhythm in one log while its rhythm is not known."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, bool]] = []

    def sample(self, at: float, grew: bool) -> float | None:
        """Returns when the newest beat was due; None while this rhythm does not show. `grew`: whether the log grew
        since the last sample."""
        self._samples = [(when, had) for when, had in self._samples if at - when < PERIOD * (BEATS + 1)]
        self._samples.append((at, grew))
        silent = sum(not had for _, had in self._samples)
        if not grew or silent < SILENT * len(self._samples) or at - self._samples[0][0] < PERIOD * BEATS:
            return None
        return _newest_beat([when for when, had in self._samples if had])


def _newest_beat(growths: Sequence[float]) -> float | None:
    """Returns which growth of the last PERIOD fits best as the newest beat; None if none fits.

    The beats counted back from it come least late.
    """
    found = []
    for beat in (when for when in growths if growths[-1] - when < PERIOD):
        late = [_late(growths, beat - number * PERIOD) for number in range(BEATS)]
        between = [_late(growths, beat - (number + LATE) * PERIOD) for number in range(BEATS)]
        if _hits(late) >= BEATS - MAY_LACK and _hits(between) <= BETWEEN:
            found.append((statistics.median(late), beat))
    return min(found)[1] if found else None


def _hits(late: Sequence[float]) -> int:
    return sum(one <= LATE * PERIOD for one in late)


def _late(growths: Sequence[float], due: float) -> float:
    """Returns the seconds from `due` to the first growth, with a margin for rounding."""
    return min((when - due for when in growths if when >= due - 1e-6), default=float("inf"))
