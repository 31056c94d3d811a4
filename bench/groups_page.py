"""Of bench/figures/benchmarks.md, the part on the age of synced offsets and on a pass over many groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from app.local.jars import PROJECT
from bench.results import MIB, quantile

RESULTS: Final = PROJECT / "bench" / "figures" / "benchmarks-groups.json"
GOAL, MANY_GOAL = 1.0, 10.0
"""Seconds: p99 with 1,000 groups, and until the last of 10,000 is there."""

HEADER = (
    "| | commits | p50 | p90 | p99 | max | CPU-s a minute: job | goal: p99 ≤ 1 s |\n|---|---|---|---|---|---|---|---|"
)
NAMES: Final = {
    "lockstep": "Lockstep, default",
    "mm2": "MM2's own sync, every second",
}


def read(path: Path) -> dict[str, Any] | None:
    """What `bench.group_scenario` saved; None where there is no file."""
    found: dict[str, Any] | None = orjson.loads(path.read_bytes()) if path.exists() else None
    return found


def save(path: Path, found: Mapping[str, Any]) -> None:
    """So that the page can be written again."""
    path.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def section(found: Mapping[str, Any]) -> str:
    """From what `bench.group_scenario.measure_groups` gave."""
    rows = [_row(way, seconds, found["cpu"].get(way)) for way, seconds in found["ages"].items() if seconds]
    parts = [
        _intro(found),
        "\n".join([HEADER, *rows]) + "\n",
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


def _row(way: str, seconds: list[float], cpu: float | None) -> str:
    writer, _, place = way.partition(", ")
    p99 = quantile(seconds, 0.99)
    verdict = "reached" if p99 <= GOAL else f"missed by {p99 - GOAL:.2f} s"
    shown = [f"{quantile(seconds, share):.2f}" for share in (0.5, 0.9, 0.99, 1.0)]
    used = "-" if cpu is None else f"{cpu:.1f}"
    cells = [f"{NAMES[writer]}: {place}", str(len(seconds)), *shown, used, "-" if writer == "mm2" else verdict]
    return "| " + " | ".join(cells) + " |"


def _pass(way: str, found: Mapping[str, Any]) -> str:
    late = found["seconds"] - MANY_GOAL
    goal = "reached" if late <= 0 else f"missed by {late:.1f} s"
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
