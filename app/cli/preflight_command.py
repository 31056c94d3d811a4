"""`lockstep preflight`: could this flow fail over now, and what would be lost?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.failures import Failures, with_failures
from app.cli.output import DONE, FAILED, PENDING, Output, complain, print_json, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, with_overrides
from app.failover_facts import observe_readiness
from app.private_files import check_writable, write_report
from sinks.failover.lost_before_copying import lost_as_json
from sinks.failover.readiness import Check, Readiness, ReadinessAnswer, readiness
from sinks.failover.readiness_facts import ReadinessFacts, losses_as_json
from sinks.printable import one_line
from streaming.flow import Flow

MARKUP = re.compile(r"[\\`*_\[\]<>&|~$]|(?<=www)\.|:(?=//)", re.IGNORECASE)
"""Characters that begin markup in a Markdown table cell. The last two patterns begin links."""

CHECK_COLUMNS = ("check", "result", "figure", "limit", "what to do")

ReportOption = Annotated[Path | None, typer.Option("--report", help="Also write the result to this file, as Markdown.")]


def preflight(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    report: ReportOption = None,
) -> None:
    """Shows whether each flow could fail over now, and what would be lost. Writes nothing. Exit 3: not ready."""
    if report is not None:
        check_writable(report, "--report")
    settings = with_overrides(config, flow)
    rows: list[tuple[Flow, Readiness, dict[str, Any]]] = []
    failed = Failures()
    for one in settings.flows:
        with failed.noted(one.flow.name):
            facts = observe_readiness(settings, one)
            found = readiness(facts)
            rows.append((one.flow, found, document(one.flow, found, facts)))
    if report is not None:
        write_report(report, "\n".join(markdown(flow, found) for flow, found, _ in rows).encode())
        complain(f"written to {report}")
    if output is Output.JSON:
        print_json(with_failures({"flows": [document for _, _, document in rows]}, failed))
    else:
        for one_flow, found, _ in rows:
            print_table(f"{one_flow.name}: {verdict(found)}", CHECK_COLUMNS, [_cells(check) for check in found.checks])
            for line in answers(found):
                print_line(f"  {line}")
    raise typer.Exit(FAILED if failed else exit_code(found for _, found, _ in rows))


def ready(found: Readiness) -> bool | None:
    """Returns whether a cutover could begin; False if that is unknown. None: the target has taken over already.

    Exit code, document and text all use this function, so they agree.
    """
    return None if found.cutover.answer is ReadinessAnswer.DONE else found.ready is True


def exit_code(flows: Iterable[Readiness]) -> int:
    """Returns 3 if a flow is not ready, else 0. A flow whose target has taken over counts as ready."""
    return PENDING if any(ready(found) is False for found in flows) else DONE


def document(flow: Flow, found: Readiness, facts: ReadinessFacts) -> dict[str, Any]:
    return flow.as_json() | {
        "state": facts.record.state.value,
        "ready": ready(found),
        "cutover": found.cutover.as_json(),
        "failover": found.failover.as_json(),
        "checks": [check.as_json() for check in found.checks],
        "loss": losses_as_json(facts.losses),
        "lost_before_copying": lost_as_json(facts.lost),
    }


def verdict(found: Readiness) -> str:
    words = {True: "ready to fail over", False: "not ready to fail over", None: found.cutover.headline}
    return words[ready(found)]


def answers(found: Readiness) -> list[str]:
    """Returns a line for each of the two answers; none if the target has taken over."""
    if ready(found) is None:
        return []
    return [
        f"{name}: {one.answer.value.upper()}. {one.headline}"
        for name, one in (("cutover", found.cutover), ("failover without the source", found.failover))
    ]


def _cells(check: Check) -> tuple[str, ...]:
    return check.name, check.result.value, check.figure, check.limit, check.remedy


def markdown(flow: Flow, found: Readiness) -> str:
    said = [f"{as_text(line)}\n" for line in (verdict(found), *answers(found))]
    head = "\n".join([f"# {as_text(flow.name)}: {said[0]}", *said[1:], f"| {' | '.join(CHECK_COLUMNS)} |"])
    rows = ["| " + " | ".join(map(as_text, _cells(check))) + " |" for check in found.checks]
    return "\n".join([head, f"|{'---|' * len(CHECK_COLUMNS)}", *rows]) + "\n"


def as_text(text: str) -> str:
    """Escapes text for Markdown, because names and errors of clusters are never markup."""
    return MARKUP.sub(r"\\\g<0>", one_line(text))
