"""bench/figures/benchmarks-failover.md: what failovers would have lost, what groups meet, and how long a cutover takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.local.jars import PROJECT
from bench.drill.loss import Loss
from bench.drill.run import DrillSeries
from bench.drill.run import read as read_drill
from bench.drill.section import section
from bench.endurance_page import read

CUTOVER: Final = PROJECT / "bench" / "figures" / "benchmarks-cutover.json"
LOSSES: Final = PROJECT / "bench" / "figures" / "benchmarks-failover.json"
PREDICTIONS: Final = PROJECT / "bench" / "figures" / "benchmarks-prediction.json"
PAGE: Final = "benchmarks-failover.md"

INTRO = """# Failovers, measured

Brokers, MM2 and Lockstep shared two cores that had other work to do, so seconds are on the high side. Counts of records do not depend on it.
"""

LOSS = """## What would be lost

`python -m bench.drill --rounds {rounds} --many`: {rounds} rounds, MM2 killed in every other. The source counts as lost at a random moment, and once more right after MM2 was killed and copies again. The truth is taken from the records' ids. It is compared with the count that `preflight`, `cutover` and `failover` make with the source.

Records; partitions in brackets.

{head}
{rows}
"""

HEAD = (
    "when, and which topic",
    "lost, median",
    "max",
    "exact, and right",
    "at most, and no less",
    "unknown",
    "too few",
)

PREDICTION = """## What is predicted without the source

{command}: {rounds} rounds, the same moments. `failover` predicts from the ledger and the copies. The prediction is compared with what was missing of the records that the job had seen. Records of the last 10 s, and partitions a few seconds old, are left out. The full comparison came every 5 s.

Records; partitions in brackets.

{head}
{rows}

A prediction is an upper bound: waiting records are counted by offsets if there is no time to count them one by one.
"""

PREDICTED_HEAD = (
    "when, and which topic",
    "missing of what was seen, median",
    "max",
    "predicted, and equal",
    "more than that",
    "by, median",
    "max",
    "less than that",
    "by, max",
)

RTO = """## How long it takes

`python -m bench.cutover`. Twenty records in each topic. Producers had stopped, so the command waits for the fence's proof alone (10 s).

| a cutover of {topics:,} topics | seconds |
|---|---|
{cutover}

| a preflight of {topics:,} topics, as the job makes it | seconds | CPU-seconds of its process |
|---|---|---|
{preflight}

| a fence of {fenced:,} topics | seconds |
|---|---|
{fence}
"""


def write(results: Path = CUTOVER, folder: Path | None = None) -> str:
    """Writes the page from what is saved beside it; what it says."""
    folder = folder or results.parent
    drill, cutover = read_drill(folder / LOSSES.name), read(folder / CUTOVER.name)
    # A run of its own where there is one: its rounds may be fewer than a table of groups needs.
    of_its_own = read_drill(folder / PREDICTIONS.name)
    predictions = _predictions(of_its_own, "--out bench/figures/" + PREDICTIONS.name) if of_its_own else None
    if predictions is None and drill is not None:
        predictions = _predictions(drill, "")
    parts = [INTRO, *([_losses(drill)] if drill else []), *([predictions] if predictions else [])]
    parts += [*([section(drill)] if drill else []), *([_cutover(cutover)] if cutover else [])]
    text = "\n".join(parts)
    (folder / PAGE).write_text(text)
    return text


def _losses(drill: DrillSeries) -> str:
    return LOSS.format(rounds=drill.rounds - len(drill.failed), head=_head(HEAD), rows=_table(drill.losses, _row))


def _predictions(drill: DrillSeries, options: str) -> str:
    command = f"`python -m bench.drill --rounds {drill.rounds} --many{' ' if options else ''}{options}`"
    known = [one for one in drill.losses if one.predicted is not None and one.measured_known is not None]
    rows = _table(known, _predicted_row)
    rounds = drill.rounds - len(drill.failed)
    return PREDICTION.format(command=command, rounds=rounds, head=_head(PREDICTED_HEAD), rows=rows)


def _head(names: Sequence[str]) -> str:
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def _table(found: Sequence[Loss], row: Callable[[str, Sequence[Loss]], list[str]]) -> str:
    """A row for each moment and kind of topic, and one for all."""
    keys = dict.fromkeys((one.moment, one.topic) for one in found)
    groups = {
        f"{moment}, {topic}": [one for one in found if (one.moment, one.topic) == (moment, topic)]
        for moment, topic in keys
    }
    return "\n".join(
        f"| {' | '.join(row(f'{name} ({len(of_one)})', of_one))} |"
        for name, of_one in [*groups.items(), ("all", found)]
    )


def _row(name: str, found: Sequence[Loss]) -> list[str]:
    lost = [one.measured for one in found]
    exact = [one for one in found if one.counted is not None and one.exact]
    most = [one for one in found if one.counted is not None and not one.exact]
    right = sum(one.counted == one.measured for one in exact)
    no_less = sum((one.counted or 0) >= one.measured for one in most)
    few = sum(one.counted is not None and one.counted < one.measured for one in found)
    return [
        name,
        *_middle_and_most(lost),
        f"{right} of {len(exact)}",
        f"{no_less} of {len(most)}",
        str(sum(one.counted is None for one in found)),
        str(few),
    ]


def _predicted_row(name: str, found: Sequence[Loss]) -> list[str]:
    apart = [(one.predicted or 0) - (one.measured_known or 0) for one in found]
    more, less = [one for one in apart if one > 0], [-one for one in apart if one < 0]
    return [
        name,
        *_middle_and_most([one.measured_known or 0 for one in found]),
        f"{sum(not one for one in apart)} of {len(apart)}",
        str(len(more)),
        *_middle_and_most(more),
        str(len(less)),
        f"{max(less, default=0):,}",
    ]


def _middle_and_most(numbers: Sequence[int]) -> tuple[str, str]:
    return f"{statistics.median(numbers):g}" if numbers else "-", f"{max(numbers, default=0):,}"


def _cutover(found: Mapping[str, Any]) -> str:
    preflight = [f"| {name} | {row['seconds']:.1f} | {row['cpu']:.1f} |" for name, row in found["preflight"].items()]
    return RTO.format(
        topics=found["topics"],
        fenced=found["fenced"],
        cutover="\n".join(_steps(found["cutover"])),
        preflight="\n".join(preflight),
        fence="\n".join(_steps(found["fence"])),
    )


NAMES = {"opening": "opening the flow: clients, ledger, ids", "command": "all of the command"}


def _steps(seconds: Mapping[str, float]) -> Iterator[str]:
    for name, taken in seconds.items():
        yield f"| {NAMES.get(name, name)} | {taken:.1f} |"
