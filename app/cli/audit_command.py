"""Commands on what is remembered: `pause`, `resume`, `audit`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import datetime, timezone
from functools import partial
from typing import Annotated, Any

import orjson
import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded
from app.cli.output import Output, print_json, print_line, print_table
from app.cli.printable import one_line
from app.settings import Settings
from app.wiring import both_clusters, guard, ledger
from sinks.engine.audit import SETTING, Event, events_of, read_audit
from sinks.engine.ledger import Entry
from sinks.engine.model import Kind, key_as_json
from sinks.kafka.ports.cluster import Tail

KindArgument = Annotated[Kind, typer.Argument(help="The kind of resource.")]


def pause(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Stops one kind of a flow, durably; a running job follows within a comparison interval."""
    _remember(loaded(config, flow), kind, "")


def resume(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Starts a paused kind again."""
    _remember(loaded(config, flow), kind, None)


def _remember(settings: Settings, kind: Kind, value: str | None) -> None:
    for one in settings.flows:
        with both_clusters(settings, one) as clusters:
            opened = guard(one, clusters.source, clusters.target).open_for_target(
                partial(ledger, one, clusters.target, to_write=True)
            )
            opened.put({(Entry.PAUSED, (kind.value,)): value})
        print_line(f"{one.flow.name}: {kind} is {'active' if value is None else 'paused'}")


SinceOption = Annotated[datetime | None, typer.Option("--since", help="Only events from this time on (UTC).")]
FollowFlag = Annotated[bool, typer.Option("--follow", help="Also what comes from now on, until Ctrl-C.")]

COLUMNS = ("at", "flow", "who", "op", "kind", "key", "before", "after", "result", "error")


def audit(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    since: SinceOption = None,
    follow: FollowFlag = False,
) -> None:
    """Who changed what, when, and with which outcome. With --follow a line for each event: in JSON, a document."""
    settings = loaded(config, flow)
    start = since.replace(tzinfo=timezone.utc) if since else datetime.min.replace(tzinfo=timezone.utc)
    with ExitStack() as stack:
        ends = [(one, stack.enter_context(both_clusters(settings, one)).target) for one in settings.flows]
        if follow:
            _follow([stack.enter_context(closing(t.follow_log(one.internal.audit))) for one, t in ends], start, output)
            return
        events = [event for one, t in ends for event in read_audit(one.internal.audit, t) if event.at >= start]
    events.sort(key=lambda event: event.at)
    if output is Output.JSON:
        print_json({"events": [_as_json(event) for event in events]})
    else:
        print_table("", COLUMNS, [_row(event) for event in events])


def _follow(tails: Sequence[Tail], start: datetime, output: Output) -> None:
    while True:
        for tail in tails:
            for event in events_of(tail.next(FOLLOW_SECONDS)):
                if event.at < start:
                    continue
                if output is Output.JSON:
                    print_line(orjson.dumps(_as_json(event)).decode())
                else:
                    print_line("  ".join("-" if cell is None else one_line(str(cell)) for cell in _row(event)))
        sys.stdout.flush()


FOLLOW_SECONDS = 0.5
"""How long one flow's topic is waited for before the next flow's turn comes."""


def _as_json(event: Event) -> dict[str, Any]:
    try:
        key: object = {"name": event.key[0]} if event.kind == SETTING else key_as_json(Kind(event.kind), event.key)
    except (ValueError, IndexError):
        # Another hand wrote it, or another version.
        key = list(event.key)
    return event.as_dict() | {"key": key}


def _row(event: Event) -> tuple[object, ...]:
    flow = f"{event.source}->{event.target}"
    at = event.at.strftime("%Y-%m-%d %H:%M:%S")
    sides = (event.before, event.after)
    return at, flow, event.who, event.op, event.kind, " ".join(event.key), *sides, event.result, event.error
