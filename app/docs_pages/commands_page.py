"""The list of commands in docs/commands.md, made from the commands: `python -m app.docs_pages.commands_page`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.cli.lazy_commands import COMMANDS
from app.docs_pages.made_part import with_made_part
from app.local.jars import PROJECT

COMMANDS_PAGE = PROJECT / "docs" / "commands.md"
BEGIN, END = "<!-- commands: made from the code by `make docs` -->", "<!-- end of commands -->"
SHARED = frozenset(
    {"--config", "--flow", "--output", "--timeout", "--strict", "--help", "--why", "--dry-run", "--take-over", "--yes"}
)
"""Options of many commands: the page explains them once."""


def commands() -> str:
    """Each command with its arguments and options, and what it does, as a table."""
    rows = [row for name, command in COMMANDS.items() for row in _rows(name, command.load(name))]
    return "\n".join(["| command | does | options |", "|---|---|---|", *rows])


def _rows(name: str, command: Any) -> Iterator[str]:
    """One row, or one for each command below."""
    below = getattr(command, "commands", {})
    for word, one in below.items():
        yield from _rows(f"{name} {word}", one)
    if not below or any(_option(one) for one in command.params):
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        options = [_option(one) for one in command.params if one.param_type_name == "option" and not one.hidden]
        does = " ".join(command.help.partition("\n\n")[0].split())
        usage = " ".join([name, *arguments])
        yield f"| `{usage}` | {does} | {', '.join(filter(None, options))} |".replace("  ", " ")


def _argument(parameter: Any) -> str:
    word = (parameter.metavar or parameter.name or "").upper().strip("{}[].").replace("|", "/")
    shown = f"{word}…" if parameter.nargs == -1 else word
    return shown if parameter.required else f"[{shown}]"


def _option(parameter: Any) -> str:
    """Its long name; nothing for one that nearly all commands have."""
    longest = max(parameter.opts, key=len)
    return "" if longest in SHARED else f"`{longest}`"


def page() -> str:
    """The page with its commands as the code has them."""
    return with_made_part(COMMANDS_PAGE.read_text(encoding="utf-8"), BEGIN, commands(), END)


if __name__ == "__main__":
    COMMANDS_PAGE.write_text(page(), encoding="utf-8")
