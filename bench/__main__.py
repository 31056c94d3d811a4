"""`make bench`: Lockstep beside MM2 on the same clusters; writes bench/figures/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from app.local.jars import PROJECT
from bench import acl_scenario, bounces, chaos, group_scenario
from bench.saved_figures import FIGURES, MIB, machine, quantile, quantiles, read, save, say, table, verdict
from bench.scenario import DEFAULT, FAST, SCENARIOS, Result, bench_of, measure
from streaming.errors import LockstepError

RESULTS: Final = FIGURES / "benchmarks.json"


def main(
    topics: Annotated[str, typer.Option(help="Numbers of topics, comma separated.")] = "2000,5000,500",
    changes: Annotated[int, typer.Option(help="Changes whose arrival is timed, in each way.")] = 50,
    acls: Annotated[bool, typer.Option(help="Whether ACLs are measured as well.")] = True,
    render: Annotated[
        bool, typer.Option("--render", help="Write the page from bench/figures/benchmarks.json.")
    ] = False,
) -> None:
    """Measures, saves after each way, and writes the page."""
    saved = read(RESULTS)
    results, facts = [Result(**row) for row in saved.get("results", ())], saved.get("facts", {})
    if not render:
        # Otherwise ways that are no longer measured would stand beside ways of another run.
        results = [row for row in results if row.name in {scenario.name for scenario in SCENARIOS}]
        facts |= machine() | {"decoding": _decoded()}
        if acls:
            say("ACLs")
            facts["acls"] = acl_scenario.measure_acls(changes)
            _save(results, facts)
        for count in (int(text) for text in topics.split(",") if text):
            for result in _measure(count, changes):
                results = [row for row in results if (row.name, row.topics) != (result.name, result.topics)]
                results.append(result)
                _save(results, facts)
    (FIGURES / "benchmarks.md").write_text(page(results, facts))


def _save(results: Sequence[Result], facts: dict[str, Any]) -> None:
    save(RESULTS, {"facts": facts, "results": [asdict(result) for result in results]})


def _measure(topics: int, changes: int) -> Iterator[Result]:
    """One result after the other, so that what was measured is kept when a later way fails."""
    with bench_of(topics) as pair:
        for seed, scenario in enumerate(SCENARIOS):
            say(f"{topics} topics: {scenario.name}")
            try:
                yield measure(pair, scenario, topics, changes, seed)
            except (TimeoutError, LockstepError) as error:
                say(f"left out: {error}")


def _decoded() -> Any:
    run = subprocess.run([sys.executable, "-m", "bench.decoding"], cwd=PROJECT, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


# bench/figures/benchmarks.md, from what was measured.

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

HEAD: Final = "| change → target p50 | p90 | p99 | max | slowest of the ten right after the start | CPU-s an idle minute: job | source broker | target broker | together | admin requests a minute | write requests a minute | resident MiB | first comparison"


def page(results: Sequence[Result], facts: dict[str, Any]) -> str:
    """The whole page."""
    parts = [INTRO.format(changes=max((len(result.latencies) for result in results), default=0), **facts)]
    for topics in sorted({result.topics for result in results}):
        parts.append(f"## {topics:,} topics\nSeconds, CPU-seconds, MiB.\n")
        parts.append(table(HEAD, [_row(result) for result in results if result.topics == topics]) + "\n")
    parts += [_goals(results), _decoding(facts["decoding"]["records_per_second"])]
    if "acls" in facts:
        parts.append(acl_scenario.section(facts["acls"]))
    # Each of these has a bench and a file of its own.
    parts += [bench.section(found) for bench in (group_scenario, bounces, chaos) if (found := read(bench.RESULTS))]
    return "\n".join([*parts, (FIGURES / "benchmarks-notes.md").read_text()])


def _row(result: Result) -> list[str]:
    costs = (result.cpu_job, result.cpu_source, result.cpu_target, result.cpu_all)
    return [
        result.name,
        *quantiles(result.latencies),
        f"{max(result.starting):.2f}" if result.starting else "-",
        *(f"{cost:.1f}" for cost in costs),
        *(f"{result.requests[name]:.0f}" if result.requests else "not counted" for name in ("all", "write")),
        f"{result.resident / MIB:.0f}",
        "-" if result.first_comparison is None else f"{result.first_comparison:.1f} s",
    ]


def _goals(results: Sequence[Result]) -> str:
    rows, found = [], {(row.name, row.topics): row for row in results}
    for what, topics, goal, value in GOALS:
        ours, theirs = found.get((DEFAULT, topics)), found.get((FAST, topics))
        if ours is not None and theirs is not None:
            ratio = value(ours) / value(theirs)
            figures = f"{ratio:.2f} ({value(ours):.2f} against {value(theirs):.2f})"
            text = verdict(ratio - goal, f"{ratio - goal:.2f}")
            rows.append((what, f"{topics:,}", f"≤ {goal} of MM2's at 1 s", figures, text))
    if writes := [row.requests["write"] for row in results if row.requests]:
        reached = "reached" if max(writes) == 0 else "missed"
        rows.append(("write requests of an idle minute", "all", "0", f"{max(writes):.0f}", reached))
    return "## Goals\n\n" + table(f"{DEFAULT} | topics | goal | measured |", rows) + "\n"


def _decoding(rate: float) -> str:
    over = 1_000_000 - rate
    return (
        "## Decoding\n"
        f"`python -m bench.decoding` reads {rate:,.0f} records a second (goal: 1,000,000; "
        f"{verdict(over, f'{over:,.0f}')}). They are MM2's records, a third of each kind, cached in Spark's memory.\n"
    )


if __name__ == "__main__":
    typer.run(main)
