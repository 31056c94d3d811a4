"""`lockstep plan` and `lockstep apply`: see what would be written, then write it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, in_force, progress_bar
from app.cli.output import DONE, FAILED, PENDING, WRONG_USAGE, Output, complain, print_json, print_line, print_table
from app.planning import plan_flow
from app.settings import Settings
from app.wiring import ConfigWriters, FlowClusters, audit, both_ends, guard, ledger, writers_to
from sinks.engine.apply import apply_steps
from sinks.engine.model import Change, Kind, Outcome
from sinks.engine.plan import Plan
from sinks.faults import DigestMismatch
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kinds.brokers.writer import BrokerWriter
from streaming.errors import LockstepError


@dataclass(frozen=True)
class Planned:
    """A flow with its open clusters and the plan made now."""

    flow: FlowSettings
    ends: FlowClusters
    plan: Plan


def plan(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the plan here, for `apply --plan`.")] = None,
) -> None:
    """What `apply` would do now; writes nothing. Exit 3: changes are pending."""
    settings = in_force(config, flow)
    with ExitStack() as stack:
        planned, failed = _plans(settings, stack)
    document = {"flows": [row.plan.as_json() for row in planned] + failed}
    if out is not None:
        _write_whole(out, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if output is Output.JSON:
        print_json(document)
    else:
        for row in planned:
            _print_plan(row.plan)
    pending = any(row.plan.changes for row in planned)
    raise typer.Exit(FAILED if failed or _blind(planned) else PENDING if pending else DONE)


def apply(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    reviewed: Annotated[
        Path | None, typer.Option("--plan", help="Only if the plan made now has the digest of this one.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Lift the limit on deletions.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Writes what `plan` shows."""
    settings = in_force(config, flow)
    with ExitStack() as stack:
        planned, failed = _plans(settings, stack)
        if reviewed is not None:
            _check_digests(planned, _digests(reviewed))
        if not force:
            for row in planned:
                row.plan.raise_if_unsafe(row.flow.limits)
        _ask(planned, yes)
        configs = ConfigWriters()
        done = [(row, _apply(row, configs)) for row in planned]
    if output is Output.JSON:
        print_json({"flows": [_document(row.plan, outcomes) for row, outcomes in done] + failed})
    else:
        for row, outcomes in done:
            _print_outcomes(row.plan, outcomes)
    broken = any(outcome.error for _, outcomes in done for outcome in outcomes)
    raise typer.Exit(FAILED if failed or broken or _blind(planned) else DONE)


def _plans(settings: Settings, stack: ExitStack) -> tuple[list[Planned], list[dict[str, Any]]]:
    """The plan of each flow, and a document for each flow that cannot be planned; that one is complained of."""
    planned, failed = [], []
    for flow in settings.flows:
        try:
            ends = stack.enter_context(both_ends(settings, flow))
            with progress_bar(f"{flow.flow.name}: comparing topics") as progress:
                planned.append(Planned(flow, ends, plan_flow(flow, ends, progress)))
        except LockstepError as error:
            complain(f"{flow.flow.name}: {error}")
            failed.append({"source": flow.flow.source, "target": flow.flow.target, "reason": str(error)})
    return planned, failed


def _blind(planned: list[Planned]) -> bool:
    return any(row.plan.errors for row in planned)


def _apply(row: Planned, configs: ConfigWriters) -> list[Outcome]:
    if not row.plan.changes:
        return []
    remembered = ledger(row.flow, row.ends.target, to_write=True)
    guard(row.flow, row.ends.source, row.ends.target).check(remembered)
    outcomes: list[Outcome] = []
    writers = writers_to(row.ends.target, row.flow, configs)
    try:
        with ExitStack() as stack, progress_bar(f"{row.flow.flow.name}: writing") as progress:
            if any(change.kind is Kind.BROKER_CONFIG for change in row.plan.changes):
                _, target = stack.enter_context(row.ends.levels())
                writers = {**writers, Kind.BROKER_CONFIG: BrokerWriter(target)}
            for step in apply_steps(row.plan, writers):
                outcomes += step
                progress(len(outcomes), len(row.plan.changes))
    finally:
        # Whatever ends it, Ctrl-C too: what was written is owned and audited.
        remembered.record(outcomes)
        audit(row.flow, row.ends.target).record(row.plan, outcomes)
    return outcomes


def _ask(planned: list[Planned], yes: bool) -> None:
    changes = sum(len(row.plan.changes) for row in planned)
    if yes or not changes:
        return
    if not sys.stdin.isatty():
        complain(f"{changes} changes are pending, and there is no terminal to ask on: say --yes")
        raise typer.Exit(WRONG_USAGE)
    for row in planned:
        _print_plan(row.plan)
    typer.confirm(f"Write these {changes} changes?", abort=True, err=True)


def _digests(path: Path) -> Mapping[tuple[str, str], str]:
    try:
        flows = orjson.loads(path.read_bytes())["flows"]
        return {(flow["source"], flow["target"]): flow["digest"] for flow in flows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LockstepError(f"{path}: no plan that `lockstep plan --out` wrote: {error}") from error


def _check_digests(planned: list[Planned], reviewed: Mapping[tuple[str, str], str]) -> None:
    for row in planned:
        pair = (row.flow.flow.source, row.flow.flow.target)
        if reviewed.get(pair) != row.plan.digest:
            raise DigestMismatch(
                f"{row.flow.flow.name}: the plan made now ({row.plan.digest}) is not the one reviewed "
                f"({reviewed.get(pair, 'this flow is not in it')}); nothing was written. Look at `lockstep plan` again"
            )


def _document(plan: Plan, outcomes: list[Outcome]) -> dict[str, Any]:
    return plan.as_json() | {"outcomes": [outcome.as_json() for outcome in outcomes]}


def _write_whole(path: Path, data: bytes) -> None:
    """All of it or nothing: a half-written plan must not look like a plan."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise LockstepError(f"--out {path}: {error.strerror}") from error


SYMBOLS = {"create": "+", "update": "~", "delete": "-"}


def _print_plan(plan: Plan) -> None:
    print_line(f"{plan.flow.name}  {plan.digest}")
    rows = [_row(change) for change in plan.changes]
    if rows:
        print_table("", ("", "kind", "key", "before", "after"), rows)
    for refusal in plan.refused:
        print_line(f"refused: {refusal.op} {refusal.kind} {' '.join(refusal.key)}: {refusal.reason}")
    for error in plan.errors:
        print_line(f"not planned: {error.kind}: {error.reason}")
    for reason, count in sorted(plan.skipped.items()):
        print_line(f"not copied: {count} {reason}")
    for note in plan.notes:
        print_line(f"note: {note}")
    print_line(f"{len(plan.changes)} changes" if plan.changes else "nothing to do")


def _row(change: Change) -> tuple[str, ...]:
    return SYMBOLS[change.op.value], change.kind.value, " ".join(change.key), _side(change.before), _side(change.after)


def _side(value: object) -> str:
    if isinstance(value, TopicSpec):
        return f"{value.partitions} partitions" + "".join(f", {name}={text}" for name, text in value.configs)
    return "-" if value is None else str(value)


def _print_outcomes(plan: Plan, outcomes: list[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.error]
    print_line(f"{plan.flow.name}: {len(outcomes) - len(failed)} applied, {len(failed)} failed")
    for outcome in failed:
        print_line(f"failed: {outcome.change.op} {outcome.change.kind} {' '.join(outcome.change.key)}: {outcome.error}")
