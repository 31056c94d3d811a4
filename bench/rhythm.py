"""How long it takes until the rhythm of a metadata log is known, in a simulation: `python -m bench.rhythm`.

Beats of one period, each late by a random while, and changes at random moments between them; a sample ten times a
second, as after a start. Kafka's default period is looked for in the midst of changes, any other one needs a while
without them.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from statistics import median
from typing import Final

import typer

from app.cli.output import print_table
from sinks.kafka.jvm.epoch_signal import FAST
from sinks.kafka.metadata_beat import PERIOD, MetadataBeat

PERIODS: Final = (PERIOD, 0.7)
CHANGES: Final = (0.0, 0.2, 0.5, 1.0, 2.0)
"""A second."""

LATE: Final = (0.0, 0.03, 0.08)
"""Mean seconds by which a beat is seen late: an idle broker, one with work, a busy one."""

LIMIT: Final = 120.0
"""Seconds after which a simulation gives up."""


def main(runs: int = 60, seed: int = 1) -> None:
    """Prints a table: seconds until the rhythm is known, by its period, changes a second and how late beats are."""
    random, rows = Random(seed), []
    for period in PERIODS:
        for changes in CHANGES:
            for late in LATE:
                took = sorted(_known_after(random, period, changes, late) for _ in range(runs))
                p90 = took[9 * runs // 10]
                row = (f"{period}", f"{changes}", f"{late}", f"{median(took):.1f}", f"{p90:.1f}", f"{took[-1]:.1f}")
                rows.append(row)
    print_table("", ("period, s", "changes a second", "late, s", "median", "p90", "slowest"), rows)


def _known_after(random: Random, period: float, changes: float, late: float) -> float:
    phase = random.uniform(0, period)
    records = [phase + beat * period + _apart(random, late) for beat in range(int(LIMIT / period))]
    at = _apart(random, 1 / changes) if changes else LIMIT
    while at < LIMIT:
        records.append(at)
        at += _apart(random, 1 / changes)
    records.sort()
    beat, now = MetadataBeat(), 0.0
    while now < LIMIT and not beat.is_known:
        now += FAST + random.uniform(0, 0.01)
        beat.sample(now, bisect_right(records, now))
    return now


def _apart(random: Random, mean: float) -> float:
    return random.expovariate(1 / mean) if mean else 0.0


if __name__ == "__main__":
    typer.run(main)
