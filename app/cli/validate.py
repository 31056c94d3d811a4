"""`lockstep validate`: is the file right, do the clusters answer, are MM2's topics where they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from app.cli.common import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded
from app.cli.output import DONE, FAILED, WRONG_USAGE, Output, complain, print_json, print_line, print_table
from app.settings import ConfigurationError, Mistake
from app.wiring import Ends, both_ends, ledger
from sinks.guard import Guard
from sinks.settings import FlowSettings
from streaming.errors import LockstepError


def validate(
    config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT
) -> None:
    """Parses, connects, and says per flow what it found; writes nothing."""
    try:
        settings = loaded(config, flow)
    except ConfigurationError as error:
        if output is Output.JSON:
            warnings = [_mistake(row) for row in error.warnings]
            print_json({"flows": [], "warnings": warnings, "errors": [_mistake(row) for row in error.mistakes]})
        complain(str(error))
        raise typer.Exit(WRONG_USAGE) from error
    flows, errors = [], []
    for one in settings.flows:
        try:
            with both_ends(settings, one) as ends:
                flows.append(_look(one, ends))
        except LockstepError as error:
            errors.append({"key": one.flow.name, "line": None, "message": str(error)})
    if output is Output.JSON:
        warnings = [_mistake(row) for row in settings.warnings]
        print_json({"flows": flows, "warnings": warnings, "errors": errors})
    else:
        for row in flows:
            _print_flow(row)
        for warning in settings.warnings:
            complain(f"warning: {warning}")
    for problem in errors:
        complain(f"{problem['key']}: {problem['message']}")
    raise typer.Exit(FAILED if errors else DONE)


def _mistake(mistake: Mistake) -> dict[str, Any]:
    return {"key": mistake.key, "line": mistake.line, "message": mistake.message}


def _look(flow: FlowSettings, ends: Ends) -> dict[str, Any]:
    ids = {flow.flow.source: ends.source.cluster_id(), flow.flow.target: ends.target.cluster_id()}
    Guard(flow.flow, ends.source, ends.target).compare(ledger(flow, ends.target, to_write=False))
    topics = {flow.flow.source: ends.source.list_topics(), flow.flow.target: ends.target.list_topics()}
    internal = flow.internal
    places = {
        "heartbeats": (internal.heartbeats, flow.flow.target),
        "checkpoints": (internal.checkpoints, flow.flow.target),
        "offset_syncs": (internal.offset_syncs, internal.offset_syncs_cluster),
    }
    return {
        "source": flow.flow.source,
        "target": flow.flow.target,
        "source_cluster_id": ids[flow.flow.source],
        "target_cluster_id": ids[flow.flow.target],
        "internal_topics": {
            what: {"name": name, "cluster": alias, "exists": name in topics[alias]}
            for what, (name, alias) in places.items()
        },
        "enabled": {kind.value: enabled for kind, enabled in flow.enabled.items()},
    }


def _print_flow(row: Mapping[str, Any]) -> None:
    print_line(f"{row['source']}->{row['target']}")
    print_line(f"  {row['source']}: cluster id {row['source_cluster_id']}")
    print_line(f"  {row['target']}: cluster id {row['target_cluster_id']}")
    rows = [
        (what, topic["name"], topic["cluster"], "yes" if topic["exists"] else "no: MM2 has not made it yet")
        for what, topic in row["internal_topics"].items()
    ]
    print_table("", ("internal topic", "name", "on", "exists"), rows)
    print_table("", ("kind", "enabled"), row["enabled"].items())
