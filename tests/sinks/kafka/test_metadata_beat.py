"""The beat of a metadata log: what is a signal, what is not, and when silence means nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.jvm.metadata_signal import (
    BACKWARDS_FOR,
    BUSY_FOR,
    FAST,
    SLOW_LEAST,
    SLOW_MORE,
    HighestLength,
    SamplePace,
)
from sinks.kafka.metadata_beat import PERIOD, SILENCE, MetadataBeat

EVERY = 0.1
SLOWEST = SLOW_LEAST + SLOW_MORE + 0.02
LEARNT = 10.0
"""Seconds after which a steady beat is known."""


def sampled(records: list[float], until: float, random: Random) -> tuple[MetadataBeat, list[float]]:
    """Samples a log whose records come at these times, at the pace of the job; returns when there were signals."""
    beat, pace, now, signals = MetadataBeat(), SamplePace(), 0.0, []
    ordered = sorted(records)
    while now < until:
        if beat.sample(now, 1000 + bisect_right(ordered, now)):
            signals.append(now)
            pace.note_signalled(now)
        now += pace.next(now, beat.is_known) + random.uniform(0, 0.02)
    return beat, signals


def beats(until: float, period: float, phase: float, random: Random) -> list[float]:
    """No-op records with a few milliseconds of jitter."""
    return [phase + n * period + random.uniform(-0.004, 0.004) for n in range(int(until / period))]


PERIODS = st.floats(0.5, 1.2)
SEEDS = st.integers(0, 10_000)
PHASES = st.floats(0.01, 0.4)


def drawn(runs: int) -> Iterator[tuple[float, float, Random]]:
    """Periods, phases and a source of jitter: what is a matter of likelihood is counted over many runs."""
    for seed in range(runs):
        random = Random(seed)
        yield random.uniform(0.5, 1.2), random.uniform(0.01, 0.4), random


def test_a_steady_beat_is_hardly_ever_a_signal() -> None:
    counts = []
    for period, phase, random in drawn(40):
        beat, signals = sampled(beats(60, period, phase, random), 60, random)
        assert beat.is_known
        counts.append(len(signals))
    assert sum(counts) <= 4


@given(PERIODS, PHASES, SEEDS)
@settings(max_examples=25, deadline=None)
def test_answers_that_come_late_now_and_then_are_hardly_ever_a_signal(period: float, phase: float, seed: int) -> None:
    """The client waited for a processor, so that the broker's word is a while old when it is heard."""
    random = Random(seed)
    beat, pace, now, records = MetadataBeat(), SamplePace(), 0.0, beats(60, period, phase, random)
    signals = 0
    while now < 60:
        asked, late = now, random.uniform(0.1, 0.35) if random.random() < 0.15 and beat.is_known else 0.005
        now += late
        signals += beat.sample(now, 1000 + bisect_right(records, asked))
        now += pace.next(now, beat.is_known) + random.uniform(0, 0.02)
    assert beat.is_known
    assert signals <= 9


def test_a_record_between_two_beats_is_a_signal_a_few_beats_later_at_the_latest() -> None:
    missed, more = 0, 0
    for period, phase, random in drawn(60):
        at = phase + (random.randint(30, 45) + random.uniform(0.45, 0.6)) * period
        _, signals = sampled([*beats(60, period, phase, random), at], 60, random)
        in_time = [when for when in signals if at <= when <= at + 6 * period]
        missed, more = missed + (not in_time), more + len(signals) - bool(in_time)
    assert missed <= 1
    assert more <= 6


def test_many_records_at_once_are_a_signal_and_one_more_where_a_beat_was_near() -> None:
    random = Random(1)
    _, signals = sampled([*beats(60, 0.5, 0.2, random), *[30.3] * 500], 60, random)
    assert len(signals) in (1, 2)


def test_a_log_without_a_beat_is_known_after_a_while_and_every_record_is_a_signal() -> None:
    beat, signals = sampled([1.0, SILENCE + 5, SILENCE + 9], SILENCE + 12, Random(2))
    assert beat.is_known
    assert len(signals) == 2


def test_a_log_that_always_moves_has_no_rhythm() -> None:
    random = Random(3)
    beat, _ = sampled([random.uniform(0, 60) for _ in range(600)], 60, random)
    assert not beat.is_known


def test_a_beat_that_slows_down_is_learnt_anew() -> None:
    random = Random(4)
    slower = [20 + 1.5 * n for n in range(60)]
    beat, signals = sampled([*beats(20, 0.5, 0.2, random), *slower], 100, random)
    assert beat.is_known
    assert [when for when in signals if when > 60] == []


