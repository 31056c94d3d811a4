"""The slowest changes right after a start, one after the other: `python -m bench.tail`.

Two clusters, MM2 beside the job. The job starts again and again with a fresh checkpoint. The first start makes the
remote topics.
"""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from app.cli.output import print_table
from bench.pair import HEARTBEATS
from bench.saved_figures import say
from bench.timed_changes import Changes, bench_of

ARRIVES_WITHIN: Final = 120.0
SLOWEST: Final = 5
"""Changes that are shown."""


def main(
    topics: Annotated[int, typer.Option(help="Topics on the source.")] = 60,
    starts: Annotated[int, typer.Option(help="Starts of the job.")] = 5,
    changes: Annotated[int, typer.Option(help="Changes after each start; 0: the start alone is timed.")] = 40,
    gap: Annotated[float, typer.Option(help="Mean seconds between two changes.")] = 0.5,
) -> None:
    """Prints a row for each start: seconds until everything was compared, and of its changes."""
    rows = []
    with bench_of(topics) as pair, pair.mirror(**HEARTBEATS):
        for number in range(starts):
            began = time.monotonic()
            with pair.job() as job:
                job.wait_until_compared()
                compared = time.monotonic() - began
                load = Changes({"a": pair.a.bootstrap}, pair.b.bootstrap, topics, seed=number)
                # A round changes each topic once at most.
                rounds = [min(topics, changes - begun) for begun in range(0, changes, topics)]
                seconds = sorted(one for count in rounds for one in load.run(count, gap, ARRIVES_WITHIN))
            slowest = " ".join(f"{one:.2f}" for one in seconds[-SLOWEST:])
            median = f"{seconds[len(seconds) // 2]:.2f}" if seconds else "-"
            rows.append((str(number), f"{compared:.1f}", str(len(seconds)), median, slowest))
            say(f"start {number}: compared after {compared:.1f} s; median {median}, slowest {slowest}")
    print_table("", ("start", "compared after, s", "changes", "median, s", "slowest, s"), rows)


if __name__ == "__main__":
    typer.run(main)
