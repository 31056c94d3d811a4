"""Commands on consumer groups: `groups`, `offsets`, `offsets translate`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from app.application_offsets import Translated, translate_each
from app.cli.failures import Failed, Failures, with_failures
from app.cli.output import DONE, FAILED, PENDING, Output, complain, print_json, print_line, print_table
from app.cli.shared_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FlowOption,
    OutputOption,
    YesOption,
    need_terminal,
    print_of_each_flow,
    whole,
    with_overrides,
)
from app.cli.wrong_names import wrong_group
from app.settings import Settings
from app.single_pass import SinglePass, group_offsets_now, single_pass
from app.wiring import FlowClusters, both_clusters, guard
from sinks.engine.report import Compared
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import GroupScope
from sinks.kinds.offsets.direction import Direction, GroupOffset, count_verdicts
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.survey import replicated_offsets
from sinks.kinds.offsets.translation import Unanswered
from sinks.kinds.shared_listings import list_both
from sinks.model.changes import Kind
from streaming.errors import LockstepError, WrongUsage
from streaming.message_words import number_of
from streaming.mm2.java_regex import compile_java
from streaming.mm2.records import TopicPartition

# `lockstep offsets translate`: where any offset of the source is on the target, or where many groups continue.


TopicOption = Annotated[str | None, typer.Option("--topic", help="The topic's name on the source.")]
PartitionOption = Annotated[int | None, typer.Option("--partition", help="The partition, 0 or more.", parser=whole(0))]
OffsetOption = Annotated[
    list[int] | None,
    typer.Option("--offset", help="The next offset of a reader, 0 or more; may be repeated.", parser=whole(0)),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups", help="Instead of an offset: all groups whose whole name matches this Java regular expression."
    ),
]
TRANSLATION_COLUMNS = ("topic", "partition", "upstream", "downstream", "method", "error bound", "reason")


def translate(
    topic: TopicOption = None,
    partition: PartitionOption = None,
    offset: OffsetOption = None,
    groups: GroupsOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Translates source offsets to the target, for a reader that keeps its own offsets. Writes nothing.

    Exit code 3: an offset has no answer.
    """
    where = None
    if topic is not None and partition is not None and offset:
        where = TopicPartition(topic, partition)
    if (where is None) is (groups is None) or (groups and (topic or offset)):
        raise typer.BadParameter("name a partition and offsets (--topic, --partition, --offset), or --groups alone")
    settings = with_overrides(config, flow)
    if len(settings.flows) != 1:
        names = ", ".join(one.flow.name for one in settings.flows)
        raise WrongUsage(f"there are several flows: choose one with --flow: {names}")
    one = settings.flows[0]
    if where is not None:
        found = translate_each(settings, one, where, list(dict.fromkeys(offset or ())))
        title, rows = f"{where.topic}-{where.partition}", [_row(found, at) for at in found.answers]
    else:
        title, rows = f"groups {groups}", _of_groups(settings, one, groups or "")
    if output is Output.JSON:
        print_json({"flows": [one.flow.as_json() | {"offsets": rows}]})
    else:
        columns = TRANSLATION_COLUMNS if where is not None else OFFSET_COLUMNS
        print_table(f"{one.flow.name}: {title}", columns, [tuple(row.values()) for row in rows])
    raise typer.Exit(PENDING if any(row["downstream_offset"] is None for row in rows) else DONE)


def _of_groups(settings: Settings, flow: FlowSettings, pattern: str) -> list[dict[str, object]]:
    """Returns rows of the groups that match a pattern. Source: `RemoteClusterUtils.translateOffsets` (KIP-1239)."""
    try:
        matches = compile_java(pattern).fullmatch
    except LockstepError as error:
        raise WrongUsage(f"--groups {pattern}: {error}") from error
    with both_clusters(settings, flow) as clusters:
        guard(flow, clusters.source, clusters.target).check_ids()
        names = [name for name in chosen_groups(flow, clusters.source.groups.names()) if matches(name)]
    if not names:
        raise WrongUsage(f"--groups {pattern}: the name of no replicated group of {flow.flow.source} matches")
    return [row.as_json() for row in group_offsets_now(settings, flow, names)]


def _row(found: Translated, upstream: int) -> dict[str, object]:
    answer = found.answers[upstream]
    row = {"topic": found.remote.topic, "partition": found.remote.partition, "upstream_offset": upstream}
    if isinstance(answer, Unanswered):
        return {**row, "downstream_offset": None, "method": None, "error_bound": None, "reason": answer.value}
    known = {"downstream_offset": answer.downstream, "method": answer.method.value, "error_bound": answer.error_bound}
    return {**row, **known, "reason": None}


GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", help="A consumer group; may be repeated. Default: all groups."),
]
ReverseOption = Annotated[
    bool, typer.Option("--reverse", help="The way back: translate the groups' offsets on the target to the source.")
]
ExecuteOption = Annotated[
    bool,
    typer.Option("--execute", help="With --reverse: write these offsets, for groups without members on the source."),
]
OFFSET_COLUMNS = ("group", "topic", "partition", "upstream", "downstream", "method", "error bound", "verdict", "reason")


