"""The options that every command takes, and what to do with a flow that cannot be observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.failures import Failed
from app.cli.output import Output, closed_at_end, complain, errors
from app.settings import Settings, load
from sinks.flow_settings import FlowSettings
from sinks.model.changes import Kind
from streaming.errors import LockstepError, WrongUsage
from streaming.nearest import nearest

if TYPE_CHECKING:
    from app.wiring import FlowClusters

import math
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from typing import Final, cast

from typer.main import get_command

from app.settings.job_settings import USUAL, Reading
from sinks.kafka.request_timeout import LONGEST, SHORTEST
from sinks.model.times import time_of
from streaming.durations import seconds_of

ConfigOption = Annotated[
    Path, typer.Option("--config", help="The properties file, MM2's own.", show_default=True, dir_okay=False)
]
FlowOption = Annotated[
    list[str] | None,
    typer.Option("--flow", help="Only this flow; may be repeated. Default: every enabled flow."),
]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="For people, or one document for programs.")]


KIND_NAMES = tuple(kind.value for kind in Kind)


def kind_named(text: str, offered: Sequence[str] = KIND_NAMES) -> Kind:
    """Raises typer.BadParameter with the kinds that are offered, and the nearest, if that is one of them."""
    try:
        return Kind(text)
    except ValueError:
        near = nearest(text, KIND_NAMES)
        hint = f"; nearest: {near}" if near in offered else ""
        raise typer.BadParameter(f"{text}: one of {', '.join(offered)}{hint}") from None


KindArgument = Annotated[
    Kind, typer.Argument(help="The kind of resource.", parser=kind_named, autocompletion=lambda: list(KIND_NAMES))
]
KindsOption = Annotated[
    list[Kind] | None,
    typer.Option(
        "--kind",
        help=f"Only this kind ({', '.join(KIND_NAMES)}); may be repeated. Default: every one.",
        parser=kind_named,
        autocompletion=lambda: list(KIND_NAMES),
    ),
]

DEFAULT_CONFIG = Path("conf/mirror.properties")


def present(config: Path) -> Path:
    """The file that is to be read. Raises WrongUsage where none was named, and the usual one is not there."""
    if config == DEFAULT_CONFIG and not config.exists():
        raise WrongUsage(f"there is no {DEFAULT_CONFIG} in {Path.cwd()}: name the properties file with --config")
    return config


def loaded(config: Path, flow: list[str] | None) -> Settings:
    """The settings of the flows asked for, as the file has them.

    Raises ConfigurationError with every mistake, WrongUsage where there is no file to be read.
    """
    settings = load(present(config), flow or (), reading=chosen())
    closed_at_end(settings.close)
    return settings


def with_overrides(
    config: Path, flow: list[str] | None, before: Settings | None = None, *, job: bool = False
) -> Settings:
    """As `loaded`, with the overrides in the flows' ledgers over the file; `before`: of the running job.

    `job`: a flow whose overrides are refused waits; for a command they are a mistake. Plug-ins are closed when the
    command ends; with `before`, by the job.
    """
    # Kafka's clients, which a command that asks the running job does not need.
    from app.overrides.with_overrides import load_with_overrides

    settings = load_with_overrides(present(config), flow or (), before=before, job=job, reading=chosen())
    if before is None:
        closed_at_end(settings.close)
    return settings


def of_each_flow(
    settings: Settings, found: Callable[[FlowSettings, FlowClusters], Sequence[Any]], name: str
) -> tuple[list[dict[str, Any]], list[Failed]]:
    """A row for each flow with what was found under this name; and the flows that failed, which are complained of."""
    from app.wiring import both_clusters, guard

    flows: list[dict[str, Any]] = []
    failed: list[Failed] = []
    for one in settings.flows:
        try:
            with both_clusters(settings, one) as clusters:
                guard(one, clusters.source, clusters.target).ids()
                flows.append({"source": one.flow.source, "target": one.flow.target, name: found(one, clusters)})
        except LockstepError as error:
            complain(f"{one.flow.name}: {error}")
            failed.append((one.flow.name, error))
    return flows, failed


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that appears at the first step; none where stderr is no terminal."""
    # A tenth of a second of imports, for the few commands that take long.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# Options that every command with a properties file takes, said once: how long to wait, how strict to read.
#
# Their values hold for the running command (`chosen`), so that no command has to pass them on.


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


# Options that are a time: `--since`, and numbers of seconds.


ALLOWED: Final = "a time ago such as 90s, 15m, 1h or 2d, or a time in UTC such as 2026-11-22 or 2026-11-22T14:30:00Z"

BEGINNING: Final = datetime.min.replace(tzinfo=timezone.utc)


def parse_since(text: str | None, now: datetime) -> datetime:
    """The time meant; the beginning of all times for None. Raises typer.BadParameter that says what is allowed."""
    if text is None:
        return BEGINNING
    try:
        return now - timedelta(seconds=seconds_of(text.strip()))
    except (ValueError, OverflowError):
        pass
    try:
        found = time_of(text)
    except ValueError:
        raise typer.BadParameter(f"{text}: write {ALLOWED}", param_hint="--since") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
    if found > now:
        raise typer.BadParameter(f"{text}: this is in the future; write {ALLOWED}", param_hint="--since")
    return found


def seconds(text: str | float) -> float:
    """For an option's `parser`, which gets its default as well. Raises BadParameter."""
    return _number(text, 0, math.inf, "0 or more")


def seconds_between(least: float, most: float) -> Callable[[str | float], float]:
    """As `seconds`, for an option that takes no more and no less than these."""
    return partial(_number, least=least, most=most, allowed=f"{least:g} to {most:g}")


def _number(text: str | float, least: float, most: float, allowed: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and least <= found <= most):
        raise typer.BadParameter(f"{text}: a number of seconds, {allowed}")
    return found
