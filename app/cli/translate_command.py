"""`lockstep offsets translate`: any offset of the source on the target, or those of many groups at once."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, with_overrides
from app.cli.output import DONE, PENDING, Output, print_json, print_table
from app.offset_translation import Translated, translate_each
from app.passes import single_pass
from app.settings import Settings
from app.wiring import both_clusters, guard
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import GroupScope
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.translation import Unanswered
from sinks.model.changes import Kind
from streaming.errors import LockstepError, WrongUsage
from streaming.mm2.java_regex import compile_java
from streaming.mm2.records import TopicPartition


def _not_negative(number: int | None) -> int | None:
    """In words: Click's own ranges stand in the help as `[x>=0]`."""
    if number is not None and number < 0:
        raise typer.BadParameter(f"{number}: 0 or more")
    return number


TopicOption = Annotated[str | None, typer.Option("--topic", help="The topic, as the source calls it.")]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", help="The partition, from 0 on.", callback=_not_negative)
]
OffsetOption = Annotated[
    list[int] | None,
    typer.Option(
        "--offset",
        help="The offset that a reader reads next, from 0 on; may be repeated.",
        callback=lambda found: [_not_negative(one) for one in found or ()],
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option("--groups", help="Instead: all groups whose whole name matches this regular expression (Java's)."),
]
TRANSLATION_COLUMNS = ("topic", "partition", "upstream", "downstream", "method", "error bound", "reason")
OF_GROUPS = ("group", "topic", "partition", "upstream", "downstream", "method", "error bound", "verdict", "reason")


def translate(
    topic: TopicOption = None,
    partition: PartitionOption = None,
    offset: OffsetOption = None,
    groups: GroupsOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Where a reader of the source that keeps its own offsets continues on the target. Writes nothing.

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
        print_json({"flows": [{"source": one.flow.source, "target": one.flow.target, "offsets": rows}]})
    else:
        columns = TRANSLATION_COLUMNS if where is not None else OF_GROUPS
        print_table(f"{one.flow.name}: {title}", columns, [tuple(row.values()) for row in rows])
    raise typer.Exit(PENDING if any(row["downstream_offset"] is None for row in rows) else DONE)


def _of_groups(settings: Settings, flow: FlowSettings, pattern: str) -> list[dict[str, object]]:
    """Source: `RemoteClusterUtils.translateOffsets` with a pattern (KIP-1239)."""
    try:
        matches = compile_java(pattern).fullmatch
    except LockstepError as error:
        raise WrongUsage(f"--groups {pattern}: {error}") from error
    with both_clusters(settings, flow) as clusters:
        guard(flow, clusters.source, clusters.target).check_ids()
        names = [name for name in chosen_groups(flow, clusters.source.groups.names()) if matches(name)]
    if not names:
        raise WrongUsage(f"--groups {pattern}: no replicated group of {flow.flow.source} has such a name")
    with single_pass(settings, flow, kinds=[Kind.GROUP_OFFSET], scope=GroupScope(names, shown=True)) as one:
        for reason in one.compare().trouble.faulted.values():
            raise LockstepError(reason)
        return [row.as_json() for row in one.group_offsets]


def _row(found: Translated, upstream: int) -> dict[str, object]:
    answer = found.answers[upstream]
    row = {"topic": found.remote.topic, "partition": found.remote.partition, "upstream_offset": upstream}
    if isinstance(answer, Unanswered):
        return {**row, "downstream_offset": None, "method": None, "error_bound": None, "reason": answer.value}
    known = {"downstream_offset": answer.downstream, "method": answer.method.value, "error_bound": answer.error_bound}
    return {**row, **known, "reason": None}