def groups(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """Lists the replicated consumer groups: selected by the filter, with offsets on replicated topics."""

    def found(one: FlowSettings, clusters: FlowClusters) -> list[str]:
        source, target = clusters.source, clusters.target
        direction = Direction(one, source.groups, target.groups, list_both(one, source, target))
        seen = replicated_offsets(direction, chosen_groups(one, source.groups.names()))
        unread.extend(seen.errors)
        for group, fault in seen.errors.items():
            complain(f"{one.flow.name}: {group}: {fault}")
        return list(seen.items)

    unread: list[str] = []
    failed = print_of_each_flow(with_overrides(config, flow), output, found, "groups", ("group",))
    raise typer.Exit(FAILED if failed or unread else DONE)


app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command("translate")(translate)


@app.callback(invoke_without_command=True)
def offsets(
    ctx: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    group: GroupOption = None,
    reverse: ReverseOption = False,
    execute: ExecuteOption = False,
    yes: YesOption = False,
) -> None:
    """Shows where each group would continue at a failover, how many records it may read twice, and the verdict.

    Writes nothing without --execute.
    """
    if ctx.invoked_subcommand is not None:
        return
    if execute and not reverse:
        raise typer.BadParameter(
            "it needs --reverse: it writes offsets back to the source. On the target, `lockstep apply` writes them",
            param_hint="--execute",
        )
    scope, command = GroupScope(group, back=reverse, shown=True), "offsets" if execute else None
    with ExitStack() as stack:
        found, failed = _compare_all(with_overrides(config, flow), scope, command, stack)
        if group and not failed:
            _check_names(found, group, back=reverse)
        if execute and not failed:
            failed += _execute(found, yes, stack)
        flows = [(one.flow.flow, one.group_offsets) for one, _ in found]
    if output is Output.JSON:
        rows = [pair.as_json() | {"offsets": [offset.as_json() for offset in offsets]} for pair, offsets in flows]
        print_json(with_failures({"flows": rows}, failed))
    else:
        for pair, offsets in flows:
            _print(pair.name, offsets)
    raise typer.Exit(FAILED if failed else DONE)


Found = Sequence[tuple[SinglePass, Compared]]
"""The pass of each flow, and what it compared."""


def _compare_all(settings: Settings, scope: GroupScope, writes: str | None, stack: ExitStack) -> tuple[Found, Failures]:
    """Compares the groups of each flow. Also returns the flows that failed. `stack`: ends the passes."""
    found: list[tuple[SinglePass, Compared]] = []
    failed = Failures()
    for one in settings.flows:
        with failed.noted(one.flow.name):
            # Operators ask where groups are above all of a flow that has ended.
            opened = single_pass(
                settings, one, writes=writes, kinds=[Kind.GROUP_OFFSET], scope=scope, obeys_failover=False
            )
            single = stack.enter_context(opened)
            found.append((single, single.compare_groups()))
    return found, failed


def _check_names(found: Found, groups: Sequence[str], *, back: bool) -> None:
    """Raises WrongUsage that names every group without offsets to show in any flow."""
    listed = {row.group for one, _ in found for row in one.group_offsets}
    there = [(one.flow, (one.clusters.target if back else one.clusters.source).groups.names()) for one, _ in found]
    if wrong := [f"{group} {wrong_group(group, there, back=back)}" for group in groups if group not in listed]:
        raise WrongUsage("\n".join(wrong))


def _execute(found: Found, yes: bool, stack: ExitStack) -> list[Failed]:
    """Takes the lead of the flows, compares again, and writes the offsets to the sources. Returns what failed."""
    pending = sum(len(compared.plan.changes) for _, compared in found)
    if not pending:
        return []
    if not yes:
        need_terminal(f"{number_of(pending, 'offset is', 'offsets are')} to be written")
        for one, _ in found:
            _print(one.flow.flow.name, one.group_offsets)
        typer.confirm(f"Write {number_of(pending, 'offset')} to the groups on the source?", abort=True, err=True)
    for one, _ in found:
        stack.enter_context(one.reconcile.leading())
    again = [(one, one.compare_groups()) for one, _ in found]
    outcomes = [outcome for one, compared in again for outcome in one.reconcile.apply(compared).outcomes]
    failed = [(outcome.change.label, LockstepError(str(outcome.error))) for outcome in outcomes if outcome.error]
    for label, error in failed:
        complain(f"{label}: {error}")
    return failed


def _print(name: str, rows: Sequence[GroupOffset]) -> None:
    table = [tuple(row.as_json().values()) for row in rows]
    print_table(f"{name}: {number_of(len(rows), 'partition')} of groups", OFFSET_COLUMNS, table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(rows).items() if count)
    print_line(counts or "no group has offsets on a replicated topic")
