"""Of bench/figures/benchmarks.md, the part on the age of synced offsets and on a pass over many groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bench.saved_figures import FIGURES, MIB, quantile, quantiles, table, verdict

RESULTS: Final = FIGURES / "benchmarks-groups.json"
GOAL, MANY_GOAL = 1.0, 10.0
"""Seconds: p99 with 1,000 groups, and until the last of 10,000 is there."""

HEAD = ("", "commits", "p50", "p90", "p99", "max", "CPU-s a minute: job", "goal: p99 ≤ 1 s")
NAMES: Final = {
    "lockstep": "Lockstep, default",
    "mm2": "MM2's own sync, every second",
}


def section(found: Mapping[str, Any]) -> str:
    """From what `bench.group_scenario.measure_groups` gave."""
    rows = [_row(way, seconds, found["cpu"].get(way)) for way, seconds in found["ages"].items() if seconds]
    parts = [
        _intro(found),
        table(HEAD, rows) + "\n",
        *(_pass(way, one) for way, one in found["passes"].items()),
    ]
    return "\n".join(parts)


def _intro(found: Mapping[str, Any]) -> str:
    others = f" In some rows others commit {found['others']:g} times a second." if found["others"] else ""
    beside = " Beside Lockstep MM2 runs at its defaults." if found.get("mm2_defaults") else ""
    words = [
        f"## How old a synced offset is\n{found['groups']:,} groups without members read partitions of",
        f"{found['topics']} topics that MM2 has copied. Each commits at a random moment, about one a second: at the end of",
        f"its partitions, or some records before it.{others} Seconds from the commit until the target has an offset that",
        "was made from it. MM2 alone has `sync.group.offsets` and `emit.checkpoints` at 1 s, the shortest interval, and",
        f"translates only commits at the end.{beside} Made by `python -m bench.group_scenario`.",
    ]
    return " ".join(words) + "\n"


def _row(way: str, seconds: list[float], cpu: float | None) -> list[str]:
    writer, _, place = way.partition(", ")
    over = quantile(seconds, 0.99) - GOAL
    goal = "-" if writer == "mm2" else verdict(over, f"{over:.2f} s")
    used = "-" if cpu is None else f"{cpu:.1f}"
    return [f"{NAMES[writer]}: {place}", str(len(seconds)), *quantiles(seconds), used, goal]


def _pass(way: str, found: Mapping[str, Any]) -> str:
    late = found["seconds"] - MANY_GOAL
    goal = verdict(late, f"{late:.1f} s")
    text = (
        f"{NAMES[way]}, all of {found['groups']:,} groups commit at once: {found['seconds']:.1f} s until the target "
        f"has the last of their offsets (goal: ≤ {MANY_GOAL:g} s, {goal}). The job sends "
        f"{sum(found['requests'].values()):,.0f} requests for it. It takes at most "
        f"{found['peak']['python'] / MIB:.0f} MiB in Python and {found['peak']['jvm'] / MIB:.0f} MiB in the JVM."
    )
    if found["batch_seconds"] is not None:
        text += (
            f" While nothing changes, the work between two micro-batches takes {found['batch_seconds']:.2f} s and "
            f"{found['batch_requests']:.0f} requests."
        )
    return text + "\n"
