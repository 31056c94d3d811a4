"""docs/compatibility.md, from what `make matrix` found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from app.local.jar_sets import PROJECT

RESULTS: Final = PROJECT / "bench" / "figures" / "compatibility.json"
PAGE: Final = PROJECT / "docs" / "compatibility.md"
KIND: Final = "job: "
"""How the steps that keep one kind in step begin."""

Found = Mapping[str, Any]

INTRO: Final = """# What it runs with

Real brokers and a real MM2 of each version, with every kind turned on and every command as a user types it. `make matrix` makes this page; `make matrix ARGS=3.9:4.3:3.9` runs one row. Each cluster has one broker. The rows ran on {dates}.

A row goes through `validate`, `plan`, `apply`, the running job with a change of each kind, `offsets`, `status`, `verify`, `preflight`, `cutover`, `failback`, `failover` after the source was killed, and the way back with an MM2 of its own. A step that fails is listed with the command's own sentence.

"""

RULES: Final = """## What a version lacks
| version | lacks | what Lockstep does |
|---|---|---|
| brokers before 2.3 | IncrementalAlterConfigs | not tried here. `plan` and `apply` write topic configs with the old AlterConfigs and say so; broker configs are refused |
| brokers before 2.7, KRaft before 3.5 | SCRAM users | the kind is `NOT_SUPPORTED`, and `validate` says so; the other kinds go on |
| brokers before 2.8 | topic ids | a recreated topic is not told from the one before; deletions of topics are held back |
| brokers before 3.0 | transactions by name | a fence waits for open transactions, and cannot abort them |
| ZooKeeper mode | the metadata log | no metadata-change signal: topics are polled in turns |
| MM2 3 | Kafka 4's notion of internal topics | it copies no topic whose name ends in `.internal` or `-internal` |
"""


def save(path: Path, rows: Mapping[str, Found]) -> None:
    """As JSON, by the name of the row."""
    path.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read(path: Path) -> dict[str, Found]:
    """What was saved; nothing where there is no file."""
    found: dict[str, Found] = orjson.loads(path.read_bytes()) if path.exists() else {}
    return found


def render(rows: Mapping[str, Found]) -> str:
    """The whole page."""
    found = list(rows.values())
    dates = " and ".join(sorted({row["date"] for row in found}))
    return "\n".join([INTRO.format(dates=dates) + _overview(found), _kinds(found), _failed(found), RULES])


def _overview(rows: Sequence[Found]) -> str:
    lines = ["## Rows", "| source | target | MM2 | steps | seconds |", "|---|---|---|---|---|"]
    for row in rows:
        failed = [step["name"] for step in row["steps"] if step["result"] != "ok"]
        good = len(row["steps"]) - len(failed)
        state = f"all {good}" if not failed else f"{good} of {len(row['steps'])}; not {', '.join(failed)}"
        lines.append(
            f"| {_brokers(row, 'source')} | {_brokers(row, 'target')} | {_mirror(row)} | {state} | {row['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _brokers(row: Found, side: str) -> str:
    mode = "ZooKeeper" if row[side].endswith("zookeeper") else "KRaft"
    return f"{row['versions'][side]} {mode}"


def _mirror(row: Found) -> str:
    return str(row["versions"]["mirror"])


def _kinds(rows: Sequence[Found]) -> str:
    names = list(dict.fromkeys(step["name"] for row in rows for step in row["steps"] if step["name"].startswith(KIND)))
    lines = [
        "## A change of each kind",
        "Seconds from the change on the source until the target has it, with the job running.",
        f"| source → target, MM2 | {' | '.join(name.removeprefix(KIND) for name in names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    lines.insert(2, "")
    for row in rows:
        steps = {step["name"]: step for step in row["steps"]}
        cells = [_cell(steps.get(name)) for name in names]
        lines.append(f"| {_title(row)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _title(row: Found) -> str:
    return f"{_brokers(row, 'source')} → {_brokers(row, 'target')}, {_mirror(row)}"


def _cell(step: Found | None) -> str:
    if step is None:
        return "-"
    return f"{step['seconds']:.1f}" if step["result"] == "ok" else "no"


def _failed(rows: Sequence[Found]) -> str:
    return "\n".join(["## What did not work, and what was said", *(_said(rows) or ["Nothing.\n"])])


def _said(rows: Sequence[Found]) -> list[str]:
    return [line for row in rows for line in _said_of(row)]


def _said_of(row: Found) -> Iterator[str]:
    failed = [step for step in row["steps"] if step["result"] != "ok"]
    if failed:
        yield f"**{_title(row)}**\n"
        for step in failed:
            yield f"- {step['name']}: {' '.join(step['said'][:4])}"
        yield ""
