"""The one place where what went wrong becomes an exit code, a message on stderr and, with `-o json`, a document.

| what ends a command                     | exit code | `code` of the document     |
|-----------------------------------------|-----------|----------------------------|
| options that do not parse, `WrongUsage` | 2         | `WRONG_USAGE`, or its own  |
| any other `LockstepError`               | 1         | its own                    |
| a question that was answered with no    | 1         | `ABORTED`                  |
| stdout that was closed, or is full      | 1         | none can be printed        |
| an unexpected exception                 | 1         | `DEFECT`                   |
| Ctrl-C (`app/main.py`)                  | 130       | none                       |
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final, TextIO, cast

import typer

from app.cli.output import (
    DONE,
    FAILED,
    WRONG_USAGE,
    RunningCommand,
    complain,
    complain_of,
    interrupted,
    print_json,
    running_command,
)
from app.held_interrupts import INTERRUPTED
from streaming.errors import LockstepError, WrongUsage, prefixed

LOST: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG})
"""Errors of stdout: the reader went away, or the disk is full."""

PARSER_ERROR: Final[Any] = next(base for base in reversed(typer.BadParameter.__mro__) if hasattr(base, "show"))
"""Click's `ClickException`, from Click or from the copy within some versions of Typer."""


TYPERS_WORDS: Final[Mapping[str, str]] = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number",
    "Input should be": "it must be",
    "File '' is a directory": "it is empty: name the properties file",
    "file '' is a directory": "it is empty: name the properties file",
}
"""Phrases of some versions of Typer about a value, and Lockstep's replacements."""


@dataclass(frozen=True, slots=True)
class FailureDocument:
    """The field `error` of a JSON document. `remedy`: None if the message already has it."""

    code: str
    message: str
    remedy: str | None = None


def failure_of(error: LockstepError) -> FailureDocument:
    """Returns an error as programs read it. An error without a code of its own has the code of its cause."""
    cause = error.__cause__
    named = cause if error.code == LockstepError.code and isinstance(cause, LockstepError) else error
    return FailureDocument(named.code, str(error), named.remedy)


class ClosedStdout(io.TextIOBase):
    """Replaces a closed stdout, so that every print fails, also of help pages and tables."""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


Failed = tuple[str, LockstepError]
"""The name of what failed, e.g. a flow, and the error."""


class Failures(list[Failed]):
    """Collects the failures of a command that continues with the rest."""

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        """Prints a LockstepError that the block raises, and keeps it under this name."""
        try:
            yield
        except LockstepError as error:
            complain(prefixed(name, error))
            self.append((name, error))


@contextmanager
def unaudited_at_worst(name: str) -> Iterator[None]:
    """Prints a failure of the block to write the audit topic. The change itself is already in force."""
    try:
        yield
    except LockstepError as error:
        complain(f"{name}: the audit topic lacks this event: {error}")


def with_failures(document: Mapping[str, Any], failed: Sequence[Failed]) -> dict[str, Any]:
    """Returns the document, with `error` if a part of it failed."""
    return with_failure(document, [(name, failure_of(error)) for name, error in failed])


def with_failure(document: Mapping[str, Any], rows: Sequence[tuple[str, FailureDocument]]) -> dict[str, Any]:
    """Returns the document with `error` for failures that another process reported, by name."""
    if not rows:
        return dict(document)
    codes, remedies = {row.code for _, row in rows}, {row.remedy for _, row in rows}
    message = "\n".join(prefixed(name, row.message) for name, row in rows)
    one_code = codes.pop() if len(codes) == 1 else LockstepError.code
    found = FailureDocument(one_code, message, remedies.pop() if len(remedies) == 1 else None)
    return {**document, "error": asdict(found)}


def wants_json(words: Sequence[str]) -> bool:
    """Returns whether a command line asks for JSON, even if it does not parse."""
    after = pairwise(words)
    return (
        "--output=json" in words
        or "-ojson" in words
        or any(option in ("-o", "--output") and value == "json" for option, value in after)
    )


def exit_code_of(command: Callable[[], object], words: Sequence[str]) -> int:
    """Runs a command to its end and returns its exit code. `words`: its command line."""
    if sys.stdout is None:
        # As Python has it where stdout is closed from the start: libraries would print nothing, and say nothing of it.
        sys.stdout = cast(TextIO, ClosedStdout())
    try:
        with running_command() as running:
            try:
                code, failure = _outcome(command)
            except KeyboardInterrupt:
                _tell_interrupted(running)
                raise
            if code == INTERRUPTED:
                _tell_interrupted(running)
            if failure is not None and not running.printed and wants_json(words):
                print_json({"error": asdict(failure)})
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in LOST:
            raise
        return _lost(error)
    except SystemExit as ended:
        # So Click ends where the reader of a page of help went away.
        if not isinstance(ended.__context__, OSError):
            raise
        return _lost(ended.__context__)
    return code


def _tell_interrupted(running: RunningCommand) -> None:
    if not running.silent:
        complain("interrupted")


def _outcome(command: Callable[[], object]) -> tuple[int, FailureDocument | None]:
    try:
        code = command()
    except LockstepError as error:
        complain_of(error)
        return WRONG_USAGE if isinstance(error, WrongUsage) else FAILED, failure_of(error)
    except PARSER_ERROR as error:
        for theirs, ours in TYPERS_WORDS.items():
            error.message = error.message.replace(theirs, ours)
        error.show()
        return int(error.exit_code), FailureDocument(WrongUsage.code, error.format_message(), WrongUsage.remedy)
    except typer.Abort as aborted:
        if isinstance(aborted.__context__, KeyboardInterrupt):
            interrupted("interrupted: nothing was done")
            raise aborted.__context__ from None
        complain("nothing was done")
        return FAILED, FailureDocument("ABORTED", "the answer was not yes")
    except Exception as error:
        if isinstance(error, OSError) and error.errno in LOST:
            raise
        traceback.print_exc()
        return FAILED, FailureDocument(
            "DEFECT", f"{type(error).__name__}: {error}", "please report it, with what stderr says"
        )
    return (code if isinstance(code, int) else DONE), None


def _lost(error: OSError) -> int:
    """Discards what is still buffered. Python would write it at exit, fail again, and print a stack trace."""
    complain(f"stdout cannot be written, so the output is lost: {os.strerror(error.errno or 0)}")
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = None  # as Python has it where stdout is closed from the start
    return FAILED
