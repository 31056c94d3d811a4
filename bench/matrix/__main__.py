"""`make matrix`: every command and a change of each kind between brokers and MM2 of several versions, row by row.

Writes bench/figures/compatibility.json after each row, and docs/compatibility.md from it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.local.jar_sets import PROJECT
from bench.matrix.releases import MIRRORS, RELEASES, is_zookeeper
from bench.matrix.row import VersionRow, run
from bench.saved_figures import lines, read, save, table

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


# docs/compatibility.md, from what `make matrix` found.

RESULTS: Final = PROJECT / "bench" / "figures" / "compatibility.json"
PAGE: Final = PROJECT / "docs" / "compatibility.md"
TEMPLATE: Final = PROJECT / "bench" / "matrix" / "compatibility-page.md"
KIND: Final = "job: "
"""How the steps that keep one kind in step begin."""

MOST_LINES: Final = 4
"""Lines that are shown of what a failed step said."""

Found = Mapping[str, Any]


def render(rows: Mapping[str, Found]) -> str:
    found = list(rows.values())
    said = [line for row in found for line in _said(row)]
    return TEMPLATE.read_text(encoding="utf-8").format(
        dates=" and ".join(sorted({row["date"] for row in found})),
        rows=lines(map(_overview, found)),
        kinds=_kinds(found),
        failed="\n".join(said or ["Nothing.\n"]),
    )


def _overview(row: Found) -> Sequence[str]:
    failed, steps = [step["name"] for step in _failures(row)], len(row["steps"])
    state = f"{steps - len(failed)} of {steps}; not {', '.join(failed)}" if failed else f"all {steps}"
    sides = (_brokers(row, side) for side in ("source", "target"))
    return *sides, row["versions"]["mirror"], state, f"{row['seconds']:.0f}"


def _failures(row: Found) -> list[Found]:
    return [step for step in row["steps"] if step["result"] != "ok"]


def _brokers(row: Found, side: str) -> str:
    return f"{row['versions'][side]} {'ZooKeeper' if is_zookeeper(row[side]) else 'KRaft'}"


def _kinds(rows: Sequence[Found]) -> str:
    names = list(dict.fromkeys(step["name"] for row in rows for step in row["steps"] if step["name"].startswith(KIND)))
    head = " | ".join(["source → target, MM2", *(name.removeprefix(KIND) for name in names)])
    cells = []
    for row in rows:
        steps = {step["name"]: step for step in row["steps"]}
        cells.append([_title(row), *(_cell(steps.get(name)) for name in names)])
    return table(head, cells)


def _title(row: Found) -> str:
    return f"{_brokers(row, 'source')} → {_brokers(row, 'target')}, {row['versions']['mirror']}"


def _cell(step: Found | None) -> str:
    if step is None:
        return "-"
    return f"{step['seconds']:.1f}" if step["result"] == "ok" else "no"


def _said(row: Found) -> Iterator[str]:
    if failed := _failures(row):
        yield f"**{_title(row)}**\n"
        for step in failed:
            yield f"- {step['name']}: `{' '.join(step['said'][:MOST_LINES]).replace('`', '')}`"
        yield ""


if __name__ == "__main__":
    typer.run(main)
