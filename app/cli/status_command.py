"""`lockstep status` and `lockstep topics`: how each flow stands, and what it replicates."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.failures import FailureDocument, with_failure, with_failures
from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded, of_each_flow, with_overrides
from app.cli.output import DONE, FAILED, STALE, Output, complain, print_json, print_table
from app.cli.running import JobRefused, NoJobAnswers, address, ask
from app.cli.status_text import print_status
from app.settings import Settings
from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError
from streaming.number_of import number_of

if TYPE_CHECKING:
    from app.wiring import FlowClusters

JOB_ANSWERS_WITHIN = 3.0
"""Seconds until a job that does not answer counts as none."""

NOT_KEPT = frozenset({"STALE", "NO_JOB"})
"""States in which the target falls behind."""

WATCH_SECONDS = 2.0
HOME_AND_CLEAR = "\x1b[H\x1b[2J"

WatchFlag = Annotated[bool, typer.Option("--watch", help=f"Again every {WATCH_SECONDS:g} s, until Ctrl-C.")]


def status(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    watch: WatchFlag = False,
) -> None:
    """How each flow stands: asks the running job, or observes the clusters where none answers.

    Exit 1: a flow is in ERROR. Exit 4: one is not kept in step: MM2's heartbeats have stopped (STALE), or no job
    answers (NO_JOB).
    """
    if watch and output is Output.JSON:
        raise typer.BadParameter(
            "prints for people, again and again: leave out `-o json`, or call `status -o json` each time",
            param_hint="--watch",
        )
    while watch:
        _print(_rows(config, flow), clear=sys.stdout.isatty())
        sys.stdout.flush()
        time.sleep(WATCH_SECONDS)
    flows = _rows(config, flow)
    if output is Output.JSON:
        print_json(with_failure({"flows": flows}, list(_failed(flows))))
    else:
        _print(flows)
    raise typer.Exit(exit_code({row["state"] for row in flows}))


def exit_code(states: Set[str]) -> int:
    """Of `status`, for flows in these states: the worst one counts."""
    return FAILED if "ERROR" in states else STALE if states & NOT_KEPT else DONE


def _failed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, FailureDocument]]:
    """Flows in ERROR; a job of an older version tells their reason alone."""
    for row in rows:
        if row["state"] == "ERROR":
            said = row.get("error") or {"code": LockstepError.code, "message": row["reason"], "remedy": None}
            yield (
                f"{row['source']}->{row['target']}",
                FailureDocument(said["code"], said["message"] or "", said["remedy"]),
            )


def _rows(config: Path, flow: list[str] | None) -> list[dict[str, Any]]:
    try:
        return job_rows(loaded(config, flow))
    except JobRefused as error:
        complain(f"{error}; observing the clusters instead")
        return _observed_rows(with_overrides(config, flow), str(error))
    except NoJobAnswers as error:
        return _observed_rows(with_overrides(config, flow), str(error))


def _print(flows: Sequence[dict[str, Any]], *, clear: bool = False) -> None:
    if clear:
        # As it is: of all that is printed, only this is to steer the terminal.
        sys.stdout.write(HOME_AND_CLEAR)
    for row in flows:
        print_status(row)


def job_rows(settings: Settings) -> list[dict[str, Any]]:
    """What the job says of these flows. Raises NoJobAnswers, also where the job has not all of them, and JobRefused."""
    answer = ask(settings, "GET", "/status", JOB_ANSWERS_WITHIN)
    try:
        flows = {(row["source"], row["target"]): row for row in answer["flows"]}
    except (KeyError, TypeError) as error:
        raise NoJobAnswers(f"what answers at {address(settings)} is no job of this version's") from error
    missing = [one.flow.name for one in settings.flows if (one.flow.source, one.flow.target) not in flows]
    if missing:
        raise NoJobAnswers(f"the job at {address(settings)} has no flow {', '.join(missing)}")
    return [flows[(one.flow.source, one.flow.target)] for one in settings.flows]


def _observed_rows(settings: Settings, silent: str) -> list[dict[str, Any]]:
    # What asks a job does without Kafka's clients, which take as long to import as all else together.
    from app.passes import status_now

    return [status_now(settings, flow, silent).as_json() for flow in settings.flows]


def topics(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """The topics that are replicated now, with their name on both sides."""
    from sinks.kinds.listing import list_both, replicated_topics

    def found(one: FlowSettings, clusters: FlowClusters) -> list[dict[str, str]]:
        found = replicated_topics(list_both(one, clusters.source, clusters.target))
        return [{"upstream": upstream, "remote": remote} for upstream, remote in found.items()]

    flows, failed = of_each_flow(with_overrides(config, flow), found, "topics")
    if output is Output.JSON:
        print_json(with_failures({"flows": flows}, failed))
    else:
        for row in flows:
            pairs = [(topic["upstream"], topic["remote"]) for topic in row["topics"]]
            title = f"{row['source']}->{row['target']}: {number_of(len(pairs), 'topic')}"
            print_table(title, ("upstream", "remote"), pairs)
    raise typer.Exit(FAILED if failed else DONE)
