"""What benches share that write a page: saved figures, tables, quantiles, verdicts, lines of progress."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from app.local.jars import PROJECT

FIGURES: Final = PROJECT / "bench" / "figures"


def save(path: Path, found: Mapping[str, Any]) -> None:
    """Writes it as JSON, so that a page can be written again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read(path: Path) -> dict[str, Any]:
    """What `save` wrote; empty if there is no file."""
    found: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
    return found


def page_text(page: str) -> dict[str, str]:
    """The text of a page, which figures are put into: "" is what comes before the first heading, the rest by heading."""
    text = (FIGURES / f"{page}-template.md").read_text()
    parts = (part.rstrip("\n") + "\n" for part in re.split(r"^(?=## )", text, flags=re.MULTILINE))
    return {part.partition("\n")[0].removeprefix("## ") if part.startswith("## ") else "": part for part in parts}


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the two nearest (of 50 values, p99 is nearly the largest)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def quantiles(values: Sequence[float]) -> list[str]:
    """Cells: p50, p90, p99, max."""
    return [f"{quantile(values, share):.2f}" if values else "-" for share in (0.5, 0.9, 0.99, 1.0)]


def table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. `head`: the headings, parted by ` | `."""
    first = f"| {head} |"
    return "\n".join([first, "|---" * (first.count("|") - 1) + "|", lines(rows)])


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Of a Markdown table, below its head."""
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in cells) + "|" for cells in rows)


def verdict(over: float, missed_by: str) -> str:
    """`reached`, or by how much the goal was missed. `over`: how far the figure lies beyond the goal."""
    return "reached" if over <= 0 else f"missed by {missed_by}"


def p99_verdict(seconds: Sequence[float], goal: float) -> str:
    """Whether p99 is within this many seconds."""
    over = quantile(seconds, 0.99) - goal
    return verdict(over, f"{over:.2f} s")


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
