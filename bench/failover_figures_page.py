"""bench/figures/benchmarks-failover.md: what failovers would have lost, what groups meet, and how long a cutover takes."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.drill.outcome_rows import AFTER, CALM, DURING, DrillSeries, Row, goals
from bench.drill.outcome_rows import read as read_drill
from bench.drill.snapshot import Loss
from bench.drill.source_load import PLACES
from bench.saved_figures import FIGURES, lines, page_text, read, table

CUTOVER: Final = FIGURES / "benchmarks-cutover.json"
LOSSES: Final = FIGURES / "benchmarks-failover.json"
PREDICTIONS: Final = FIGURES / "benchmarks-prediction.json"
PAGE: Final = "benchmarks-failover.md"


def write(results: Path, part: Path) -> str:
    """Writes the page beside these results; what it says. `part`: in whose place they are; the other parts of the page
    come from files of their usual names."""
    folder = results.parent
    files = {one: folder / one.name for one in (CUTOVER, LOSSES, PREDICTIONS)} | {part: results}
    drill, cutover = read_drill(files[LOSSES]), read(files[CUTOVER])
    text = page_text("benchmarks-failover")
    parts = [text[""]]
    if drill:
        lost = lines(_rows(drill.losses, _row))
        parts.append(text["What would be lost"].format(rounds=drill.ended, rows=lost))
    # A run of its own where there is one: its rounds may be fewer than a table of groups needs.
    of_its_own = read_drill(files[PREDICTIONS])
    if predicting := of_its_own or drill:
        options = f" --out bench/figures/{PREDICTIONS.name}" if of_its_own else ""
        known = [one for one in predicting.losses if None not in (one.predicted, one.measured_known)]
        parts.append(
            text["What is predicted without the source"].format(
                command=f"`python -m bench.drill --rounds {predicting.rounds}{options}`",
                rounds=predicting.ended,
                rows=lines(_rows(known, _predicted_row)),
            )
        )
    if drill:
        parts.append(groups_section(drill))
    if cutover:
        parts.append(text["How long it takes"].format(**_cutover(cutover)))
    page = "\n".join(parts)
    (folder / PAGE).write_text(page)
    return page


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


def _cutover(found: Mapping[str, Any]) -> dict[str, str]:
    """Its tables by name."""
    preflight = [(name, f"{row['seconds']:.1f}", f"{row['cpu']:.1f}") for name, row in found["preflight"].items()]
    topics = f"{found['topics']:,} topics"
    preflight_head = f"a preflight of {topics}, as the job makes it | seconds | CPU-seconds of its process"
    return {
        "cutover": table(f"a cutover of {topics} | seconds", _steps(found["cutover"])),
        "preflight": table(preflight_head, preflight),
        "fence": table(f"a fence of {found['fenced']:,} topics | seconds", _steps(found["fence"])),
    }


NAMES = {"opening": "opening the flow: clients, ledger, ids", "command": "all of the command"}


def _steps(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(NAMES.get(name, name), f"{taken:.1f}") for name, taken in seconds.items()]


GROUPS_HEAD = "groups | MM2's checkpoints: skipped | read twice, median | max | not synced | Lockstep: skipped | read twice, median | max | not synced | least possible, median | max"
HEADINGS = {
    CALM: "MM2 not killed",
    AFTER: "MM2 killed and restarted, the target has caught up",
    DURING: "MM2 killed, just restarted and still catching up",
}


def groups_section(drill: DrillSeries) -> str:
    reached = [(what, text, "reached" if good else "missed") for what, text, good in goals(drill.rows)]
    moments = []
    for moment, heading in HEADINGS.items():
        if found := [row for row in drill.rows if row.moment == moment]:
            moments.append(f"### {heading}\n\n" + table(GROUPS_HEAD, _groups_rows(found)))
    return page_text("benchmarks-failover")["Where groups continue"].format(
        rounds=drill.rounds,
        cleaned=f"{drill.cleaned:,}",
        aborted=f"{drill.aborted:,}",
        failed="".join(f"\n\nA round came to no end and is left out: {why}." for why in drill.failed),
        rows=lines(reached),
        moments="\n\n".join(moments),
        **drill.size,
    )


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
