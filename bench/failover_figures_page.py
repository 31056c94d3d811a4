"""bench/figures/benchmarks-failover.md: what failovers would have lost, what groups meet, and how long a cutover takes."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.drill.outcome_rows import MOMENTS, DrillSeries, Row, goals
from bench.drill.outcome_rows import read as read_drill
from bench.drill.snapshot import Loss
from bench.drill.source_load import PLACES
from bench.saved_figures import FIGURES, read, table

CUTOVER: Final = FIGURES / "benchmarks-cutover.json"
LOSSES: Final = FIGURES / "benchmarks-failover.json"
PREDICTIONS: Final = FIGURES / "benchmarks-prediction.json"
PAGE: Final = "benchmarks-failover.md"

INTRO = """# Failovers, measured

Brokers, MM2 and Lockstep shared two cores that had other work to do, so seconds are on the high side. Counts of records do not depend on it.
"""

LOSS = """## What would be lost

`python -m bench.drill --rounds {rounds}`: {rounds} rounds, MM2 killed in every other. The source counts as lost at a random moment, and once more right after MM2 was killed and copies again. The truth is taken from the records' ids. It is compared with the count that `preflight`, `cutover` and `failover` make with the source.

Records; partitions in brackets.

{table}
"""

HEAD = "when, and which topic | lost, median | max | exact, and right | at most, and no less | unknown | too few"

PREDICTION = """## What is predicted without the source

{command}: {rounds} rounds, the same moments. `failover` predicts from the ledger and the copies. The prediction is compared with what was missing of the records that the job had seen. Records of the last 10 s, and partitions a few seconds old, are left out. The full comparison came every 5 s.

Records; partitions in brackets.

{table}

A prediction is an upper bound: waiting records are counted by offsets if there is no time to count them one by one.
"""

PREDICTED_HEAD = "when, and which topic | missing of what was seen, median | max | predicted, and equal | more than that | by, median | max | less than that | by, max"

RTO = """## How long it takes

`python -m bench.cutover`. Twenty records in each topic. Producers had stopped, so the command waits for the fence's proof alone (10 s).

{cutover}

{preflight}

{fence}
"""


def write(results: Path, part: Path) -> str:
    """Writes the page beside these results; what it says. `part`: in whose place they are; the other parts of the page
    come from files of their usual names."""
    folder = results.parent
    files = {one: folder / one.name for one in (CUTOVER, LOSSES, PREDICTIONS)} | {part: results}
    drill, cutover = read_drill(files[LOSSES]), read(files[CUTOVER])
    parts = [INTRO]
    if drill:
        parts.append(LOSS.format(rounds=drill.ended, table=table(HEAD, _rows(drill.losses, _row))))
    # A run of its own where there is one: its rounds may be fewer than a table of groups needs.
    if of_its_own := read_drill(files[PREDICTIONS]):
        parts.append(_predictions(of_its_own, f" --out bench/figures/{PREDICTIONS.name}"))
    elif drill:
        parts.append(_predictions(drill, ""))
    if drill:
        parts.append(groups_section(drill))
    if cutover:
        parts.append(_cutover(cutover))
    text = "\n".join(parts)
    (folder / PAGE).write_text(text)
    return text


def _predictions(drill: DrillSeries, options: str) -> str:
    command = f"`python -m bench.drill --rounds {drill.rounds}{options}`"
    known = [one for one in drill.losses if one.predicted is not None and one.measured_known is not None]
    rows = _rows(known, _predicted_row)
    return PREDICTION.format(command=command, rounds=drill.ended, table=table(PREDICTED_HEAD, rows))


def _rows(found: Sequence[Loss], row: Callable[[str, Sequence[Loss]], list[str]]) -> Iterator[list[str]]:
    """A row for each moment and kind of topic, and one for all."""
    for moment, topic in dict.fromkeys((one.moment, one.topic) for one in found):
        these = [one for one in found if (one.moment, one.topic) == (moment, topic)]
        yield row(f"{moment}, {topic} ({len(these)})", these)
    yield row(f"all ({len(found)})", found)


def _row(name: str, found: Sequence[Loss]) -> list[str]:
    counted = [(one.counted, one.measured, one.exact) for one in found if one.counted is not None]
    exact = [count == lost for count, lost, is_exact in counted if is_exact]
    most = [count >= lost for count, lost, is_exact in counted if not is_exact]
    return [
        name,
        *_middle_and_most([one.measured for one in found]),
        f"{sum(exact)} of {len(exact)}",
        f"{sum(most)} of {len(most)}",
        str(len(found) - len(counted)),
        str(sum(count < lost for count, lost, _ in counted)),
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
    preflight = [(name, f"{row['seconds']:.1f}", f"{row['cpu']:.1f}") for name, row in found["preflight"].items()]
    topics = f"{found['topics']:,} topics"
    return RTO.format(
        cutover=table(f"a cutover of {topics} | seconds", _steps(found["cutover"])),
        preflight=table(
            f"a preflight of {topics}, as the job makes it | seconds | CPU-seconds of its process", preflight
        ),
        fence=table(f"a fence of {found['fenced']:,} topics | seconds", _steps(found["fence"])),
    )


NAMES = {"opening": "opening the flow: clients, ledger, ids", "command": "all of the command"}


def _steps(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(NAMES.get(name, name), f"{taken:.1f}") for name, taken in seconds.items()]


GROUPS_HEAD = "groups | MM2's checkpoints: skipped | read twice, median | max | not synced | Lockstep: skipped | read twice, median | max | not synced | least possible, median | max"
HEADINGS = {
    "not killed": "MM2 not killed",
    "killed": "MM2 killed and restarted, the target has caught up",
    "while it catches up": "MM2 killed, just restarted and still catching up",
}

GROUPS = """## Where groups continue

