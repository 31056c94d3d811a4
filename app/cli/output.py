"""Prints data to stdout, as a table or as one JSON document, and everything else to stderr.

Text of a cluster is never markup and cannot control the terminal: see `sinks.printable`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sinks.printable import one_line, printable
from streaming.errors import LockstepError

DONE, FAILED, WRONG_USAGE, PENDING, STALE = 0, 1, 2, 3, 4
"""The exit codes. DONE: success, or nothing to do. PENDING: changes are pending, or not ready. STALE: a flow is not
kept in step."""

FULL_WIDTH = 200
"""Width of a table, in characters, if stdout is not a terminal."""

LEAST_WIDTH = 12
"""Minimum width of a column, in characters. With less room, each row becomes a block of lines."""


BETWEEN = 2
"""Spaces between two columns."""

errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


class Output(str, Enum):
    """The values of `-o`."""

    TEXT = "text"
    JSON = "json"


def print_json(document: dict[str, Any]) -> None:
    """Prints one document to stdout. Raises OSError as `print_line`."""
    if (running := _RUNNING.get()) is not None:
        running.printed = True
    _print(printable(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()))


def print_line(text: str = "") -> None:
    """Prints one line to stdout. Raises OSError if stdout is closed or full."""
    _print(one_line(text))


def print_script(text: str) -> None:
    """Prints Lockstep's own lines to stdout unchanged; never text of a cluster or a file. Raises as `print_line`."""
    _print(text.rstrip("\n"))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a title and a table to stdout, as wide as the terminal or COLUMNS.

    Prints every row whole: a cell that is too long continues in the next line. Column heads are never broken.
    """
    console = Console(highlight=False, markup=False, emoji=False, width=_width())
    bold = "" if os.environ.get("NO_COLOR") else "bold"
    cells = [[one_line("-" if cell is None else str(cell)) for cell in row] for row in rows]
    if title:
        console.print(Text(one_line(title), style=bold), soft_wrap=True)
    if cells and not _fits(columns, cells, console.width):
        _print_blocks(console, columns, cells)
        return
    table = Table(box=None, pad_edge=False, padding=(0, BETWEEN // 2), header_style=bold)
    for column in columns:
        table.add_column(Text(column), overflow="fold", min_width=len(column))
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _width() -> int | None:
    """Returns the width of a table by the variable COLUMNS; None: use the terminal's width."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    return None if sys.stdout.isatty() else FULL_WIDTH


def _fits(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Returns whether each column has room for its head in one line, and enough room for its cells."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    least = [max(len(head), min(one, LEAST_WIDTH)) for head, one in zip(columns, widest, strict=True)]
    return sum(least) + BETWEEN * (len(least) - 1) <= width


def _print_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            console.print(Text(f"{column}: {cell}" if column else cell), soft_wrap=True)
        console.print()


def complain(text: str) -> None:
    """Prints one line to stderr. Ignores that the reader of stderr went away."""
    with suppress(OSError):
        sys.stderr.write(f"{one_line(text)}\n")


def complain_of(error: LockstepError) -> None:
    """Prints a line to stderr for each mistake of the error."""
    for line in error.lines:
        complain(line)


# The running command: what is closed when it ends, however it does, and whether it has printed its document.


@dataclass
class RunningCommand:
    """State of the running command. `closing`: closes what it opened, above all plug-ins. `printed`: its JSON document
    was printed, so a later failure prints no document. `silent`: Ctrl-C prints no line of its own any more."""

    closing: ExitStack = field(default_factory=ExitStack)
    printed: bool = False
    silent: bool = False


_RUNNING: ContextVar[RunningCommand | None] = ContextVar("running", default=None)


@contextmanager
def running_command() -> Iterator[RunningCommand]:
    running = RunningCommand()
    with running.closing:
        token = _RUNNING.set(running)
        try:
            yield running
        finally:
            _RUNNING.reset(token)


def closed_at_end(close: Callable[[], None]) -> None:
    """Registers `close` for the end of the running command. If no command runs, the caller closes."""
    if (running := _RUNNING.get()) is not None:
        running.closing.callback(close)


def interrupted(text: str) -> None:
    """Prints how far an interrupted command came, in place of the plain line that Ctrl-C prints."""
    complain(text)
    until_interrupted()


def until_interrupted() -> None:
    """Keeps Ctrl-C from printing a line: the command runs until it comes."""
    if (running := _RUNNING.get()) is not None:
        running.silent = True