def test_a_log_that_got_shorter_is_another_log_and_is_learnt_anew() -> None:
    beat = MetadataBeat()
    for sample in range(200):
        beat.sample(sample * EVERY, 1000 + sample // 5)
    assert beat.is_known
    beat.sample(20.0, 3)
    assert not beat.is_known


def test_before_the_beat_is_known_nothing_is_a_signal() -> None:
    beat = MetadataBeat()
    assert not any(beat.sample(sample * EVERY, 1000 + sample) for sample in range(20))
    assert not beat.is_known


def test_a_number_that_never_moves_is_no_log() -> None:
    beat, signals = sampled([], 4 * SILENCE, Random(5))
    assert not beat.is_known
    assert signals == []


def test_samples_are_rare_while_nothing_changes_and_frequent_for_a_while_after_a_signal() -> None:
    pace = SamplePace()
    assert pace.next(0.0, is_known=False) == FAST
    assert pace.next(BUSY_FOR - 1, is_known=True) == FAST
    assert all(SLOW_LEAST <= pace.next(BUSY_FOR + more, is_known=True) <= 0.5 for more in range(20))
    pace.note_signalled(50.0)
    assert pace.next(49.0 + BUSY_FOR, is_known=True) == FAST
    assert pace.next(51.0 + BUSY_FOR, is_known=True) >= SLOW_LEAST


def test_a_broker_that_is_behind_the_others_makes_no_shorter_log() -> None:
    highest = HighestLength()
    assert [highest.of(at, length) for at, length in ((0.0, 7), (0.1, 5), (0.2, 8), (0.3, 7))] == [7, 7, 8, 8]


def test_a_log_that_stays_shorter_is_another_one() -> None:
    highest = HighestLength()
    highest.of(0.0, 7)
    assert highest.of(1.0, 2) == 7
    assert highest.of(1.0 + BACKWARDS_FOR, 3) == 3


def test_a_log_that_stood_still_for_a_while_keeps_its_rhythm_for_two_signals_at_most() -> None:
    random = Random(6)
    after = [at + 33.7 for at in beats(27, 0.5, 0.0, random)]
    beat, signals = sampled([*beats(31, 0.5, 0.2, random), *after], 60, random)
    assert beat.is_known
    assert len(signals) <= 2


@given(st.floats(0.5, 0.6), PHASES, SEEDS)
@settings(max_examples=25, deadline=None)
def test_beats_that_a_busy_broker_shows_late_are_hardly_ever_a_signal(period: float, phase: float, seed: int) -> None:
    random = Random(seed)
    shown = [
        at + (random.uniform(0.02, 0.35) if random.random() < 0.1 else 0.0) for at in beats(120, period, phase, random)
    ]
    beat, signals = sampled(shown, 120, random)
    assert beat.is_known
    assert len(signals) <= 12


def test_most_changes_after_the_log_stood_still_for_a_moment_are_signals_some_beats_later() -> None:
    """The controller begins its beat anew from where it was late, so that all that come are later than before; what is
    missed the full comparison finds."""
    missed = 0
    for period, phase, random in drawn(40):
        shift = 40 + random.uniform(0.2, 0.6)
        at = shift + random.uniform(0.1, 1.0)
        records = [*beats(40, period, phase, random), *(beat + shift for beat in beats(40, period, phase, random)), at]
        _, signals = sampled(records, 80, random)
        missed += not any(at <= when <= at + 30 * period for when in signals)
    assert missed <= 10


@pytest.mark.parametrize("asleep", [3.0, 6.5, 14.0, 60.0, 3600.0])
def test_a_job_that_slept_for_any_time_knows_the_rhythm_and_finds_the_next_change(asleep: float) -> None:
    """The log went on meanwhile, so that the first sample shows many beats at once."""
    beat, now, woken, signals = MetadataBeat(), 0.0, 40.0 + asleep, []
    records = [*beats(woken + 60, 0.5, 0.2, Random(8)), woken + 30.45]
    ordered = sorted(records)
    while now < woken + 60:
        if beat.sample(now, 1000 + bisect_right(ordered, now)):
            signals.append(now)
        now = woken if now < 40.0 <= now + EVERY else now + EVERY
    assert beat.is_known
    assert any(woken + 30.45 <= when <= woken + 34 for when in signals)


def test_a_rhythm_is_learnt_although_some_beats_come_late() -> None:
    random = Random(7)
    late = [at + (0.2 if number % 5 == 0 else 0.0) for number, at in enumerate(beats(30, 0.5, 0.2, random))]
    beat, _ = sampled(late, 30, random)
    assert beat.is_known


@pytest.mark.parametrize("a_second", [0.5, 1.0, 2.0])
def test_kafkas_own_rhythm_is_learnt_in_the_midst_of_changes(a_second: float) -> None:
    known = []
    for seed in range(40):
        random = Random(seed)
        records = beats(30, PERIOD, random.uniform(0.01, 0.4), random)
        changes = [random.uniform(0, 30) for _ in range(round(30 * a_second))]
        known.append(first_known([*records, *changes], random))
    assert sorted(known)[len(known) // 2] <= 0.65 * LEARNT
    assert max(known) <= 1.5 * LEARNT


@pytest.mark.parametrize("period", [0.26, 0.3, 0.34, 0.36, 0.4, 0.6, 0.75])
def test_another_rhythm_is_not_taken_for_kafkas_own(period: float) -> None:
    for seed in range(5):
        random = Random(seed)
        _, signals = sampled(beats(120, period, 0.1, random), 120, random)
        assert len(signals) <= 30, (seed, len(signals))


@pytest.mark.parametrize("takes", [0.1, 0.2, 0.3])
def test_a_log_that_always_moves_has_no_rhythm_where_answers_are_slow_either(takes: float) -> None:
    random = Random(9)
    records, beat, now = sorted(random.uniform(0, 120) for _ in range(1200)), MetadataBeat(), 0.0
    while now < 120:
        now += FAST + takes
        beat.sample(now, 1000 + bisect_right(records, now - takes / 2))
        assert not beat.is_known


def first_known(records: list[float], random: Random) -> float:
    """Seconds until the rhythm of a log whose records come at these times is known."""
    beat, now, ordered = MetadataBeat(), 0.0, sorted(records)
    while not beat.is_known and now < 30:
        now += FAST + random.uniform(0, 0.02)
        beat.sample(now, 1000 + bisect_right(ordered, now))
    return now
