"""`lockstep plan` and `lockstep apply`: see what would be written, then write it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force, progress_bar
from app.cli.output import DONE, FAILED, PENDING, WRONG_USAGE, Output, complain, print_json, print_line, print_table
from app.cli.plan_file import ReviewedPlan, write_plan
from app.passes import SinglePass, expected_claims, single_pass
from app.settings import Settings
from sinks.engine.model import Change, Outcome
from sinks.engine.plan import Plan
from sinks.engine.reconcile import Compared
from sinks.faults import DigestMismatch
from sinks.kafka.ports.cluster import TopicSpec
from streaming.errors import LockstepError
from streaming.flow import Flow

ForceOption = Annotated[bool, typer.Option("--force", help="Lift the limit on deletions.")]


@dataclass(frozen=True)
class Planned:
    """A flow, ready for one pass, and what was compared in it."""

    one: SinglePass
    compared: Compared

    @property
    def plan(self) -> Plan:
        """What would be written now."""
        return self.compared.plan


def plan(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the plan here, for `apply --plan`.")] = None,
    force: ForceOption = False,
) -> None:
    """What `apply` would do now; writes nothing. Exit 3: changes are pending."""
    settings = in_force(config, flow)
    with ExitStack() as stack:
        planned, failed = _plans(settings, stack, force=force)
        documents = [_with_trouble(row) for row in planned]
    document = {"flows": documents + failed}
    if out is not None:
        write_plan(out, document)
    if output is Output.JSON:
        print_json(document)
    else:
        for row in planned:
            _print_plan(row.plan)
    _say_trouble(planned)
    pending = any(row.plan.changes for row in planned)
    raise typer.Exit(FAILED if failed or _troubled(planned) else PENDING if pending else DONE)


def apply(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    reviewed: Annotated[
        Path | None, typer.Option("--plan", help="Only if the plan made now has the digest of this one.")
    ] = None,
    force: ForceOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Writes what `plan` shows."""
    expected = ReviewedPlan(reviewed) if reviewed is not None else None
    settings = in_force(config, flow)
    if expected is not None:
        expected.check_flows(one.flow for one in settings.flows)
    with ExitStack() as stack:
        planned, failed = _plans(settings, stack, writes=True, force=force)
        if expected is not None:
            for row in planned:
                expected.check(row.plan)
        if _asked(planned, yes):
            planned = [_compared_again(row, force) for row in planned]
        done = [(row, _apply(row)) for row in planned]
    if output is Output.JSON:
        print_json({"flows": [_document(row.plan, outcomes) for row, outcomes in done] + failed})
    else:
        for row, outcomes in done:
            _print_outcomes(row.plan, outcomes)
    _say_trouble(planned)
    broken = any(outcome.error for _, outcomes in done for outcome in outcomes)
    raise typer.Exit(FAILED if failed or broken or _troubled(planned) else DONE)


def _plans(
    settings: Settings, stack: ExitStack, *, writes: bool = False, force: bool = False
) -> tuple[list[Planned], list[dict[str, Any]]]:
    """The plan of each flow, and a document for each flow that cannot be planned; that one is complained of."""
    planned, failed = [], []
    claims = expected_claims(settings)
    for flow in settings.flows:
        try:
            with progress_bar(f"{flow.flow.name}: comparing topics") as progress:
                shared = claims[flow.flow.target]
                one = stack.enter_context(single_pass(settings, flow, writes=writes, progress=progress, claims=shared))
                planned.append(Planned(one, one.compare(force=force)))
        except LockstepError as error:
            failed.append(_failed(flow.flow, error))
    # What was held until every flow had said what it wants.
    waiting = frozenset().union(*(one.waiting() for one in claims.values()))
    for at, row in enumerate(planned):
        if row.one.flow.flow in waiting:
            planned[at] = Planned(row.one, row.one.compare(force=force))
    return planned, failed


def _failed(flow: Flow, error: LockstepError) -> dict[str, Any]:
    complain(f"{flow.name}: {error}")
    return {"source": flow.source, "target": flow.target, "reason": str(error)}


def _with_trouble(row: Planned) -> dict[str, Any]:
    """The plan's document; what stopped a kind is among its errors."""
    document = row.plan.as_json()
    faulted = row.compared.trouble.faulted.items()
    return document | {"errors": document["errors"] + [{"kind": kind.value, "reason": why} for kind, why in faulted]}


def _say_trouble(planned: list[Planned]) -> None:
    for row in planned:
        for kind, reason in row.compared.trouble.faulted.items():
            complain(f"{row.one.flow.flow.name}: {kind}: {reason}")
        for kind, reason in row.compared.trouble.unsupported.items():
            complain(f"{row.one.flow.flow.name}: {kind} is left alone: {reason}")


def _troubled(planned: list[Planned]) -> bool:
    return any(row.plan.errors or row.compared.trouble.faulted for row in planned)


def _apply(row: Planned) -> tuple[Outcome, ...]:
    with progress_bar(f"{row.one.flow.flow.name}: writing") as progress:
        return row.one.reconcile.apply(row.compared, progress).outcomes


def _asked(planned: list[Planned], yes: bool) -> bool:
    """Whether somebody was asked, and said yes, which takes as long as it takes."""
    changes = sum(len(row.plan.changes) for row in planned)
    if yes or not changes:
        return False
    if not sys.stdin.isatty():
        complain(f"{changes} changes are pending, and there is no terminal to ask on: say --yes")
        raise typer.Exit(WRONG_USAGE)
    for row in planned:
        _print_plan(row.plan)
    typer.confirm(f"Write these {changes} changes?", abort=True, err=True)
    return True


def _compared_again(row: Planned, force: bool) -> Planned:
    """What was agreed to may have changed while somebody thought about it."""
    now = Planned(row.one, row.one.compare(force=force))
    if now.plan.digest != row.plan.digest:
        raise DigestMismatch(
            f"{row.one.flow.flow.name}: the clusters changed since the plan was shown ({row.plan.digest} is "
            f"{now.plan.digest} now); nothing was written. Run `lockstep apply` again"
        )
    return now


def _document(plan: Plan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return plan.as_json() | {"outcomes": [outcome.as_json() for outcome in outcomes]}


SYMBOLS = {"create": "+", "update": "~", "delete": "-"}


def _print_plan(plan: Plan) -> None:
    print_line(f"{plan.flow.name}  {plan.digest}")
    rows = [_row(change) for change in plan.changes]
    if rows:
        print_table("", ("", "kind", "key", "before", "after"), rows)
    for refusal in plan.refused:
        print_line(f"refused: {refusal.op} {refusal.kind} {refusal.label}: {refusal.reason}")
    for error in plan.errors:
        print_line(f"not planned: {error.kind}: {error.reason}")
    for reason, count in sorted(plan.skipped.items()):
        print_line(f"not copied: {count} {reason}")
    for note in plan.notes:
        print_line(f"note: {note}")
    print_line(f"{len(plan.changes)} changes" if plan.changes else "nothing to do")


def _row(change: Change) -> tuple[str, ...]:
    return SYMBOLS[change.op.value], change.kind.value, change.label, _side(change.before), _side(change.after)


def _side(value: object) -> str:
    if isinstance(value, TopicSpec):
        return f"{value.partitions} partitions" + "".join(f", {name}={text}" for name, text in value.configs)
    return "-" if value is None else str(value)


def _print_outcomes(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.error]
    print_line(f"{plan.flow.name}: {len(outcomes) - len(failed)} applied, {len(failed)} failed")
    for outcome in failed:
        print_line(f"failed: {outcome.change.op} {outcome.change.kind} {outcome.change.label}: {outcome.error}")
