"""bench/figures/benchmarks.md, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import acl_scenario, bounces, chaos, group_scenario
from bench.saved_figures import MIB, quantile, quantiles, read, table, verdict
from bench.scenario import DEFAULT, Result

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

`make bench` writes this page and `benchmarks.json` in about an hour. It measures how long a changed topic config takes to the target, and what watching for it costs.

The ways of one table run one after the other on the same two clusters of one broker. {changes} changes of `retention.ms` at random topics and moments, about one a second. Each is timed until `DescribeConfigs` on the target shows it. Ten changes right after a start have a column of their own. 45 s without a change give the price of a minute. Beside Lockstep runs an MM2 at its defaults: the brokers' figures contain its requests, its own CPU is left out. "MM2" alone has `sync.topic.configs`, `sync.topic.acls` and `refresh.topics` at the interval named.

{cores} cores and {memory_gib} GiB for brokers, MM2 and Spark together, Python {python}: compare ways, not machines.
"""


HEAD = (
    "",
    "change → target p50",
    "p90",
    "p99",
    "max",
    "slowest of the ten right after the start",
    "CPU-s an idle minute: job",
    "source broker",
    "target broker",
    "together",
    "admin requests a minute",
    "write requests a minute",
    "resident MiB",
    "first comparison",
)


def render(results: Sequence[Result], facts: dict[str, Any], folder: Path) -> None:
    """Writes the page."""
    changes = max((len(result.latencies) for result in results), default=0)
    parts = [INTRO.format(changes=changes, **{name: facts[name] for name in ("cores", "memory_gib", "python")})]
    for topics in sorted({result.topics for result in results}):
        parts.append(f"## {topics:,} topics\nSeconds, CPU-seconds, MiB.\n")
        parts.append(table(HEAD, [_row(result) for result in results if result.topics == topics]) + "\n")
    parts += [_goals(results), _decoding(facts)]
    if "acls" in facts:
        parts.append(acl_scenario.section(facts["acls"]))
    # Each of these has a bench and a file of its own.
    for bench in (group_scenario, bounces, chaos):
        if found := read(folder / bench.RESULTS.name):
            parts.append(bench.section(found))
    notes = folder / "benchmarks-notes.md"
    if notes.exists():
        parts.append(notes.read_text())
    (folder / "benchmarks.md").write_text("\n".join(parts))


def _row(result: Result) -> list[str]:
    costs = [f"{cost:.1f}" for cost in (result.cpu_job, result.cpu_source, result.cpu_target, result.cpu_all)]
    counts = [result.requests.get(name) for name in ("all", "write")]
    return [
        result.name,
        *quantiles(result.latencies),
        f"{max(result.starting):.2f}" if result.starting else "-",
        *costs,
        *("not counted" if count is None else f"{count:.0f}" for count in counts),
        f"{result.resident / MIB:.0f}",
        "-" if result.first_comparison is None else f"{result.first_comparison:.1f} s",
    ]


def _goals(results: Sequence[Result]) -> str:
    """Goals of the default, as ratios to MM2 at 1 s."""
    rows, found = [], {(row.name, row.topics): row for row in results}
    for what, topics, goal, value in GOALS:
        ours, theirs = found.get((DEFAULT, topics)), found.get((FAST, topics))
        if ours is not None and theirs is not None:
            ratio = value(ours) / value(theirs)
            figures = f"{ratio:.2f} ({value(ours):.2f} against {value(theirs):.2f})"
            text = verdict(ratio - goal, f"{ratio - goal:.2f}")
            rows.append((what, f"{topics:,}", f"≤ {goal} of MM2's at 1 s", figures, text))
    if writes := [row.requests["write"] for row in results if "write" in row.requests]:
        reached = "reached" if max(writes) == 0 else "missed"
        rows.append(("write requests of an idle minute", "all", "0", f"{max(writes):.0f}", reached))
    return "## Goals\n\n" + table((DEFAULT, "topics", "goal", "measured", ""), rows) + "\n"


def _decoding(facts: dict[str, Any]) -> str:
    rate = facts["decoding"]["records_per_second"]
    over = 1_000_000 - rate
    return (
        "## Decoding\n"
        f"`python -m bench.decoding` reads {rate:,.0f} records a second (goal: 1,000,000; "
        f"{verdict(over, f'{over:,.0f}')}). They are MM2's records, a third of each kind, cached in Spark's memory.\n"
    )
