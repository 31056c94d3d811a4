"""Commands on consumer groups: `groups`, `offsets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli.common import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded, of_each_flow
from app.cli.output import DONE, FAILED, Output, print_json, print_line, print_table
from app.wiring import Ends
from sinks.offsets import End, GroupOffset, count_verdicts, replicated_groups, survey_offsets
from sinks.settings import FlowSettings
from sinks.survey import list_both

GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", help="A consumer group; may be repeated. Default: every one."),
]
COLUMNS = ("group", "topic", "partition", "upstream", "downstream", "method", "error bound", "verdict", "reason")


def groups(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """The consumer groups that are replicated now: let through by the filter, with offsets on replicated topics."""

    def found(one: FlowSettings, ends: Ends) -> list[str]:
        listed = list_both(one, ends.source, ends.target)
        return list(replicated_groups(one, ends.source.groups, listed))

    flows, failed = of_each_flow(loaded(config, flow), found, "groups")
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
) -> None:
    """Where each group would go on at a failover, the most records that it reads twice, the verdict. Writes nothing."""

    def found(one: FlowSettings, ends: Ends) -> list[GroupOffset]:
        listed = list_both(one, ends.source, ends.target)
        source, target = End(ends.source, ends.source.groups), End(ends.target, ends.target.groups)
        return survey_offsets(one, source, target, listed, group)

    flows, failed = of_each_flow(loaded(config, flow), found, "offsets")
    if output is Output.JSON:
        rows = [row | {"offsets": [offset.as_json() for offset in row["offsets"]]} for row in flows]
        print_json({"flows": rows})
    else:
        for row in flows:
            _print(f"{row['source']}->{row['target']}", row["offsets"])
    raise typer.Exit(FAILED if failed else DONE)


def _print(name: str, rows: Sequence[GroupOffset]) -> None:
    table = [tuple(row.as_json().values()) for row in rows]
    print_table(f"{name}: {len(rows)} partitions of groups", COLUMNS, table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(rows).items() if count)
    print_line(counts or "no group has offsets on a replicated topic")
