"""Options that every command with a properties file takes, said once: how long to wait, how strict to read.

Their values hold for the running command (`chosen`), so that no command has to pass them on.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Final, cast

import typer
from typer.main import get_command

from app.cli.time_options import seconds_between
from app.settings.reading import USUAL, Reading
from sinks.kafka.request_timeout import LONGEST, SHORTEST

_CHOSEN: ContextVar[Reading] = ContextVar("chosen", default=USUAL)

WITHOUT_TIMEOUT: Final = frozenset({"run"})
"""A job's time limits are in its file, for it goes on when this command line is forgotten."""


def chosen() -> Reading:
    """What the running command was given."""
    return _CHOSEN.get()


def _take_timeout(timeout: float | None) -> None:
    _CHOSEN.set(replace(_CHOSEN.get(), timeout=timeout))


def _take_strict(strict: bool) -> None:
    _CHOSEN.set(replace(_CHOSEN.get(), strict=strict))


def _shared(
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            parser=seconds_between(SHORTEST, LONGEST),
            help="How long a cluster may take to answer.  [default: what the file says, or 15]",
            expose_value=False,
            callback=_take_timeout,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Keys that nobody knows are errors.", expose_value=False, callback=_take_strict),
    ] = False,
) -> None:
    """Never called: its options are added to those of the commands."""


@cache
def _options() -> tuple[Any, ...]:
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command()(_shared)
    return tuple(one for one in cast(Any, get_command(made)).params if one.name in ("timeout", "strict"))


def add_shared(command: Any, name: str) -> None:
    """Gives them to a command of Click's that reads a properties file."""
    if any(one.name == "config" for one in command.params):
        command.params.extend(one for one in _options() if one.name != "timeout" or name not in WITHOUT_TIMEOUT)
