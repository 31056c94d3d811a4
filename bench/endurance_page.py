"""Of bench/figures/benchmarks.md, the part on what the job and commands make of brokers that go down, and of chaos."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import orjson

from app.local.jars import PROJECT
from bench.command_loop import COMMANDS, Ran

BOUNCES: Final = PROJECT / "bench" / "figures" / "benchmarks-bounces.json"
CHAOS: Final = PROJECT / "bench" / "figures" / "benchmarks-chaos.json"


def save(path: Path, found: Mapping[str, Any]) -> None:
    """As JSON."""
    path.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read(path: Path) -> dict[str, Any] | None:
    """What was saved; None where there is no file."""
    found: dict[str, Any] | None = orjson.loads(path.read_bytes()) if path.exists() else None
    return found


def summed_up(ran: Sequence[Ran]) -> dict[str, Any]:
    """By command how many ran, how many of them failed with a reason, and the slowest; and all that was wrong."""
    by_name = {name: [one for one in ran if one.command == name] for name in COMMANDS}
    counts = {
        name: {
            "ran": len(rows),
            "failed": sum(one.code == 1 for one in rows),
            "slowest": max((one.seconds for one in rows), default=0.0),
        }
        for name, rows in by_name.items()
    }
    reasons = sorted({f"{one.command}: {one.said}" for one in ran if one.code == 1})
    return {"by_name": counts, "reasons": reasons, "wrong": [f"{one.command}: {one.wrong}" for one in ran if one.wrong]}


def bounces_section(found: Mapping[str, Any]) -> str:
    """From what `bench.bounces` saved."""
    rows = [
        "## Brokers that go down without notice",
        "`python -m bench.bounces`, every kind is on. Brokers are killed (SIGKILL) and started again at random moments, "
        "one alone or all at once, away for up to 20 s. The source changes meanwhile. `plan`, `apply --yes`, `status` and "
        "`offsets` run beside the job without a pause. Seconds from when the last cluster serves again until the target "
        f"has the last change of every kind; the goal is {found['limit']:g}. A command may fail with a reason; it must "
        "not crash, hang or say what is not so.\n",
        "| brokers of each cluster | bounces of each | changes of every kind | equal after | commands (failed with a "
        "reason) | wrong | slowest command |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *map(_bounced, found["runs"])]) + "\n"


def _bounced(run: Mapping[str, Any]) -> str:
    commands = run["commands"]["by_name"].values()
    late = f"not within {run['seconds']:.0f} s: {', '.join(run['missing'])}"
    equal = late if run["missing"] else f"{run['seconds']:.1f} s"
    return (
        f"| {run['brokers']} | {run['bounces']} | {run['changes']} | {equal} | "
        f"{sum(one['ran'] for one in commands)} ({sum(one['failed'] for one in commands)}) | "
        f"{len(run['commands']['wrong'])} | {max(one['slowest'] for one in commands):.0f} s |"
    )


def chaos_section(found: Mapping[str, Any]) -> str:
    """From what `bench.chaos` saved."""
    faults = found["faults"]
    storms = storms_of(faults)
    seconds = [storm[0]["seconds"] for storm in storms if storm[0]["seconds"] is not None]
    rows = [
        "## Chaos",
        f"`python -m bench.chaos --faults {found['asked']}`: {len(faults)} faults in {len(storms)} storms of up to "
        f"{max(map(len, storms))} at once, seed {found['seed']}, on two clusters of one broker with MM2 and the job. "
        "Changes of every kind go with each storm. Seconds from a storm's end until source and target are equal, "
        "restarts included.\n",
        f"- Equal after the last storm: {'yes' if found['equal'] else 'no'}. {_times(seconds)} Storms given up: "
        f"{len(storms) - len(seconds)}.",
        f"- Foreign items on the target that were deleted or changed: {len(found['foreign'])}.",
        f"- Writes on the target without an event in the audit topic: {len(found['untold'])}.",
        *_given_up(faults),
        "",
        "| fault | times | equal after, median | slowest | given up |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *_by_fault(faults)]) + "\n"


def storms_of(faults: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The faults that were there at once. Files without `storm`, the number of its first fault, tell it by what all
    faults of one have alike."""

    def told(one: Mapping[str, Any]) -> tuple[Any, ...]:
        return one.get("storm"), one["seconds"], sorted(one["missing"].items())

    return [list(storm) for _, storm in groupby(faults, key=told)]


def _given_up(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    left = dict.fromkeys(
        f"{kind} {why}" for one in faults if one["seconds"] is None for kind, why in one["missing"].items()
    )
    return [f"- Given up, and equal after a later storm: {', '.join(left)}."] if left else []


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "Never equal."
    return f"Until equal, median {statistics.median(seconds):.1f} s, slowest {max(seconds):.1f} s."


def _by_fault(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = []
    for name in sorted({one["fault"] for one in faults}):
        these = [one["seconds"] for one in faults if one["fault"] == name]
        known = [seconds for seconds in these if seconds is not None]
        figures = f"{statistics.median(known):.1f} s | {max(known):.1f} s" if known else "- | -"
        rows.append(f"| {name} | {len(these)} | {figures} | {len(these) - len(known)} |")
    return rows
