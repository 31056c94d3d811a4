"""`lockstep preflight`: could this flow fail over now, and what would be lost?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.failures import Failures, with_failures
from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, with_overrides
from app.cli.output import DONE, FAILED, PENDING, Output, complain, print_json, print_table
from app.failover_facts import observe_readiness
from app.private_files import check_writable, write_report
from sinks.failover.checks import Check, ReadinessFacts, is_ready, readiness
from sinks.failover.losses import losses_as_json
from sinks.failover.lost_before_copying import lost_as_json
from sinks.ledger.failover_record import FailoverRecord
from sinks.printable import one_line
from streaming.flow import Flow

MARKUP = re.compile(r"[\\`*_\[\]<>&|~$]|(?<=www)\.|:(?=//)", re.IGNORECASE)
"""What begins markup in the cell of a table; the last two begin links."""

CHECK_COLUMNS = ("check", "result", "figure", "limit", "what to do")

ReportOption = Annotated[Path | None, typer.Option("--report", help="Also write it here, as Markdown.")]


def preflight(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    report: ReportOption = None,
) -> None:
    """Could each flow fail over now, and what would be lost; writes nothing. Exit 3: not ready."""
    if report is not None:
        check_writable(report, "--report")
    settings = with_overrides(config, flow)
    rows: list[tuple[Flow, list[Check], dict[str, Any]]] = []
    failed = Failures()
    for one in settings.flows:
        with failed.noted(one.flow.name):
            facts, record = observe_readiness(settings, one)
            checks = readiness(facts)
            rows.append((one.flow, checks, _document(one.flow, checks, facts, record)))
    if report is not None:
        write_report(report, "\n".join(markdown(flow, checks) for flow, checks, _ in rows).encode())
        complain(f"written to {report}")
    if output is Output.JSON:
        print_json(with_failures({"flows": [document for _, _, document in rows]}, failed))
    else:
        for one_flow, checks, _ in rows:
            print_table(f"{one_flow.name}: {verdict(checks)}", CHECK_COLUMNS, [_cells(check) for check in checks])
    ready = all(is_ready(checks) for _, checks, _ in rows)
    raise typer.Exit(FAILED if failed else DONE if ready else PENDING)


def _document(flow: Flow, checks: Sequence[Check], facts: ReadinessFacts, record: FailoverRecord) -> dict[str, Any]:
    return flow.as_json() | {
        "state": record.state.value,
        "ready": is_ready(checks),
        "checks": [check.as_json() for check in checks],
        "loss": losses_as_json(facts.losses),
        "lost_before_copying": lost_as_json(facts.lost),
    }


def verdict(checks: Sequence[Check]) -> str:
    """In a word or two."""
    return "ready to fail over" if is_ready(checks) else "not ready to fail over"


def _cells(check: Check) -> tuple[str, ...]:
    return check.name, check.result.value, check.figure, check.limit, check.remedy


def markdown(flow: Flow, checks: Sequence[Check]) -> str:
    """A flow's part of the report."""
    head = (
        f"# {as_text(flow.name)}: {verdict(checks)}\n\n| {' | '.join(CHECK_COLUMNS)} |\n|{'---|' * len(CHECK_COLUMNS)}"
    )
    rows = ["| " + " | ".join(map(as_text, _cells(check))) + " |" for check in checks]
    return "\n".join([head, *rows]) + "\n"


def as_text(text: str) -> str:
    """Escaped, so that Markdown shows it as it is: names and errors of clusters are text, never markup."""
    return MARKUP.sub(r"\\\g<0>", one_line(text))
