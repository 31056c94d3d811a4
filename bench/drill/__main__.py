"""`python -m bench.drill`: failovers tried out; prints what came out, and keeps it in a file of JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bench.drill.run import FULL, MANY, RESULTS, SMOKE, WRITERS, Way, drill
from bench.drill.section import section
from bench.failover_figures_page import LOSSES, PREDICTIONS
from bench.failover_figures_page import write as write_losses


def main(
    rounds: Annotated[int, typer.Option(help="How many; MM2 is killed in every other.")] = 8,
    writer: Annotated[
        str, typer.Option(help="Who commits on the target: lockstep, or mm2 with its own sync.")
    ] = "lockstep",
    read_committed: Annotated[bool, typer.Option(help="Whether MM2 leaves out aborted transactions.")] = True,
    verified: Annotated[
        bool, typer.Option(help="Whether exact offsets of `lockstep verify` are tried as well.")
    ] = False,
    smoke: Annotated[bool, typer.Option(help="Short rounds with few groups: two of them take two minutes.")] = False,
    many: Annotated[
        bool,
        typer.Option(help="Shorter rounds, fifty an hour, for bench/figures/benchmarks-failover.md."),
    ] = False,
    first: Annotated[int, typer.Option(help="The number of the first round, for rounds that others did not play.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The file for the results.")] = None,
) -> None:
    """Plays the rounds, saves after each, and prints what came out."""
    if writer not in WRITERS:
        raise typer.BadParameter(f"{writer}: one of {', '.join(WRITERS)}", param_hint="--writer")
    size = MANY if many else SMOKE if smoke else FULL
    saved = out or (LOSSES if many else RESULTS)
    found = drill(rounds, Way(writer, read_committed, verified), size, saved, first)
    sys.stdout.write(write_losses(saved) if saved.resolve() in (LOSSES, PREDICTIONS) else section(found))


if __name__ == "__main__":
    typer.run(main)
