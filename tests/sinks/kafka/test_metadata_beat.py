"""The beat of a metadata log: what is news, what is not, and when silence means nothing."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.metadata_beat import SILENCE, MetadataBeat

EVERY = 0.1
LEARNT = 10.0
"""Seconds after which a steady beat is known."""


def heard(records: list[float], until: float, random: Random) -> tuple[MetadataBeat, list[float]]:
    """Samples a log whose records come at these times; returns when news was heard."""
    pulse, now, news = MetadataBeat(), 0.0, []
    ordered = sorted(records)
    while now < until:
        if pulse.heard(now, 1000 + sum(at <= now for at in ordered)):
            news.append(now)
        now += EVERY + random.uniform(0, 0.02)
    return pulse, news


def beats(until: float, period: float, phase: float, random: Random) -> list[float]:
    """No-op records with a few milliseconds of jitter."""
    return [phase + n * period + random.uniform(-0.004, 0.004) for n in range(int(until / period))]


PERIODS = st.floats(0.45, 1.2)
SEEDS = st.integers(0, 10_000)
PHASES = st.floats(0.01, 0.4)


@given(PERIODS, PHASES, SEEDS)
@settings(max_examples=25, deadline=None)
def test_a_steady_beat_is_never_news(period: float, phase: float, seed: int) -> None:
    random = Random(seed)
    pulse, news = heard(beats(60, period, phase, random), 60, random)
    assert pulse.quiet
    assert news == []


@given(PERIODS, PHASES, st.integers(30, 45), st.floats(0.45, 0.6), SEEDS)
@settings(max_examples=25, deadline=None)
def test_a_record_between_two_beats_is_news_at_the_next_beat_at_the_latest(
    period: float, phase: float, beat: int, part: float, seed: int
) -> None:
    random = Random(seed)
    at = phase + (beat + part) * period
    _, news = heard([*beats(60, period, phase, random), at], 60, random)
    assert [at <= when <= at + period + 2 * EVERY for when in news] == [True]


def test_many_records_at_once_are_news_once() -> None:
    random = Random(1)
    _, news = heard([*beats(60, 0.5, 0.2, random), *[30.3] * 500], 60, random)
    assert len(news) == 1


def test_a_log_without_a_beat_is_quiet_after_a_while_and_every_record_is_news() -> None:
    pulse, news = heard([SILENCE + 5, SILENCE + 9], SILENCE + 12, Random(2))
    assert pulse.quiet
    assert len(news) == 2


def test_a_log_that_always_moves_is_not_quiet() -> None:
    random = Random(3)
    pulse, _ = heard([random.uniform(0, 60) for _ in range(600)], 60, random)
    assert not pulse.quiet


def test_a_beat_that_slows_down_is_learnt_anew() -> None:
    random = Random(4)
    slower = [20 + 1.5 * n for n in range(60)]
    pulse, news = heard([*beats(20, 0.5, 0.2, random), *slower], 100, random)
    assert pulse.quiet
    assert [when for when in news if when > 60] == []


def test_a_log_that_got_shorter_is_another_log_and_is_learnt_anew() -> None:
    pulse = MetadataBeat()
    for sample in range(200):
        pulse.heard(sample * EVERY, 1000 + sample // 5)
    assert pulse.quiet
    pulse.heard(20.0, 3)
    assert not pulse.quiet


def test_before_the_beat_is_known_nothing_is_news() -> None:
    pulse = MetadataBeat()
    assert not any(pulse.heard(sample * EVERY, 1000 + sample) for sample in range(20))
    assert not pulse.quiet
