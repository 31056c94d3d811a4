"""`lockstep verify`: compares the records of source and target. Writes only the flow's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.failures import Failures, with_failures
from app.cli.output import DONE, FAILED, PENDING, Output, print_json, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, parse_since, with_overrides
from app.cli.status_text import lost_line
from app.cli.wrong_names import topics_of_flows
from app.private_files import check_writable, make_new_folder, write_report
from app.settings import Settings
from app.verify.spark_jobs import SparkOnDemand
from sinks.failover.lost_before_copying import lost_as_json
from sinks.flow_settings import FlowSettings
from sinks.model.times import utc_now
from sinks.verify.partition_verdicts import FlowReport, PartitionReport, VerifyLevel, as_time
from sinks.verify.what_to_compare import LAST, ComparisonScope
from streaming.message_words import number_of


def _offsets(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise typer.BadParameter(f"{text}: a number of offsets, 1 or more. For a time write --since, as in --since 1h")
    return int(text)


TopicsArgument = Annotated[
    list[str] | None, typer.Argument(help="Topics by their names on the source. Default: all replicated ones.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only records from then on: 15m, 1h, 2d ago, or a time in UTC.")
]
LastOption = Annotated[
    int | None,
    typer.Option(
        "--last", help=f"Number of offsets at the end of each partition to compare. Default: {LAST}.", parser=_offsets
    ),
]
FullOption = Annotated[bool, typer.Option("--full", help="All records that both sides still have.")]
LevelOption = Annotated[
    VerifyLevel,
    typer.Option(
        "--level", help="counts: reads no records; digests: shows which windows differ; records: names each difference."
    ),
]
ReportOption = Annotated[Path | None, typer.Option("--report", help="Write the JSON document to this file as well.")]

ExportOption = Annotated[
    str | None,
    typer.Option(
        "--export",
        help="Write the records that differ, with both sides' keys and values, as Parquet below this folder.",
    ),
]

PARTITION_COLUMNS = ("topic", "partition", "verdict", "from", "through", "through time", "records", "pending", "what")
FINDINGS = ("topic", "partition", "difference", "upstream", "downstream", "count", "fields", "timestamp")


def verify(
    topics: TopicsArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    since: SinceOption = None,
    last: LastOption = None,
    full: FullOption = False,
    level: LevelOption = VerifyLevel.RECORDS,
    report: ReportOption = None,
    export: ExportOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Checks that every record of the source is on the target: once, in order, unchanged. Never repairs.

    Exit code 3: something differs, or cannot be compared.
    """
    scope = _scope(topics, since, last, full, level)
    if report is not None:
        check_writable(report, "--report")
    if export is not None and level is not VerifyLevel.RECORDS:
        raise typer.BadParameter("it needs --level records, which finds them", param_hint="--export")
    settings = with_overrides(config, flow)
    chosen = topics_of_flows(settings, scope.topics) if scope.topics else [(one, ()) for one in settings.flows]
    found, failed = _compared(settings, chosen, scope, export)
    document = with_failures({"flows": [done.as_json() for done in found]}, failed)
    if report is not None:
        write_report(report, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if output is Output.JSON:
        print_json(document)
    else:
        for done in found:
            _print(done, scope)
    if failed:
        raise typer.Exit(FAILED)
    raise typer.Exit(DONE if all(done.is_good for done in found) else PENDING)


def _compared(
    settings: Settings, chosen: Sequence[tuple[FlowSettings, Sequence[str]]], scope: ComparisonScope, export: str | None
) -> tuple[list[FlowReport], Failures]:
    from app.verify.flow_check import export_records, verify_flow

    found: list[FlowReport] = []
    failed = Failures()
    if export is not None:
        make_new_folder(export, "--export")
    with closing(SparkOnDemand("lockstep verify", alone=len(chosen) == 1)) as spark:
        for one, names in chosen:
            with failed.noted(one.flow.name):
                found.append(verify_flow(settings, one, replace(scope, topics=tuple(names)), spark))
                if export is not None:
                    export_records(settings, one, found[-1], spark, export)
    return found, failed


def _scope(
    topics: Sequence[str] | None, since: str | None, last: int | None, full: bool, level: VerifyLevel
) -> ComparisonScope:
    given = {"--since": since is not None, "--last": last is not None, "--full": full}
    if len(said := [option for option, is_there in given.items() if is_there]) > 1:
        raise typer.BadParameter("give only one of them", param_hint=said)
    since_ms = None if since is None else int(parse_since(since, utc_now()).timestamp() * 1000)
    most = None if full or since is not None else last or LAST
    return ComparisonScope(tuple(dict.fromkeys(topics or ())), since_ms, most, level)


def _print(found: FlowReport, scope: ComparisonScope) -> None:
    name = found.flow.name
    title = f"{name}: {number_of(len(found.partitions), 'partition')}"
    print_table(title, PARTITION_COLUMNS, [_row(one) for one in found.partitions])
    rows = [
        (
            one.where.topic,
            one.where.partition,
            *(finding.difference, finding.upstream, finding.downstream, finding.count),
            *(", ".join(finding.fields) or None, as_time(finding.timestamp)),
        )
        for one in found.partitions
        for finding in one.findings
    ]
    if rows:
        print_table(f"{name}: what differs", FINDINGS, rows)
    for one in lost_as_json(found.lost)["topics"]:
        print_line(lost_line(one))
    print_line(summary(found, scope))


def summary(found: FlowReport, scope: ComparisonScope) -> str:
    """Returns the last line. Says so if no record was compared, because the partitions then count as verified too."""
    if not found.partitions:
        return "nothing to compare"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items() if count)
    if found.level is VerifyLevel.COUNTS:
        return f"{counts}; offsets compared in {found.seconds:.1f} s"
    if found.records or not found.is_good:
        return f"{counts}; {number_of(found.records, 'record')} compared in {found.seconds:.1f} s"
    if pending := sum(one.pending for one in found.partitions):
        return f"nothing was compared: {number_of(pending, 'record is', 'records are')} not copied yet"
    if scope.since_ms is not None:
        return f"nothing was compared: no record of {found.flow.source} is from {as_time(scope.since_ms)} or later"
    return "nothing was compared: the chosen partitions have no record"


def _row(one: PartitionReport) -> tuple[object, ...]:
    differences = [f"{count} {kind}" for kind, count in one.differences.items()]
    what = "; ".join([*differences, *([one.reason] if one.reason else ()), *one.notes])
    time = as_time(one.through_ms)
    return (
        *(one.where.topic, one.where.partition, one.verdict, one.start, one.through, time),
        *(one.records, one.pending, what or None),
    )
