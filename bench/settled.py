"""What an idle minute costs the longer nothing changes, beside MM2 at 1 s: `python -m bench.settled`.

Each has two clusters of its own with as many topics. JVMs go on compiling for minutes after they have started, so that
the minute after some changes is not the price of a pair that is idle for hours.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

import typer

from app.cli.output import print_table
from bench.cost import idle_costs
from bench.scenario import DEFAULT, SCENARIOS, Bench, Scenario, bench_of, started
from bench.topic_changes import Changes

WAYS: Final = tuple(one for one in SCENARIOS if one.name in (DEFAULT, "MM2, intervals of 1 s"))
ARRIVES_WITHIN: Final = 300.0
"""Seconds."""
MINUTE: Final = 60.0
WHO: Final = ("the process", "source broker", "target broker")


def main(topics: int = 2000, changes: int = 30, minutes: str = "1,3,5,8,12") -> None:
    """Prints CPU-seconds of minutes, counted from the last of the changes."""
    timed = sorted(int(minute) for minute in minutes.split(","))
    with ExitStack() as stack:
        pairs = [stack.enter_context(bench_of(topics)) for _ in WAYS]
        with ThreadPoolExecutor() as threads:
            worked = [threads.submit(_worked, stack, pair, way, changes) for pair, way in zip(pairs, WAYS, strict=True)]
            groups = [group for one in worked for group in one.result()]
        rows, now = [], 0
        for minute in timed:
            idle_costs((), (minute - 1 - now) * MINUTE)
            costs, now = [one.cpu_seconds for one in idle_costs(groups, MINUTE)], minute
            rows.append(_row(minute, costs))
            sys.stderr.write(f"{rows[-1]}\n")
    header = ("minute", *(f"{way.name}: {who}" for way in WAYS for who in (*WHO, "together")), "ratio")
    print_table("", header, rows)


def _row(minute: int, costs: Sequence[float]) -> tuple[str, ...]:
    ways = [costs[: len(WHO)], costs[len(WHO) :]]
    ratio = f"{sum(ways[0]) / sum(ways[1]):.2f}"
    return (str(minute), *(f"{one:.1f}" for way in ways for one in (*way, sum(way))), ratio)


def _worked(stack: ExitStack, bench: Bench, way: Scenario, changes: int) -> Sequence[Sequence[int]]:
    """Ids of who works and of both brokers, once the last change has arrived."""
    works = stack.enter_context(started(bench, way))
    load = Changes({"a": bench.source.bootstrap}, bench.target.bootstrap, bench.topics, seed=1)
    load.run(1, 0.1, ARRIVES_WITHIN)
    load.run(changes, 1.0, ARRIVES_WITHIN)
    return works.pids, bench.source.pids, bench.target.pids


if __name__ == "__main__":
    typer.run(main)
