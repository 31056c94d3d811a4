"""bench/figures/benchmarks.md, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import endurance_page, groups_page
from bench.acl_scenario import section
from bench.results import MIB, Result, plot, quantile, table
from bench.scenario import DEFAULT

FAST = "MM2, intervals of 1 s"
"""What goals are ratios of, in the same run."""

GOALS = (
    ("p50", 2000, 0.5, lambda row: quantile(row.latencies, 0.5)),
    ("p99", 2000, 0.6, lambda row: quantile(row.latencies, 0.99)),
    ("CPU of an idle minute, together", 2000, 0.3, lambda row: row.cpu_all),
    ("CPU of an idle minute, the job alone", 2000, 0.4, lambda row: row.cpu_job),
    ("resident memory", 2000, 1.5, lambda row: row.resident / MIB),
    ("CPU of an idle minute, together", 500, 0.7, lambda row: row.cpu_all),
)
"""What was set out to be reached by the default: what, topics, ratio to MM2 at 1 s, and how to read it of a result."""

INTRO = """# Changes, groups, ACLs, outages

`make bench` writes this page, `benchmarks.json` and `benchmarks.svg` in about an hour. It measures how long a changed topic config takes to the target, and what watching for it costs.

The ways of one table run one after the other on the same two clusters of one broker. {changes} changes of `retention.ms` at random topics and moments, about one a second. Each is timed until `DescribeConfigs` on the target shows it. Ten changes right after a start have a column of their own. 45 s without a change give the price of a minute. Beside Lockstep runs an MM2 at its defaults: the brokers' figures contain its requests, its own CPU is left out. "MM2" alone has `sync.topic.configs`, `sync.topic.acls` and `refresh.topics` at the interval named.

{cores} cores and {memory_gib} GiB for brokers, MM2 and Spark together, Python {python}: compare ways, not machines.

![latency against cost](benchmarks.svg)
"""


def render(results: Sequence[Result], facts: dict[str, Any], folder: Path) -> None:
    """Writes the page and the plot."""
    plot(results, folder / "benchmarks.svg")
    changes = max((len(result.latencies) for result in results), default=0)
    parts = [INTRO.format(changes=changes, **{name: facts[name] for name in ("cores", "memory_gib", "python")})]
    for topics in sorted({result.topics for result in results}):
        parts.append(f"## {topics:,} topics\nSeconds, CPU-seconds, MiB.\n")
        parts.append(table([result for result in results if result.topics == topics]) + "\n")
    parts += [_goals(results), _decoding(facts)]
    if "acls" in facts:
        parts.append(section(facts["acls"]))
    parts += _offsets(folder)
    parts += _endurance(folder)
    notes = folder / "benchmarks-notes.md"
    if notes.exists():
        parts.append(notes.read_text())
    (folder / "benchmarks.md").write_text("\n".join(parts))


def _offsets(folder: Path) -> list[str]:
    """What was measured of synced offsets, from its own file."""
    ages = groups_page.read(folder / groups_page.RESULTS.name)
    return [groups_page.section(ages)] if ages else []


def _endurance(folder: Path) -> list[str]:
    """What became of everything while brokers, MM2 and the job went down."""
    bounced = endurance_page.read(folder / endurance_page.BOUNCES.name)
    chaos = endurance_page.read(folder / endurance_page.CHAOS.name)
    return [
        *([endurance_page.bounces_section(bounced)] if bounced else []),
        *([endurance_page.chaos_section(chaos)] if chaos else []),
    ]


def _goals(results: Sequence[Result]) -> str:
    """Of the default, as ratios to MM2 at 1 s."""
    rows = ["## Goals\n", f"| {DEFAULT} | topics | goal | measured | |", "|---|---|---|---|---|"]
    found = {(row.name, row.topics): row for row in results}
    for what, topics, goal, read in GOALS:
        ours, theirs = found.get((DEFAULT, topics)), found.get((FAST, topics))
        if ours is not None and theirs is not None:
            ratio = read(ours) / read(theirs)
            verdict = "reached" if ratio <= goal else f"missed by {ratio - goal:.2f}"
            figures = f"{ratio:.2f} ({read(ours):.2f} against {read(theirs):.2f})"
            rows.append(f"| {what} | {topics:,} | ≤ {goal} of MM2's at 1 s | {figures} | {verdict} |")
    rows += _idle_writes(results)
    return "\n".join(rows) + "\n"


def _idle_writes(results: Sequence[Result]) -> list[str]:
    counts = [row.requests["write"] for row in results if "write" in row.requests]
    if not counts:
        return []
    verdict = "reached" if max(counts) == 0 else "missed"
    return [f"| write requests of an idle minute | all | 0 | {max(counts):.0f} | {verdict} |"]


def _decoding(facts: dict[str, Any]) -> str:
    rate = facts["decoding"]["records_per_second"]
    verdict = "reached" if rate >= 1_000_000 else f"missed by {1_000_000 - rate:,.0f}"
    return (
        "## Decoding\n"
        f"`python -m bench.decoding` reads {rate:,.0f} records a second (goal: 1,000,000; {verdict}). They are MM2's "
        "records, a third of each kind, cached in Spark's memory.\n"
    )
