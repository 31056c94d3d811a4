"""Commands on what is remembered: `pause`, `resume`, `audit`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from app.cli.common import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded
from app.cli.output import Output, print_json, print_line, print_table
from app.settings import Settings
from app.wiring import both_ends, ledger
from sinks.audit import Event, read_audit
from sinks.ledger import Entry
from sinks.model import Kind, key_as_json

KindArgument = Annotated[Kind, typer.Argument(help="The kind of resource.")]


def pause(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Stops one kind of a flow, durably; a running job follows within a comparison interval."""
    _remember(loaded(config, flow), kind, "")


def resume(kind: KindArgument, config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None) -> None:
    """Starts a paused kind again."""
    _remember(loaded(config, flow), kind, None)


def _remember(settings: Settings, kind: Kind, value: str | None) -> None:
    for one in settings.flows:
        with both_ends(settings, one) as ends:
            ledger(one, ends.target, to_write=True).put({(Entry.PAUSED, (kind.value,)): value})
        print_line(f"{one.flow.name}: {kind} is {'active' if value is None else 'paused'}")


def audit(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    since: Annotated[datetime | None, typer.Option("--since", help="Only events from this time on (UTC).")] = None,
) -> None:
    """Who changed what, when, and with which outcome."""
    start = since.replace(tzinfo=timezone.utc) if since else None
    events = [event for event in _events(loaded(config, flow)) if start is None or event.at >= start]
    events.sort(key=lambda event: event.at)
    if output is Output.JSON:
        print_json({"events": [_as_json(event) for event in events]})
        return
    columns = ("at", "flow", "who", "op", "kind", "key", "before", "after", "result", "error")
    print_table("", columns, [_row(event) for event in events])


def _events(settings: Settings) -> Iterator[Event]:
    for one in settings.flows:
        with both_ends(settings, one) as ends:
            yield from read_audit(one.internal.audit, ends.target)


def _as_json(event: Event) -> dict[str, Any]:
    return event.as_dict() | {"key": key_as_json(Kind(event.kind), event.key)}


def _row(event: Event) -> tuple[object, ...]:
    flow = f"{event.source}->{event.target}"
    at = event.at.strftime("%Y-%m-%d %H:%M:%S")
    sides = (event.before, event.after)
    return at, flow, event.who, event.op, event.kind, " ".join(event.key), *sides, event.result, event.error
