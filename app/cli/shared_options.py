"""The options that commands share, and the start that every command shares."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer
from typer.main import get_command

from app.cli.failures import Failures, with_failures
from app.cli.output import Output, closed_at_end, errors, print_json, print_table
from app.settings import Settings, load
from app.settings.job_settings import USUAL, Reading
from sinks.flow_settings import FlowSettings
from sinks.kafka.request_timeout import LONGEST, SHORTEST
from sinks.model.changes import Kind
from sinks.model.times import time_of
from streaming.durations import seconds_of
from streaming.errors import WrongUsage
from streaming.message_words import nearest, number_of

if TYPE_CHECKING:
    from app.wiring import FlowClusters

# What options take. A parser gets an option's default as well.

SINCE: Final = "a time ago such as 90s, 15m, 1h or 2d, or a time in UTC such as 2026-11-22 or 2026-11-22T14:30:00Z"

BEGINNING: Final = datetime.min.replace(tzinfo=timezone.utc)

KIND_NAMES = tuple(kind.value for kind in Kind)


def parse_since(text: str | None, now: datetime) -> datetime:
    """Parses `--since`. None means from the beginning. Raises BadParameter."""
    if text is None:
        return BEGINNING
    try:
        return now - timedelta(seconds=seconds_of(text.strip()))
    except (ValueError, OverflowError):
        pass
    try:
        found = time_of(text)
    except ValueError:
        raise typer.BadParameter(f"{text}: write {SINCE}", param_hint="--since") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
    if found > now:
        raise typer.BadParameter(f"{text}: this is in the future; write {SINCE}", param_hint="--since")
    return found


def seconds(text: str | float, least: float = 0, most: float = math.inf) -> float:
    """Parses a number of seconds. Raises BadParameter."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and least <= found <= most):
        raise typer.BadParameter(f"{text}: a number of seconds, {_span(least, most)}")
    return found


def whole(least: int, most: float = math.inf) -> Callable[[str | int], int]:
    """Returns a parser of whole numbers from `least` to `most`. It raises BadParameter for others."""

    def parse(text: str | int) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if not least <= found <= most:
            raise typer.BadParameter(f"{text}: {_span(least, most)}")
        return found

    return parse


def _span(least: float, most: float) -> str:
    return f"{least:g} or more" if most == math.inf else f"{least:g} to {most:.0f}"


def kind_named(text: str, offered: Sequence[str] = KIND_NAMES) -> Kind:
    """Parses a kind. Raises BadParameter with the `offered` kinds and the nearest of them."""
    if text in KIND_NAMES:
        return Kind(text)
    near = nearest(text, KIND_NAMES)
    hint = f"; nearest: {near}" if near in offered else ""
    raise typer.BadParameter(f"{text}: one of {', '.join(offered)}{hint}")


ConfigOption = Annotated[
    Path, typer.Option("--config", help="MM2's properties file.", show_default=True, dir_okay=False)
]
FlowOption = Annotated[
    list[str] | None,
    typer.Option("--flow", help="Only this flow; may be repeated. Default: all enabled flows."),
]
OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Text for people, or one JSON document for programs.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
KindArgument = Annotated[
    Kind, typer.Argument(help="The kind of resource.", parser=kind_named, autocompletion=lambda: list(KIND_NAMES))
]
KindsOption = Annotated[
    list[Kind] | None,
    typer.Option(
        "--kind",
        help=f"Only this kind ({', '.join(KIND_NAMES)}); may be repeated. Default: all kinds.",
        parser=kind_named,
        autocompletion=lambda: list(KIND_NAMES),
    ),
]

DEFAULT_CONFIG = Path("conf/mirror.properties")

# Every command with a properties file takes the two options of `_shared`. Their values hold for the running command, so
# that no command has to pass them on.

_CHOSEN: ContextVar[Reading] = ContextVar("chosen", default=USUAL)

