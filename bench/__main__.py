"""`make bench`: Lockstep beside MM2 on the same clusters; writes bench/figures/benchmarks.md and its plot."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import psutil
import typer

from app.local.jars import PROJECT
from bench import groups_page
from bench.acl_scenario import measure_acls
from bench.group_scenario import FULL, WAYS, measure_groups
from bench.page import render
from bench.results import Result, read, save
from bench.scenario import SCENARIOS, bench_of, measure
from streaming.errors import LockstepError

RESULTS = PROJECT / "bench" / "figures" / "benchmarks.json"


def main(
    topics: Annotated[str, typer.Option(help="Numbers of topics, comma separated.")] = "2000,5000,500",
    changes: Annotated[int, typer.Option(help="Changes whose arrival is timed, in each way.")] = 50,
    acls: Annotated[bool, typer.Option(help="Whether ACLs are measured as well.")] = True,
    only: Annotated[str, typer.Option(help="Only ways whose name contains one of these, separated by `|`.")] = "",
    groups: Annotated[bool, typer.Option("--groups", help="The age of synced offsets, and nothing else.")] = False,
    render_only: Annotated[
        bool, typer.Option("--render", help="Write the page from bench/figures/benchmarks.json.")
    ] = False,
) -> None:
    """Measures, saves after each way, and writes the page."""
    results, facts = read(RESULTS)
    if groups:
        # Kept in a file of its own.
        groups_page.save(groups_page.RESULTS, measure_groups(FULL, WAYS, ["lockstep"]))
    if not (render_only or groups):
        # Otherwise ways that are no longer measured would stand beside ways of another run.
        results = [row for row in results if row.name in {scenario.name for scenario in SCENARIOS}]
        facts |= _facts() | {"decoding": _decoding()}
        if acls:
            sys.stderr.write("ACLs\n")
            facts |= {"acls": measure_acls(changes)}
            save(RESULTS, results, facts)
        for count in (int(text) for text in topics.split(",") if text):
            for result in _measure(count, changes, only):
                results = [row for row in results if (row.name, row.topics) != (result.name, result.topics)]
                results.append(result)
                save(RESULTS, results, facts)
    render(results, facts, PROJECT / "bench" / "figures")


def _measure(topics: int, changes: int, only: str) -> Iterator[Result]:
    """One result after the other, so that what was measured is kept when a later way fails."""
    with bench_of(topics) as bench:
        for seed, scenario in enumerate(SCENARIOS):
            if any(part in scenario.name for part in only.split("|")):
                sys.stderr.write(f"{topics} topics: {scenario.name}\n")
                try:
                    yield measure(bench, scenario, changes, seed)
                except (TimeoutError, LockstepError) as error:
                    sys.stderr.write(f"left out: {error}\n")


def _facts() -> dict[str, Any]:
    return {
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
    }


def _decoding() -> Any:
    run = subprocess.run([sys.executable, "-m", "bench.decoding"], cwd=PROJECT, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


if __name__ == "__main__":
    typer.run(main)
