"""docs/commands.md has every command, every code that a document of `-o json` can have, and every exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.cli import output
from app.cli.lazy_commands import COMMANDS
from app.docs_pages import SHARED
from app.held_interrupts import INTERRUPTED
from app.local.jars import PROJECT
from streaming.errors import LockstepError

PAGE = (PROJECT / "docs" / "commands.md").read_text(encoding="utf-8")


def errors(of: type[LockstepError] = LockstepError) -> Iterator[type[LockstepError]]:
    yield of
    for below in of.__subclasses__():
        yield from errors(below)


def test_every_code_of_an_error_is_on_the_page() -> None:
    for name, row in COMMANDS.items():
        # What is not imported cannot be raised.
        row.load(name)
    named = set(re.findall(r"`([A-Z_]+)`", PAGE))
    assert {error.code for error in errors()} | {"ABORTED", "DEFECT"} <= named


def test_every_exit_code_is_on_the_page() -> None:
    codes = (output.DONE, output.FAILED, output.WRONG_USAGE, output.PENDING, output.STALE, INTERRUPTED)
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == list(codes)


def test_every_command_and_option_is_on_the_page() -> None:
    for name, row in COMMANDS.items():
        assert f"| `{name}" in PAGE
        for option in row.load(name).params:
            longest = max(option.opts, key=len)
            assert option.param_type_name == "argument" or f"`{longest}" in PAGE or longest in SHARED, longest
