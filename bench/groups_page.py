"""Of docs/benchmarks.md, the part on the age of synced offsets and on a pass over many groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from app.local.jars import PROJECT
from bench.results import MIB, quantile

RESULTS: Final = PROJECT / "docs" / "benchmarks-groups.json"
GOAL, MANY_GOAL = 1.0, 10.0
"""Seconds: p99 with 1,000 groups, and until the last of 10,000 is there."""

HEADER = (
    "| | commits | p50 | p90 | p99 | max | CPU-s a minute: job | goal: p99 ≤ 1 s |\n|---|---|---|---|---|---|---|---|"
)
NAMES: Final = {
    "lockstep": "Lockstep, default (polling)",
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
    others = f"; at last while others commit {found['others']:g} times a second" if found["others"] else ""
    beside = "; beside Lockstep it runs at its defaults" if found.get("mm2_defaults") else ", in all rows"
    words = [
        f"## How old a synced offset is\n{found['groups']:,} groups without members read partitions of",
        f"{found['topics']} topics that MM2 has copied. One after the other, at random moments (1 s apart on average),",
        f"commits on the source: at the end of its partitions, or some records before it{others}.",
        "Seconds from the commit's",
        "answer until the target has an offset that was made from it (looked at every 20 ms). MM2's intervals",
        f"(`sync.group.offsets`, `emit.checkpoints`) are at 1 s, the shortest there is{beside}. Only commits at the",
        "end are timed for MM2: of what it copied before it was last started it translates no others.",
        "`python -m bench.group_scenario` makes the table.",
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
    requests = ", ".join(f"{count:,.0f} {api}" for api, count in sorted(found["requests"].items()))
    late = found["seconds"] - MANY_GOAL
    goal = "reached" if late <= 0 else f"missed by {late:.1f} s"
    text = (
        f"{NAMES[way]}: all of {found['groups']:,} groups commit at once: {found['seconds']:.1f} s until the target "
        f"has the last of their offsets, MM2 at its default intervals (goal: ≤ {MANY_GOAL:g} s, {goal}), with these "
        "requests as the job counts "
        f"them (what leaves for many groups at a time is one): {requests}. "
        f"At most {found['peak']['python'] / MIB:.0f} MiB resident in Python and {found['peak']['jvm'] / MIB:.0f} MiB "
        f"in the JVM (looked at every 0.2 s)."
    )
    if found["batch_seconds"] is not None:
        text += (
            f" While nothing changes, the work between two micro-batches takes {found['batch_seconds']:.2f} s and "
            f"{found['batch_requests']:.0f} requests."
        )
    return text + "\n"
