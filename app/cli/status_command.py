"""Commands that look at a flow or speak to its running job: `status`, `topics`, `look`, `reload`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.failures import Failure, with_failure, with_failures
from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force, loaded, of_each_flow
from app.cli.output import DONE, FAILED, PENDING, STALE, Output, complain, print_json, print_line, print_table
from app.cli.plan_text import paused_lines
from app.cli.running import JobRefused, NoJobAnswers, ask, ask_reload
from app.cli.status_text import print_status
from app.settings import Settings
from sinks.engine.model import Kind
from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError

if TYPE_CHECKING:
    from app.wiring import FlowClusters

ANSWERS_WITHIN = 3.0
"""Seconds until a job that does not answer counts as none."""

WATCH_SECONDS = 2.0
HOME_AND_CLEAR = "\x1b[H\x1b[2J"

WatchFlag = Annotated[bool, typer.Option("--watch", help=f"Again every {WATCH_SECONDS:g} s, until Ctrl-C.")]


def status(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    watch: WatchFlag = False,
) -> None:
    """How each flow stands: asks the running job, or looks at the clusters where none answers.

    Exit 1: a flow is in ERROR. Exit 4: MM2's heartbeats have stopped for one (STALE).
    """
    if watch and output is Output.JSON:
        raise typer.BadParameter("for people; ask for JSON once each time", param_hint="--watch")
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


def exit_code(states: Collection[str]) -> int:
    """Of `status`, for flows in these states: the worst one counts."""
    return FAILED if "ERROR" in states else STALE if "STALE" in states else DONE


def _failed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Failure]]:
    """Flows in ERROR; a job of an older version tells their reason alone."""
    for row in rows:
        if row["state"] == "ERROR":
            said = row.get("error") or {"code": LockstepError.code, "message": row["reason"], "remedy": None}
            yield f"{row['source']}->{row['target']}", Failure(said["code"], said["message"] or "", said["remedy"])


def _rows(config: Path, flow: list[str] | None) -> list[dict[str, Any]]:
    return _asked(loaded(config, flow)) or _looked(in_force(config, flow))


def _print(flows: Sequence[dict[str, Any]], *, clear: bool = False) -> None:
    if clear:
        # As it is: of all that is printed, only this is to steer the terminal.
        sys.stdout.write(HOME_AND_CLEAR)
    for row in flows:
        print_status(row)


def _asked(settings: Settings) -> list[dict[str, Any]] | None:
    """What the job says of these flows; None where no job answers, or one of other flows."""
    try:
        answer = ask(settings, "GET", "/status", ANSWERS_WITHIN)
        flows = {(row["source"], row["target"]): row for row in answer["flows"]}
        return [flows[(flow.flow.source, flow.flow.target)] for flow in settings.flows]
    except JobRefused as error:
        complain(f"{error}; looking at the clusters instead")
        return None
    except (NoJobAnswers, KeyError, TypeError):
        return None


def _looked(settings: Settings) -> list[dict[str, Any]]:
    # What asks a job does without Kafka's clients, which take as long to import as all else together.
    from app.passes import status_now

    return [status_now(settings, flow).as_json() for flow in settings.flows]


def topics(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """The topics that are replicated now, with their name on both sides."""
    from sinks.kinds.topics.listing import list_both, replicated_topics

    def found(one: FlowSettings, clusters: FlowClusters) -> list[dict[str, str]]:
        found = replicated_topics(list_both(one, clusters.source, clusters.target))
        return [{"upstream": upstream, "remote": remote} for upstream, remote in found.items()]

    flows, failed = of_each_flow(in_force(config, flow), found, "topics")
    if output is Output.JSON:
        print_json(with_failures({"flows": flows}, failed))
    else:
        for row in flows:
            pairs = [(topic["upstream"], topic["remote"]) for topic in row["topics"]]
            print_table(f"{row['source']}->{row['target']}: {len(pairs)} topics", ("upstream", "remote"), pairs)
    raise typer.Exit(FAILED if failed else DONE)


def reload(config: ConfigOption = DEFAULT_CONFIG, output: OutputOption = Output.TEXT) -> None:
    """Lets the running job read its properties file again, all or nothing."""
    document = ask_reload(loaded(config, None))
    if problem := document.get("error"):
        raise JobRefused(f"nothing changed: {problem}")
    if output is Output.JSON:
        print_json(document)
    else:
        for line in document["changed"] or ["nothing changed"]:
            print_line(line)


def look(
    topics: Annotated[list[str] | None, typer.Argument(help="Upstream topics; none: everything.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    wait: Annotated[float, typer.Option("--wait", help="Wait until that pass is done, so many seconds.")] = 0.0,
) -> None:
    """Asks the running job for a pass now.

    With --wait, exit 1: that pass was not done in time; exit 3: it was, and something still differs, or is paused.
    """
    if not (math.isfinite(wait) and wait >= 0):
        raise typer.BadParameter("a number of seconds, 0 or more", param_hint="--wait")
    settings = loaded(config, flow)
    if topics:
        from app.cli.topic_names import topics_of_flows

        topics_of_flows(settings, topics)
    body = {"topics": topics or [], "flows": [one.flow.name for one in settings.flows], "wait_seconds": wait}
    document = ask(settings, "POST", "/look", wait * len(settings.flows) + 10, body)
    if output is Output.JSON:
        print_json(document)
    else:
        for name, done in document["looked"].items():
            print_line(f"{name}: {'compared' if done else 'asked' if not wait else 'not compared within the time'}")
            for line in _left_over(document, name, bool(done)):
                print_line(f"  {line}")
    raise typer.Exit(_look_code(document) if wait else DONE)


def _left_over(document: Mapping[str, Any], name: str, done: bool) -> Iterator[str]:
    """What the pass did not bring in step; a job of an older version does not say."""
    if reason := document.get("stopped", {}).get(name):
        yield f"stopped: {reason}"
    yield from paused_lines([Kind(kind) for kind in document.get("paused", {}).get(name, ())])
    for kind, count in document.get("drift", {}).get(name, {}).items() if done else ():
        yield f"{kind}: {count} still differ; `lockstep status` says why"


def _look_code(document: Mapping[str, Any]) -> int:
    if not all(document["looked"].values()):
        return FAILED
    return PENDING if document.get("paused") or document.get("drift") else DONE
