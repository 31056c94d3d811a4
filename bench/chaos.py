"""Faults, one after another and several at once, on real brokers, MM2 and the job: `python -m bench.chaos --help`.

After each storm of faults the source changes, and the time until source and target are equal again is measured. At the
end foreign items on the target must be untouched, and the audit topic must have everything that Lockstep created there.
Exit 1 if one of these does not hold.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.local.waiting import WaitedTooLong, wait_for
from bench import endurance_page
from bench.chaos_faults import begun, drawn
from bench.chaos_pair import STARTS_WITHIN, ChaosPair, chaos_pair
from bench.every_kind import tried
from bench.saved_figures import save, say

MOST_AT_ONCE: Final = 4
LASTS: Final = (1.0, 12.0)
"""Seconds that faults last, between these."""

LIMIT: Final = 300.0
"""Seconds from when MM2 has copied the last records until all is equal; then it is given up, and the next one comes."""

COPIED_WITHIN: Final = 900.0
"""Seconds that MM2 may take to go on after a storm."""


def main(
    faults: Annotated[int, typer.Option(help="How many, at least.")] = 100,
    seed: Annotated[int, typer.Option(help="Of what is random.")] = 1,
    minutes: Annotated[float, typer.Option(help="No new storm after so long; 0: no limit.")] = 0,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = endurance_page.CHAOS,
) -> None:
    """Plays the faults, saves after each storm, and prints what came out."""
    ends = time.monotonic() + minutes * 60 if minutes else float("inf")
    found: dict[str, Any] = {"seed": seed, "asked": faults, "faults": [], "equal": False, "foreign": [], "untold": []}
    with tempfile.TemporaryDirectory(prefix="lockstep-chaos-") as folder, chaos_pair(Path(folder), seed) as pair:
        before = pair.foreign()
        while len(found["faults"]) < faults and time.monotonic() < ends:
            found["faults"] += storm(pair, len(found["faults"]))
            save(out, found)
        found["equal"] = not pair.missing() or _seconds_until_equal(pair) is not None
        after = pair.foreign()
        found["foreign"] = [
            f"{name}: {before[name]}, then {after[name]}" for name in before if before[name] != after[name]
        ]
        found["untold"] = pair.untold()
    save(out, found)
    sys.stdout.write(endurance_page.chaos_section(found))
    raise typer.Exit(0 if found["equal"] and not found["foreign"] and not found["untold"] else 1)


def storm(pair: ChaosPair, number: int) -> list[dict[str, Any]]:
    """Some faults at once, and how long it took until all was equal again; None: longer than LIMIT."""
    chosen = drawn(pair.chance, MOST_AT_ONCE)
    say(f"{number + 1}: {', '.join(chosen)}")
    for fault in chosen.values():
        begun(pair, fault)
    # Not a wait for something: how long faults last is what is varied.
    time.sleep(pair.chance.uniform(*LASTS))
    for fault in reversed(chosen.values()):
        fault.end(pair)
    seconds = _seconds_until_equal(pair)
    pair.job.check()
    missing = pair.missing() if seconds is None else {}
    say(f"   equal after {seconds:.1f} s" if seconds is not None else f"   not equal: {missing}")
    return [{"storm": number + 1, "fault": name, "seconds": seconds, "missing": missing} for name in chosen]


def _seconds_until_equal(pair: ChaosPair) -> float | None:
    since = time.monotonic()
    wait_for(partial(tried, pair.change), STARTS_WITHIN, "the source to take a change")
    wait_for(lambda: not {"records", "an answer"} & pair.missing().keys(), COPIED_WITHIN, "MM2 to copy the records")
    try:
        wait_for(lambda: not pair.missing(), LIMIT, "source and target to be equal")
    except WaitedTooLong:
        return None
    return time.monotonic() - since


if __name__ == "__main__":
    typer.run(main)
