"""docs/benchmarks-failover.md: what failovers would have lost, what groups meet, and how long a cutover takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.local.jars import PROJECT
from bench.drill.loss import Loss
from bench.drill.run import DrillSeries
from bench.drill.run import read as read_drill
from bench.drill.section import section
from bench.endurance_page import read

CUTOVER: Final = PROJECT / "docs" / "benchmarks-cutover.json"
LOSSES: Final = PROJECT / "docs" / "benchmarks-failover.json"
PAGE: Final = "benchmarks-failover.md"

INTRO = """# Failovers, measured

Both clusters, MM2 and Lockstep ran on one machine of two cores that had other work to do: the seconds are on the high
side. Counts of records do not depend on it.
"""

LOSS = """## What would be lost

`python -m bench.drill --rounds {rounds} --many`: {rounds} rounds, MM2 killed in every other. In the midst of each the
source counts as lost: at a random moment, and once more right after MM2 was killed and has started to copy again. Of
each partition the records, by their ids, that a consumer of the source could have read and that were not on the target
are compared with

- the count that `preflight`, `cutover` and `failover` make with the source; it is exact, or at most so many, or nobody
  can tell;
- what `failover` predicts without the source, from what the job had kept in the ledger, compared with what was missing
  of what the job had seen of the source. The ledger got MM2's offset-syncs every 5 s
  (`lockstep.full.comparison.interval`, 60 s by default).

Records; partitions in brackets.

{head}
{rows}

A prediction without the source counts offsets: markers of transactions, and what compaction took, are in it. While MM2
sends again after a crash, copies that are there twice make it too small.
"""

HEAD = (
    "when, and which topic",
    "lost, median",
    "max",
    "exact, and right",
    "at most, and no less",
    "nobody could tell",
    "too few",
    "predicted, and right",
    "more than that, by",
    "less than that, by",
)

RTO = """## How long it takes

`python -m bench.cutover`. Twenty records in each topic; producers had stopped, so that the fence's proof (10 s,
`lockstep.failover.fence.proof`) is all that is waited for.

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
    parts = [INTRO, *([_losses(drill), section(drill)] if drill else []), *([_cutover(cutover)] if cutover else [])]
    text = "\n".join(parts)
    (folder / PAGE).write_text(text)
    return text


def _losses(drill: DrillSeries) -> str:
    keys = dict.fromkeys((one.moment, one.topic) for one in drill.losses)
    rows = [_row(key, [one for one in drill.losses if (one.moment, one.topic) == key]) for key in keys]
    table = "\n".join([*rows, _row(("all", ""), drill.losses)])
    head = f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}"
    return LOSS.format(rounds=drill.rounds - len(drill.failed), head=head, rows=table)


def _row(key: tuple[str, str], found: Sequence[Loss]) -> str:
    lost = [one.measured for one in found]
    exact = [one for one in found if one.counted is not None and one.exact]
    most = [one for one in found if one.counted is not None and not one.exact]
    right = sum(one.counted == one.measured for one in exact)
    no_less = sum((one.counted or 0) >= one.measured for one in most)
    few = sum(one.counted is not None and one.counted < one.measured for one in found)
    known = [
        one.predicted - one.measured_known
        for one in found
        if one.predicted is not None and one.measured_known is not None
    ]
    cells = [
        f"{key[0]}{', ' + key[1] if key[1] else ''} ({len(found)})",
        f"{statistics.median(lost):g}" if lost else "-",
        f"{max(lost, default=0):,}",
        f"{right} of {len(exact)}",
        f"{no_less} of {len(most)}",
        str(sum(one.counted is None for one in found)),
        str(few),
        f"{sum(not one for one in known)} of {len(known)}",
        f"{sum(one > 0 for one in known)}, {max([0, *known]):,}",
        f"{sum(one < 0 for one in known)}, {-min([0, *known]):,}",
    ]
    return "| " + " | ".join(cells) + " |"


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
