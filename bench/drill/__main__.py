"""`python -m bench.drill`: failovers tried out on one pair of clusters, with one MM2 and one job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from app.local.waiting import WaitedTooLong
from bench.drill.round import SIZE, DrillRound, DrillSeries
from bench.drill.snapshot import ISOLATION
from bench.drill.source_load import CLEANER
from bench.failover_figures_page import LOSSES, write
from bench.pair import HEARTBEATS, intervals, pair_of
from bench.saved_figures import say

KEYS: Final = {
    **intervals(1, "refresh.topics", "refresh.groups", "emit.checkpoints"),
    **HEARTBEATS,
    "topics": "drill-.*",
    "groups": "drill-.*",
    "a->b.consumer.isolation.level": ISOLATION,
    # The job writes MM2's offset-syncs to the ledger with its full comparisons; a round is over before the default one.
    "lockstep.full.comparison.interval": "5 seconds",
}


def main(
    rounds: Annotated[int, typer.Option(help="How many, fifty an hour; MM2 is killed in every other.")] = 50,
    out: Annotated[Path, typer.Option(help="The file for the results; the page is written beside it.")] = LOSSES,
) -> None:
    """Plays the rounds, saves after each, and writes the page. A round that does not come to its end is left out."""
    found = DrillSeries(SIZE, 0, [], [], 0, 0, [])
    with (
        pair_of("drill", overrides=CLEANER) as pair,
        pair.mirror(**KEYS) as mirror,
        pair.committing_job(**KEYS) as job,
    ):
        for number in range(rounds):
            kill = number % 2 == 1
            say(f"round {number + 1} of {rounds}{', MM2 is killed' if kill else ''}")
            try:
                DrillRound(pair, mirror, job, number).play(found, kill=kill)
            except WaitedTooLong as error:
                say(f"left out: {error}")
                found.rounds += 1
                found.failed.append(str(error))
            found.save(out)
    sys.stdout.write(write(out))


if __name__ == "__main__":
    typer.run(main)
