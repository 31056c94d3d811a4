"""`lockstep audit`: shows the events in each flow's audit topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

import orjson
import typer

from app.cli.output import Output, complain, print_json, print_line, print_table, until_interrupted
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded, parse_since
from app.wiring import both_clusters
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader, Tail
from sinks.ledger.audit import EVENT_KINDS, Event, audit_seal, events_of, read_audit
from sinks.ledger.seal import Seal
from sinks.model.times import utc_now, utc_text
from sinks.printable import one_line
from streaming.message_words import nearest_hint

SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only events from then on: 15m, 1h, 2d ago, or a time in UTC.")
]
FollowFlag = Annotated[bool, typer.Option("--follow", help="Also show new events, until Ctrl-C.")]
KindsOption = Annotated[
    list[str] | None, typer.Option("--kind", help="Only events of this kind; may be repeated. Default: all kinds.")
]
ResourceOption = Annotated[
    str | None,
    typer.Option("--resource", metavar="NAME", help="Only events whose key contains this; * and ? are wildcards."),
]

SIGNED_WORDS = {True: "yes", False: "NO", None: None}
"""The column that says whether an event has a valid signature of lockstep.ledger.secret. None: no such secret is
set."""

EVENT_COLUMNS = ("at", "flow", "who", "op", "kind", "key", "before", "after", "result", "error", "signed")


@dataclass(frozen=True)
class EventFilter:
    """Which events to show. `kinds`: empty for all kinds."""

    start: datetime
    kinds: frozenset[str] = frozenset()
    resource: str | None = None

    def has(self, event: Event) -> bool:
        return event.at >= self.start and event.kind in (self.kinds or {event.kind}) and self._names(event)

    def _names(self, event: Event) -> bool:
        if self.resource is None:
            return True
        if set(self.resource) & set("*?"):
            return any(fnmatchcase(part, self.resource) for part in event.key)
        return any(self.resource in part for part in event.key)


def _wanted(since: str | None, kinds: list[str] | None, resource: str | None) -> EventFilter:
    for kind in kinds or ():
        if kind not in EVENT_KINDS:
            one_of = f"{kind}: one of {', '.join(EVENT_KINDS)}{nearest_hint(kind, EVENT_KINDS)}"
            raise typer.BadParameter(one_of, param_hint="--kind")
    return EventFilter(parse_since(since, utc_now()), frozenset(kinds or ()), resource)


def audit(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    since: SinceOption = None,
    kind: KindsOption = None,
    resource: ResourceOption = None,
    follow: FollowFlag = False,
) -> None:
    """Shows who changed what, when, and with which outcome. With --follow prints a line for each event; in JSON, a
    document."""
    wanted = _wanted(since, kind, resource)
    settings = loaded(config, flow)
    with ExitStack() as stack:
        ends = [(one, stack.enter_context(both_clusters(settings, one)).target) for one in settings.flows]
        if follow:
            until_interrupted()
            for _, target in ends:
                target.cluster_id()
            tails = [(stack.enter_context(closing(t.follow_log(one.internal.audit))), _seal(one)) for one, t in ends]
            _follow(tails, [AnswerWatch(target) for _, target in ends], wanted, output)
            return
        read = (event for one, t in ends for event in read_audit(one.internal.audit, t, _seal(one)))
        events = [event for event in read if wanted.has(event)]
    events.sort(key=lambda event: event.at)
    if output is Output.JSON:
        print_json({"events": [_as_json(event) for event in events]})
    else:
        print_table("", EVENT_COLUMNS, [_row(event) for event in events])


class AnswerWatch:
    """Reports once that a followed cluster stopped answering, and once that it answers again."""

    def __init__(self, cluster: Reader) -> None:
        self._cluster, self._silent = cluster, False

    def check(self) -> None:
        """Asks the cluster, and prints to stderr if its answer changed."""
        try:
            self._cluster.cluster_id()
        except ClusterUnreachable as error:
            if not self._silent:
                complain(f"{error} Its events are shown once it answers again")
            self._silent = True
            return
        if self._silent:
            complain(f"cluster {self._cluster.alias}: answers again")
        self._silent = False


def _seal(flow: FlowSettings) -> Seal:
    return audit_seal(flow.flow.name, flow.safety.ledger_secret)


def _follow(
    tails: Sequence[tuple[Tail, Seal]], watches: Sequence[AnswerWatch], wanted: EventFilter, output: Output
) -> None:
    checked_at = time.monotonic()
    while True:
        for tail, seal in tails:
            for event in filter(wanted.has, events_of(tail.next(FOLLOW_SECONDS), seal)):
                if output is Output.JSON:
                    print_line(orjson.dumps(_as_json(event)).decode())
                else:
                    print_line("  ".join("-" if cell is None else one_line(str(cell)) for cell in _row(event)))
        sys.stdout.flush()
        if time.monotonic() - checked_at >= CHECK_SECONDS:
            for watch in watches:
                watch.check()
            checked_at = time.monotonic()


FOLLOW_SECONDS = 0.5
"""Seconds to wait for new events of one flow before the next flow's turn."""

CHECK_SECONDS = 10.0
"""Seconds between two checks whether the clusters of followed topics answer."""


def _as_json(event: Event) -> dict[str, Any]:
    try:
        key: object = event.named_key
    except (ValueError, IndexError):
        # Another program wrote it, or another version.
        key = list(event.key)
    sides = {"before": _value(event.before), "after": _value(event.after)}
    return event.as_dict() | {"key": key, "at": utc_text(event.at), "signed": event.signed} | sides


def _value(side: str | None) -> Any:
    """Returns the value that Lockstep encoded as JSON for the topic. Returns other text unchanged."""
    try:
        value = None if side is None else orjson.loads(side)
    except ValueError:
        return side
    return side if _is_deeper(value, DEEPEST) else value


DEEPEST = 8
"""Limit of nesting in a value; Lockstep's own nest little. orjson reads 1024 levels but writes only 254."""


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(one, levels - 1) for one in inner)


def _row(event: Event) -> tuple[object, ...]:
    flow = f"{event.source}->{event.target}"
    change = (event.who, event.op, event.kind, " ".join(event.key), _side(event.before), _side(event.after))
    return utc_text(event.at), flow, *change, event.result, event.error, SIGNED_WORDS[event.signed]


def _side(side: str | None) -> str | None:
    value = _value(side)
    return side if isinstance(value, dict | list) or value is None else str(value)
