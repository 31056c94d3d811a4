"""Data to stdout, as a table or as one JSON document; everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

DONE, FAILED, WRONG_USAGE, PENDING = 0, 1, 2, 3
"""The exit codes: done or nothing to do; failed; wrong usage or configuration; changes pending, or not ready."""

errors = Console(stderr=True, highlight=False, soft_wrap=True)


class Output(str, Enum):
    """`-o`."""

    TEXT = "text"
    JSON = "json"


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout."""
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def print_line(text: str = "") -> None:
    """A line on stdout, as it is."""
    sys.stdout.write(f"{text}\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout; plain text of full width where stdout is no terminal."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    console.print(table)


def _cell(cell: object) -> str:
    if cell is None:
        return "-"
    # Brackets in a topic's configs are no markup.
    return str(cell).replace("[", "\\[")


def complain(text: str) -> None:
    """A line on stderr."""
    errors.print(text, markup=False)