`python -m bench.drill` writes five topics on the source: busy, quiet, compacted, transacted with a fifth aborted, idle. MM2 copies them with checkpoints every second. Groups with known positions commit and stop. Then the source counts as lost. What a group has still to read on the source is compared, record by record, with what it gets on the target.

- *Skipped*: the target has the record, and the group does not get it.
- *Least possible*: read twice from the best offset there is. After a crash MM2 sends records again.
- Numbers are records; brackets hold the partitions of groups in a row.

{rounds} rounds of at least {seconds:g} s, MM2 killed (SIGKILL) in every other, {groups} groups for each topic and place. Compaction took {cleaned} records from the source. With `isolation.level=read_committed` MM2 left {aborted} records of aborted transactions on the target. Except in the last table, offsets had {settle:g} s without a change after the target had caught up."""


def groups_section(drill: DrillSeries) -> str:
    numbers = {"aborted": f"{drill.aborted:,}", "cleaned": f"{drill.cleaned:,}", "rounds": drill.rounds}
    failed = "".join(f"\n\nA round came to no end and is left out: {text}." for text in drill.failed)
    reached = [(what, text, "reached" if good else "missed") for what, text, good in goals(drill.rows)]
    parts = [GROUPS.format(**numbers, **drill.size) + failed + "\n", table("Lockstep | measured |", reached) + "\n"]
    for moment in MOMENTS:
        if found := [row for row in drill.rows if row.moment == moment]:
            parts.append(f"### {HEADINGS[moment]}\n\n" + table(GROUPS_HEAD, _groups_rows(found)) + "\n")
    return "\n".join(parts)


def _groups_rows(found: Sequence[Row]) -> Iterator[list[str]]:
    """A line for each place and topic."""
    topics = dict.fromkeys(row.topic for row in found)
    for place, topic in itertools.product(PLACES, topics):
        if these := [row for row in found if (row.place, row.topic) == (place, topic)]:
            least = [row.least for row in these]
            sides = (_side([row.checkpoint for row in these]), _side([row.synced for row in these]))
            yield [f"{place}, {topic} ({len(these)})", *sides[0], *sides[1], *_middle_and_most(least)]


def _side(found: Sequence[tuple[int, int] | None]) -> list[str]:
    """Of one way of syncing: records skipped, those read twice, and partitions for which it gave no offset."""
    there = [pair for pair in found if pair is not None]
    again = [pair[1] for pair in there]
    shown = [f"{one(again):,.10g}" if again else "-" for one in (statistics.median, max)]
    return [str(sum(pair[0] for pair in there)), *shown, str(len(found) - len(there))]
