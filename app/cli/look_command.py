"""`lockstep look` and `lockstep reload`: ask a running job for an immediate pass or reload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from app.cli.output import DONE, FAILED, PENDING, Output, print_json, print_line
from app.cli.plan_text import paused_lines
from app.cli.running import JobRefused, ask, ask_reload
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded, seconds
from sinks.model.changes import Kind


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
    topics: Annotated[list[str] | None, typer.Argument(help="Topics of the source. Default: everything.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    wait: Annotated[
        float, typer.Option("--wait", parser=seconds, help="Seconds to wait until that pass is done.")
    ] = 0.0,
) -> None:
    """Asks the running job for a pass now.

    With --wait, exit 1: the pass was not done in time. Exit 3: it was, and something still differs, is paused, or could
    not be compared.
    """
    settings = loaded(config, flow)
    if topics:
        from app.cli.wrong_names import topics_of_flows

        topics_of_flows(settings, topics)
    body = {"topics": topics or [], "flows": [one.flow.name for one in settings.flows], "wait_seconds": wait}
    document = ask(settings.job, "POST", "/look", wait * len(settings.flows) + 10, body)
    if output is Output.JSON:
        print_json(document)
    else:
        for name, done in document["looked"].items():
            print_line(f"{name}: {'compared' if done else 'asked' if not wait else 'not compared within the time'}")
            for line in _left_over(document, name, bool(done)):
                print_line(f"  {line}")
    raise typer.Exit(_look_code(document) if wait else DONE)


def _left_over(document: Mapping[str, Any], name: str, done: bool) -> Iterator[str]:
    """Yields what the pass left out of step. A job of an older version does not report it."""
    if reason := document.get("stopped", {}).get(name):
        yield f"stopped: {reason}"
    yield from paused_lines([Kind(kind) for kind in document.get("paused", {}).get(name, ())])
    for kind, count in document.get("drift", {}).get(name, {}).items() if done else ():
        yield f"{kind}: {count} still differ; `lockstep status` says why"
    for kind, reason in document.get("not_compared", {}).get(name, {}).items() if done else ():
        yield f"{kind}: could not be compared: {reason or '`lockstep status` says more'}"


def _look_code(document: Mapping[str, Any]) -> int:
    if not all(document["looked"].values()):
        return FAILED
    return PENDING if any(document.get(left) for left in ("paused", "drift", "not_compared")) else DONE
