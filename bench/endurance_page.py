"""Of bench/figures/benchmarks.md, the part on what the job and commands make of brokers that go down, and of chaos."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from bench.command_loop import COMMANDS, Ran
from bench.saved_figures import FIGURES, table

BOUNCES: Final = FIGURES / "benchmarks-bounces.json"
CHAOS: Final = FIGURES / "benchmarks-chaos.json"


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


BOUNCES_INTRO: Final = """## Brokers that go down without notice
`python -m bench.bounces`, every kind is on. Brokers are killed (SIGKILL) and started again at random moments, one alone or all at once, away for up to 20 s. The source changes meanwhile. `plan`, `apply --yes`, `status` and `offsets` run beside the job without a pause. Seconds from when the last cluster serves again until the target has the last change of every kind; the goal is {limit:g}. A command may fail with a reason; it must not crash, hang or say what is not so.

"""

BOUNCES_HEAD: Final = (
    "brokers of each cluster",
    "bounces of each",
    "changes of every kind",
    "equal after",
    "commands (failed with a reason)",
    "wrong",
    "slowest command",
)

CHAOS_INTRO: Final = """## Chaos
`python -m bench.chaos --faults {asked}`: {faults} faults in {storms} storms of up to {most} at once, seed {seed}, on two clusters of one broker with MM2 and the job. Changes of every kind go with each storm. Seconds from a storm's end until source and target are equal, restarts included.

- Equal after the last storm: {equal}. {times} Storms given up: {given_up}.
- Foreign items on the target that were deleted or changed: {foreign}.
- Writes on the target without an event in the audit topic: {untold}.
"""


def bounces_section(found: Mapping[str, Any]) -> str:
    """From what `bench.bounces` saved."""
    return BOUNCES_INTRO.format(**found) + table(BOUNCES_HEAD, map(_bounced, found["runs"])) + "\n"


def _bounced(run: Mapping[str, Any]) -> list[str]:
    commands = run["commands"]["by_name"].values()
    late = f"not within {run['seconds']:.0f} s: {', '.join(run['missing'])}"
    return [
        *(str(run[name]) for name in ("brokers", "bounces", "changes")),
        late if run["missing"] else f"{run['seconds']:.1f} s",
        f"{sum(one['ran'] for one in commands)} ({sum(one['failed'] for one in commands)})",
        str(len(run["commands"]["wrong"])),
        f"{max(one['slowest'] for one in commands):.0f} s",
    ]


def chaos_section(found: Mapping[str, Any]) -> str:
    """From what `bench.chaos` saved."""
    storms = [list(storm) for _, storm in groupby(found["faults"], key=itemgetter("storm"))]
    seconds = [storm[0]["seconds"] for storm in storms if storm[0]["seconds"] is not None]
    intro = CHAOS_INTRO.format(
        asked=found["asked"],
        seed=found["seed"],
        faults=len(found["faults"]),
        storms=len(storms),
        most=max(map(len, storms)),
        equal="yes" if found["equal"] else "no",
        times=_times(seconds),
        given_up=len(storms) - len(seconds),
        foreign=len(found["foreign"]),
        untold=len(found["untold"]),
    )
    head = ("fault", "times", "equal after, median", "slowest", "given up")
    return intro + "".join(_given_up(found["faults"])) + "\n" + table(head, _by_fault(found["faults"])) + "\n"


def _given_up(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    left = dict.fromkeys(
        f"{kind} {why}" for one in faults if one["seconds"] is None for kind, why in one["missing"].items()
    )
    return [f"- Given up, and equal after a later storm: {', '.join(left)}.\n"] if left else []


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "Never equal."
    return f"Until equal, median {statistics.median(seconds):.1f} s, slowest {max(seconds):.1f} s."


def _by_fault(faults: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for name in sorted({one["fault"] for one in faults}):
        these = [one["seconds"] for one in faults if one["fault"] == name]
        known = [seconds for seconds in these if seconds is not None]
        figures = [f"{statistics.median(known):.1f} s", f"{max(known):.1f} s"] if known else ["-", "-"]
        yield [name, str(len(these)), *figures, str(len(these) - len(known))]
