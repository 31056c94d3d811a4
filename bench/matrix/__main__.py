"""`make matrix`: every command and a change of each kind between brokers and MM2 of several versions, row by row.

Writes bench/figures/compatibility.json after each row, and docs/compatibility.md from it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from bench.matrix.compatibility_page import PAGE, RESULTS, render
from bench.matrix.releases import MIRRORS, RELEASES
from bench.matrix.row import VersionRow, run
from bench.saved_figures import read, save

ROWS = (
    VersionRow("3.9", "4.3", "3.9"),
    VersionRow("4.4", "4.4", "4.3"),
    VersionRow("4.3", "4.3", "4.3"),
    VersionRow("3.9-zookeeper", "4.3", "3.9"),
    VersionRow("2.8-zookeeper", "4.3", "3.9"),
    VersionRow("2.8-zookeeper", "4.3", "4.3"),
    VersionRow("3.9", "3.9", "3.9"),
    VersionRow("4.2", "4.3", "4.3"),
    VersionRow("4.0", "4.3", "4.3"),
    VersionRow("4.3", "4.4", "4.3"),
    VersionRow("4.4", "4.3", "4.3"),
    VersionRow("4.3", "3.9", "3.9"),
    VersionRow("3.9-zookeeper", "3.9", "3.9"),
    VersionRow("3.4", "4.3", "3.9"),
)
"""The ones that matter most come first."""


def main(
    rows: Annotated[
        list[str] | None, typer.Argument(help="source:target:mirror, such as 3.9:4.3:3.9; none: all.")
    ] = None,
    only_page: Annotated[
        bool, typer.Option("--render", help="Write the page from what was saved; run nothing.")
    ] = False,
) -> None:
    """Runs rows, saves each, and writes the page."""
    for row in [] if only_page else [_row(name) for name in rows or ()] or ROWS:
        with tempfile.TemporaryDirectory(prefix="lockstep-matrix-", ignore_cleanup_errors=True) as folder:
            found = run(row, Path(folder))
        save(RESULTS, {**read(RESULTS), row.name: found})
        PAGE.write_text(render(read(RESULTS)), encoding="utf-8")
    PAGE.write_text(render(read(RESULTS)), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


def _row(name: str) -> VersionRow:
    words = name.split(":")
    if len(words) != 3 or not (words[0] in RELEASES and words[1] in RELEASES and words[2] in MIRRORS):
        known = f"brokers {', '.join(RELEASES)}; MM2 {', '.join(MIRRORS)}"
        raise typer.BadParameter(f"{name}: source:target:mirror, of {known}")
    return VersionRow(*words)


if __name__ == "__main__":
    typer.run(main)
