"""Commands that look at a flow or speak to its running job: `status`, `topics`, `look`, `reload`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force, loaded, of_each_flow
from app.cli.output import DONE, FAILED, Output, complain, print_json, print_line, print_table
from app.cli.running import JobRefused, NoJobAnswers, ask, ask_reload
from app.passes import status_now
from app.settings import Settings
from app.wiring import FlowClusters
from sinks.engine.model import Kind
from sinks.flow_settings import FlowSettings
from sinks.kinds.topics.effective import REMEDY
from sinks.kinds.topics.listing import list_both, replicated_topics

ANSWERS_WITHIN = 3.0
"""Seconds until a job that does not answer counts as none."""


def status(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """How each flow stands: asks the running job, or looks at the clusters where none answers."""
    flows = _asked(loaded(config, flow)) or _looked(in_force(config, flow))
    if output is Output.JSON:
        print_json({"flows": flows})
    else:
        for row in flows:
            _print_status(row)
    raise typer.Exit(FAILED if any(row["state"] == "ERROR" for row in flows) else DONE)


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
    return [status_now(settings, flow).as_json() for flow in settings.flows]


def _print_status(row: dict[str, Any]) -> None:
    age = row["heartbeat_age_seconds"]
    heartbeat = "no heartbeat seen" if age is None else f"newest heartbeat {age} s old"
    print_line(f"{row['source']}->{row['target']}  {row['state']}  {heartbeat}")
    if row["reason"]:
        print_line(f"  {row['reason']}")
    kinds = [
        (name, kind["task"], kind["drift"], kind["last_success"], kind["reason"]) for name, kind in row["kinds"].items()
    ]
    if kinds:
        print_table("", ("kind", "task", "drift", "last success", "reason"), kinds)
    for name, kind in row["kinds"].items():
        for refusal in kind["refused"]:
            key = " ".join(str(part) for part in refusal["key"].values() if part is not None)
            print_line(f"  backed off: {name} {key}: {refusal['reason']}")
    for line in _effective_lines(row):
        print_line(f"  {line}")


def _effective_lines(row: dict[str, Any]) -> Iterator[str]:
    """A line a group, and one for the groups that are not shown."""
    drift, groups = row["effective"]["drift"], row["effective"]["configs"]
    for one in groups:
        topics = f"{one['topics']} topics" if one["topics"] != 1 else "1 topic"
        where = topics if one["kind"] == Kind.TOPIC_CONFIG else "the brokers"
        values = f"{one['source']} on {row['source']}, {one['target']} on {row['target']}"
        yield f"differs in effect: {one['name']} of {where}: {values}; {REMEDY[Kind(one['kind'])]}"
    if more := drift - sum(one["topics"] or 1 for one in groups):
        yield f"and {more} configs more"


def topics(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """The topics that are replicated now, with their name on both sides."""

    def found(one: FlowSettings, clusters: FlowClusters) -> list[dict[str, str]]:
        found = replicated_topics(list_both(one, clusters.source, clusters.target))
        return [{"upstream": upstream, "remote": remote} for upstream, remote in found.items()]

    flows, failed = of_each_flow(in_force(config, flow), found, "topics")
    if output is Output.JSON:
        print_json({"flows": flows})
    else:
        for row in flows:
            pairs = [(topic["upstream"], topic["remote"]) for topic in row["topics"]]
            print_table(f"{row['source']}->{row['target']}: {len(pairs)} topics", ("upstream", "remote"), pairs)
    raise typer.Exit(FAILED if failed else DONE)


def reload(config: ConfigOption = DEFAULT_CONFIG, output: OutputOption = Output.TEXT) -> None:
    """Lets the running job read its properties file again, all or nothing."""
    document = ask_reload(loaded(config, None))
    if output is Output.JSON:
        print_json(document)
    elif document.get("error"):
        complain(f"nothing changed: {document['error']}")
    else:
        for line in document["changed"] or ["nothing changed"]:
            print_line(line)
    raise typer.Exit(FAILED if document.get("error") else DONE)


def look(
    topics: Annotated[list[str] | None, typer.Argument(help="Upstream topics; none: everything.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until that pass is done.")] = 0.0,
) -> None:
    """Asks the running job for a pass now."""
    if not (math.isfinite(wait) and wait >= 0):
        raise typer.BadParameter("a number of seconds, 0 or more", param_hint="--wait")
    settings = loaded(config, flow)
    body = {"topics": topics or [], "flows": [one.flow.name for one in settings.flows], "wait_seconds": wait}
    document = ask(settings, "POST", "/look", wait * len(settings.flows) + 10, body)
    if output is Output.JSON:
        print_json(document)
    else:
        for name, agreed in document["looked"].items():
            print_line(f"{name}: {'compared' if agreed else 'asked' if not wait else 'not yet compared'}")
    raise typer.Exit(FAILED if wait and not all(document["looked"].values()) else DONE)
