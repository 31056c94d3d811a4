"""Commands on consumer groups: `groups`, `offsets`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force, of_each_flow
from app.cli.output import DONE, FAILED, WRONG_USAGE, Output, complain, print_json, print_line, print_table
from app.planning import group_offsets, write_back
from app.settings import Settings
from app.wiring import FlowClusters, both_ends, ends_of, ledger
from sinks.engine.model import Outcome
from sinks.flow_settings import FlowSettings
from sinks.kinds.offsets.direction import GroupOffset, count_verdicts, forward
from sinks.kinds.offsets.survey import chosen_groups, replicated_offsets
from sinks.kinds.topics.survey import list_both

GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", help="A consumer group; may be repeated. Default: every one."),
]
ReverseOption = Annotated[
    bool, typer.Option("--reverse", help="The way back: from what groups did on the target to offsets on the source.")
]
ExecuteOption = Annotated[
    bool, typer.Option("--execute", help="With --reverse: write them, to groups that have no member on the source.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
COLUMNS = ("group", "topic", "partition", "upstream", "downstream", "method", "error bound", "verdict", "reason")


def groups(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """The consumer groups that are replicated now: let through by the filter, with offsets on replicated topics."""

    def found(one: FlowSettings, ends: FlowClusters) -> list[str]:
        direction = forward(one, *ends_of(ends.source, ends.target), list_both(one, ends.source, ends.target))
        return list(replicated_offsets(direction, chosen_groups(one, ends.source.groups.names())))

    flows, failed = of_each_flow(in_force(config, flow), found, "groups")
    if output is Output.JSON:
        print_json({"flows": flows})
    else:
        for row in flows:
            print_table(
                f"{row['source']}->{row['target']}: {len(row['groups'])} groups", ("group",), zip(row["groups"])
            )
    raise typer.Exit(FAILED if failed else DONE)


def offsets(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    group: GroupOption = None,
    reverse: ReverseOption = False,
    execute: ExecuteOption = False,
    yes: YesOption = False,
) -> None:
    """Where each group would go on at a failover, the most records that it reads twice, the verdict.

    Writes nothing without --execute.
    """
    if execute and not reverse:
        raise typer.BadParameter("it is for the way back: say --reverse, too. On the way there `apply` writes")
    settings = in_force(config, flow)

    def found(one: FlowSettings, ends: FlowClusters) -> list[GroupOffset]:
        listed = list_both(one, ends.source, ends.target)
        return group_offsets(one, ends, listed, ledger(one, ends.target, to_write=False), group, back=reverse)

    flows, failed = of_each_flow(settings, found, "offsets")
    if execute and not failed:
        failed = _execute(settings, flows, yes)
    if output is Output.JSON:
        rows = [row | {"offsets": [offset.as_json() for offset in row["offsets"]]} for row in flows]
        print_json({"flows": rows})
    else:
        for row in flows:
            _print(f"{row['source']}->{row['target']}", row["offsets"])
    raise typer.Exit(FAILED if failed else DONE)


def _execute(settings: Settings, flows: Sequence[Mapping[str, Any]], yes: bool) -> bool:
    """Writes what was found to the sources; whether any of it failed. What was written replaces its row."""
    pending = sum(row.change is not None for found in flows for row in found["offsets"])
    if not pending:
        return False
    if not yes:
        if not sys.stdin.isatty():
            complain(f"{pending} offsets are to be written, and there is no terminal to ask on: say --yes")
            raise typer.Exit(WRONG_USAGE)
        for found in flows:
            _print(f"{found['source']}->{found['target']}", found["offsets"])
        typer.confirm(f"Write {pending} offsets to the groups on the source?", abort=True, err=True)
    outcomes: list[Outcome] = []
    for one, found in zip(settings.flows, flows, strict=True):
        with both_ends(settings, one) as ends:
            outcomes += write_back(one, ends, found["offsets"])
    for outcome in outcomes:
        if outcome.error:
            complain(f"{' '.join(outcome.change.key)}: {outcome.error}")
    done = {outcome.change.key for outcome in outcomes if outcome.error is None}
    for one, found in zip(settings.flows, flows, strict=True):
        found["offsets"][:] = [row.after(done, one.flow.source) for row in found["offsets"]]
    return len(done) < len(outcomes)


def _print(name: str, rows: Sequence[GroupOffset]) -> None:
    table = [tuple(row.as_json().values()) for row in rows]
    print_table(f"{name}: {len(rows)} partitions of groups", COLUMNS, table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(rows).items() if count)
    print_line(counts or "no group has offsets on a replicated topic")