WITHOUT_TIMEOUT: Final = frozenset({"run"})
"""Commands without `--timeout`: the job's time limits are in its file."""


def chosen() -> Reading:
    """Returns the values of --timeout and --strict of the running command."""
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
            parser=partial(seconds, least=SHORTEST, most=LONGEST),
            help="How long a cluster may take to answer.  [default: what the file says, or 15]",
            expose_value=False,
            callback=_take_timeout,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Unknown keys are errors.", expose_value=False, callback=_take_strict),
    ] = False,
) -> None:
    """Declares the options that each command gets. It is never called."""


@cache
def _options() -> tuple[Any, ...]:
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command()(_shared)
    return tuple(one for one in cast(Any, get_command(made)).params if one.name in ("timeout", "strict"))


def add_shared(command: Any, name: str) -> None:
    """Adds the shared options to a Click command that reads a properties file."""
    if any(one.name == "config" for one in command.params):
        command.params.extend(one for one in _options() if one.name != "timeout" or name not in WITHOUT_TIMEOUT)


def present(config: Path) -> Path:
    """Returns the file to read. Raises WrongUsage if no file was named and the default one does not exist."""
    if config == DEFAULT_CONFIG and not config.exists():
        raise WrongUsage(f"there is no {DEFAULT_CONFIG} in {Path.cwd()}: name the properties file with --config")
    return config


def loaded(config: Path, flow: list[str] | None) -> Settings:
    """Returns the settings of the chosen flows, from the file alone.

    Raises ConfigurationError with every mistake, and WrongUsage if there is no file.
    """
    settings = load(present(config), flow or (), reading=chosen())
    closed_at_end(settings.close)
    return settings


def with_overrides(
    config: Path, flow: list[str] | None, before: Settings | None = None, *, job: bool = False
) -> Settings:
    """Returns the settings as `loaded`, with the overrides in the flows' ledgers over the file. `before`: the running
    job's settings.

    `job`: True lets a flow with refused overrides wait. For a command they are a mistake. The plug-ins are closed when
    the command ends; with `before`, the job closes them.
    """
    # These import Kafka's clients, which a command that asks the running job does not need.
    from app.overrides.with_overrides import load_with_overrides

    settings = load_with_overrides(present(config), flow or (), before=before, job=job, reading=chosen())
    if before is None:
        closed_at_end(settings.close)
    return settings


def print_of_each_flow(
    settings: Settings,
    output: Output,
    found: Callable[[FlowSettings, FlowClusters], Sequence[dict[str, str] | str]],
    name: str,
    columns: Sequence[str],
) -> Failures:
    """Prints a row for each flow, with `found` under this `name`, or a table of it. Returns the flows that failed."""
    from app.wiring import both_clusters, guard

    flows: list[dict[str, Any]] = []
    failed = Failures()
    for one in settings.flows:
        with failed.noted(one.flow.name), both_clusters(settings, one) as clusters:
            guard(one, clusters.source, clusters.target).ids()
            flows.append(one.flow.as_json() | {name: found(one, clusters)})
    if output is Output.JSON:
        print_json(with_failures({"flows": flows}, failed))
        return failed
    for row in flows:
        rows = [(one,) if isinstance(one, str) else tuple(one.values()) for one in row[name]]
        title = f"{row['source']}->{row['target']}: {number_of(len(rows), name.removesuffix('s'))}"
        print_table(title, columns, rows)
    return failed


def need_terminal(why: str, instead: str = "say --yes") -> None:
    """Raises WrongUsage if there is no terminal. `why`: the question. `instead`: how to answer it otherwise."""
    if not sys.stdin.isatty():
        raise WrongUsage(f"{why}, and there is no terminal to ask on: {instead}")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar on stderr from the first step on, if stderr is a terminal. `what`: its label."""
    if not errors.is_terminal:
        yield lambda done, total: None
        return
    # The import takes a tenth of a second, and few commands take long.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
