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
from bench.matrix.releases import MIRRORS, RELEASES
from bench.matrix.row import VersionRow, run
from bench.saved_figures import read, save, table

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
KIND: Final = "job: "
"""How the steps that keep one kind in step begin."""

MOST_LINES: Final = 4
"""Lines that are shown of what a failed step said."""

Found = Mapping[str, Any]

INTRO: Final = """# What it runs with

Lockstep works with brokers from 2.8 on (KRaft or ZooKeeper), MM2 from 3.9 on, Spark 4.1 to 4.3, Python from 3.10 on, and Java 17 or 21. Spark 4.3 needs Python 3.11 and runs on Java 25 too.

`make matrix` ran real brokers, one for each cluster, and a real MM2 of each version, with every kind turned on. The rows ran on {dates}.

Each row takes these steps in order:

- `validate`, `plan`, `apply`;
- the running job, with a change of each kind, then `offsets`, `status`, `verify`, `preflight`;
- `cutover` and `failback`;
- `failover` after the source was killed;
- the way back, with an MM2 of its own.

The machine was busy: seconds are upper bounds.

"""

RULES: Final = """## What a version lacks
`lockstep validate` asks both clusters and names what they lack. `plan` and `status` list a config as refused that the target's brokers do not know, or whose value they refuse (`segment.bytes` below 1 MiB from 4.0 on).

| version | lacks | what Lockstep does |
|---|---|---|
| brokers before 2.3 | IncrementalAlterConfigs | not tried here. Topic configs are written with the old AlterConfigs; broker configs are refused |
| brokers before 2.7, KRaft before 3.5 | SCRAM users | the kind is `NOT_SUPPORTED`; the other kinds go on |
| brokers before 2.8 | topic ids | a topic that was deleted and created again is not noticed for certain |
| brokers before 3.0 | names of open transactions | a fence waits for them and cannot end them |
| ZooKeeper mode | the metadata log | no metadata-change signal: topics are polled in turns |
| MM2 3 | copies of topics that end in `.internal` or `-internal` | kept in step once MM2 has made the copy; until then [named](configuration.md), and a cutover refuses to leave them behind |

Maven Central has no MM2 of 4.4.0.

## Python and Java
| Python | Java | Spark | what ran | on |
|---|---|---|---|---|
| 3.11.7 | 17 | 4.3.0 | all tests; the rows above | each change |
| 3.10.13 | 17 | 4.2.1 | the unit tests of commands, rules and stream | 2026-11-23 |
| 3.12.1 | 17 | 4.3.0 | all unit tests | 2026-11-24 |
| 3.13.0 | 17 | 4.3.0 | the same unit tests | 2026-11-23 |
| 3.14.10 | 21 | 4.3.0 | all unit tests; `tests/kafka/test_whole_pass.py` between real brokers; `validate`, `plan`, `apply`, `run --once` between brokers of 3.9.2 | 2026-11-24 |
| 3.13.0 | 25 | 4.3.0 | the unit tests of clients; `tests/kafka/test_whole_pass.py` between real brokers | 2026-11-23 |

For 3.14 all packages have wheels. Java 21 ran with Python 3.14 alone. Java 25 was not tried with Spark 4.1 and 4.2.

## Clients of 4.4 and a moved address
Clients of 4.4 say which cluster and node they expect (KIP-1242, `metadata.cluster.check.enable`). Another broker of 4.4 refuses them, and they begin again at `bootstrap.servers`. So a producer follows a moved address to another cluster at once (`tests/kafka/test_moved_address.py`). That helps a planned move. It is also why Lockstep compares each cluster's id with the pinned one: [safety.md](safety.md#the-right-clusters).
"""


def render(rows: Mapping[str, Found]) -> str:
    """The whole page."""
    found = list(rows.values())
    dates = " and ".join(sorted({row["date"] for row in found}))
    return "\n".join([INTRO.format(dates=dates) + _overview(found), _kinds(found), _failed(found), RULES])


def _overview(rows: Sequence[Found]) -> str:
    lines = []
    for row in rows:
        failed = [step["name"] for step in row["steps"] if step["result"] != "ok"]
        good = len(row["steps"]) - len(failed)
        state = f"all {good}" if not failed else f"{good} of {len(row['steps'])}; not {', '.join(failed)}"
        sides = (_brokers(row, side) for side in ("source", "target"))
        lines.append((*sides, row["versions"]["mirror"], state, f"{row['seconds']:.0f}"))
    return "## Rows\n" + table("source | target | MM2 | steps | seconds", lines) + "\n"


def _brokers(row: Found, side: str) -> str:
    mode = "ZooKeeper" if row[side].endswith("zookeeper") else "KRaft"
    return f"{row['versions'][side]} {mode}"


def _kinds(rows: Sequence[Found]) -> str:
    names = list(dict.fromkeys(step["name"] for row in rows for step in row["steps"] if step["name"].startswith(KIND)))
    head = " | ".join(["source → target, MM2", *(name.removeprefix(KIND) for name in names)])
    lines = []
    for row in rows:
        steps = {step["name"]: step for step in row["steps"]}
        lines.append([_title(row), *(_cell(steps.get(name)) for name in names)])
    intro = "Seconds from the change on the source until the target has it, with the job running."
    return f"## A change of each kind\n{intro}\n\n{table(head, lines)}\n"


def _title(row: Found) -> str:
    return f"{_brokers(row, 'source')} → {_brokers(row, 'target')}, {row['versions']['mirror']}"


def _cell(step: Found | None) -> str:
    if step is None:
        return "-"
    return f"{step['seconds']:.1f}" if step["result"] == "ok" else "no"


def _failed(rows: Sequence[Found]) -> str:
    said = [line for row in rows for line in _said(row)]
    return "\n".join(["## What did not work, and what was said", *(said or ["Nothing.\n"])])


def _said(row: Found) -> Iterator[str]:
    failed = [step for step in row["steps"] if step["result"] != "ok"]
    if failed:
        yield f"**{_title(row)}**\n"
        for step in failed:
            yield f"- {step['name']}: `{' '.join(step['said'][:MOST_LINES]).replace('`', '')}`"
        yield ""


if __name__ == "__main__":
    typer.run(main)
