"""The options that every command takes, and what to do with a flow that cannot be observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.command_end import closed_at_end
from app.cli.failures import Failed
from app.cli.output import Output, complain, errors
from app.cli.shared_options import chosen
from app.settings import Settings, load
from sinks.flow_settings import FlowSettings
from sinks.model.changes import Kind
from streaming.errors import LockstepError, WrongUsage
from streaming.nearest import nearest

if TYPE_CHECKING:
    from app.wiring import FlowClusters

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
