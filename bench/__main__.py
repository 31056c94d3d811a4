"""`make bench`: Lockstep beside MM2 on the same clusters; writes bench/figures/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from app.local.jars import PROJECT
from bench import saved_figures
from bench.acl_scenario import measure_acls
from bench.page import render
from bench.scenario import SCENARIOS, Result, bench_of, measure
from streaming.errors import LockstepError

RESULTS = saved_figures.FIGURES / "benchmarks.json"


def main(
    topics: Annotated[str, typer.Option(help="Numbers of topics, comma separated.")] = "2000,5000,500",
    changes: Annotated[int, typer.Option(help="Changes whose arrival is timed, in each way.")] = 50,
    acls: Annotated[bool, typer.Option(help="Whether ACLs are measured as well.")] = True,
    only: Annotated[str, typer.Option(help="Only ways whose name contains one of these, separated by `|`.")] = "",
    render_only: Annotated[
        bool, typer.Option("--render", help="Write the page from bench/figures/benchmarks.json.")
    ] = False,
) -> None:
    """Measures, saves after each way, and writes the page."""
    saved = saved_figures.read(RESULTS)
    results, facts = [Result(**row) for row in saved.get("results", ())], saved.get("facts", {})
    if not render_only:
        # Otherwise ways that are no longer measured would stand beside ways of another run.
        results = [row for row in results if row.name in {scenario.name for scenario in SCENARIOS}]
        facts |= saved_figures.machine() | {"decoding": _decoding()}
        if acls:
            saved_figures.say("ACLs")
            facts |= {"acls": measure_acls(changes)}
            _save(results, facts)
        for count in (int(text) for text in topics.split(",") if text):
            for result in _measure(count, changes, only):
                results = [row for row in results if (row.name, row.topics) != (result.name, result.topics)]
                results.append(result)
                _save(results, facts)
    render(results, facts, saved_figures.FIGURES)


def _save(results: Sequence[Result], facts: dict[str, Any]) -> None:
    saved_figures.save(RESULTS, {"facts": facts, "results": [asdict(result) for result in results]})


def _measure(topics: int, changes: int, only: str) -> Iterator[Result]:
    """One result after the other, so that what was measured is kept when a later way fails."""
    with bench_of(topics) as pair:
        for seed, scenario in enumerate(SCENARIOS):
            if any(part in scenario.name for part in only.split("|")):
                saved_figures.say(f"{topics} topics: {scenario.name}")
                try:
                    yield measure(pair, scenario, topics, changes, seed)
                except (TimeoutError, LockstepError) as error:
                    saved_figures.say(f"left out: {error}")


def _decoding() -> Any:
    run = subprocess.run([sys.executable, "-m", "bench.decoding"], cwd=PROJECT, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


if __name__ == "__main__":
    typer.run(main)
