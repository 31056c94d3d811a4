"""`lockstep offsets translate`: any offset of the source, on the target."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force
from app.cli.output import DONE, PENDING, Output, print_json, print_table
from app.offset_translation import Translated, translate_each
from sinks.kinds.offsets.translation import Unanswered
from streaming.errors import WrongUsage
from streaming.mm2.records import TopicPartition


def _not_negative(number: int) -> int:
    """In words: Click's own ranges stand in the help as `[x>=0]`."""
    if number < 0:
        raise typer.BadParameter(f"{number}: 0 or more")
    return number


TopicOption = Annotated[str, typer.Option("--topic", help="The topic, as the source calls it.")]
PartitionOption = Annotated[int, typer.Option("--partition", help="The partition, from 0 on.", callback=_not_negative)]
OffsetOption = Annotated[
    list[int],
    typer.Option(
        "--offset",
        help="The offset that a reader reads next, from 0 on; may be repeated.",
        callback=lambda found: [_not_negative(one) for one in found],
    ),
]
COLUMNS = ("topic", "partition", "upstream", "downstream", "method", "error bound", "reason")


def translate(
    topic: TopicOption,
    partition: PartitionOption,
    offset: OffsetOption,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Where a reader of the source continues on the target, whoever keeps its offset. Writes nothing.

    Exit code 3: an offset has no answer.
    """
    settings = in_force(config, flow)
    if len(settings.flows) != 1:
        names = ", ".join(one.flow.name for one in settings.flows)
        raise WrongUsage(f"there are several flows: choose one with --flow: {names}")
    one = settings.flows[0]
    found = translate_each(settings, one, TopicPartition(topic, partition), list(dict.fromkeys(offset)))
    rows = [_row(found, at) for at in found.answers]
    if output is Output.JSON:
        print_json({"flows": [{"source": one.flow.source, "target": one.flow.target, "offsets": rows}]})
    else:
        print_table(f"{one.flow.name}: {topic}-{partition}", COLUMNS, [tuple(row.values()) for row in rows])
    raise typer.Exit(PENDING if any(row["downstream_offset"] is None for row in rows) else DONE)


def _row(found: Translated, upstream: int) -> dict[str, object]:
    answer = found.answers[upstream]
    place = {"topic": found.remote.topic, "partition": found.remote.partition, "upstream_offset": upstream}
    if isinstance(answer, Unanswered):
        return {**place, "downstream_offset": None, "method": None, "error_bound": None, "reason": answer.value}
    known = {"downstream_offset": answer.downstream, "method": answer.method.value, "error_bound": answer.error_bound}
    return {**place, **known, "reason": None}
