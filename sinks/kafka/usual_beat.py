"""Kafka's default rhythm of a metadata log, found in the midst of other records. Pure: times come in, in seconds.

`metadata.max.idle.interval.ms` is 500 unless somebody changes it, which few do. So these beats are looked for before
any other rhythm is guessed: whatever else the log tells of, it grows half a second after half a second.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

PERIOD = 0.5
"""Seconds from one to the next."""

BEATS, MAY_LACK = 9, 1
"""Beats in a row that tell of it, and how many of them may lack or come later than `LATE`."""

LATE = 0.5
"""How late a beat may come, as a share of one."""

BETWEEN = 4
"""In so many gaps between two beats the log may grow at most: what grows in all of them may have another rhythm."""

SILENT = 0.4
"""Share of the samples that must find the log as it was: what always moves would fit any rhythm."""


class UsualBeat:
    """Of one log while its rhythm is not known."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, bool]] = []

    def sample(self, at: float, grew: bool) -> float | None:
        """When the newest beat was due; None while this rhythm is not to be seen. `grew`: since the sample before."""
        self._samples = [(when, had) for when, had in self._samples if at - when < PERIOD * (BEATS + 1)]
        self._samples.append((at, grew))
        silent = sum(not had for _, had in self._samples)
        if not grew or silent < SILENT * len(self._samples) or at - self._samples[0][0] < PERIOD * BEATS:
            return None
        return _newest_beat([when for when, had in self._samples if had])


def _newest_beat(growths: Sequence[float]) -> float | None:
    """The growth of the last half second that fits best as the newest beat: counted back from it, the others come least
    late. None where none fits."""
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
    """Seconds from then to the first growth, give or take what is lost in a sum."""
    return min((when - due for when in growths if when >= due - 1e-6), default=float("inf"))
