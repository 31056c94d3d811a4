"""`lockstep adopt`: takes ownership of what MM2 or an operator created on the target exactly as the source has it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from app.cli.failures import Failures, with_failures
from app.cli.output import DONE, FAILED, PENDING, Output, complain, print_json, print_line, print_table
from app.cli.plan_text import by_reason, paused_lines
from app.cli.shared_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FlowOption,
    OutputOption,
    YesOption,
    kind_named,
    need_terminal,
    with_overrides,
)
from app.settings import Settings
from app.single_pass import SinglePass, expected_wishes, single_pass
from app.wiring import audit, guard
from sinks.engine.adopting import Adoptable, adoptable, take_over
from sinks.faults import DigestMismatch
from sinks.ledger.adoption import AdoptionPlan
from sinks.model.changes import Kind, key_as_text
from streaming.errors import LockstepError, WrongUsage

OWNED = tuple(kind.value for kind in Kind if kind.row.owned)


OwnedArgument = Annotated[
    # As text, for Typer lists all kinds in the help of an argument that is a Kind.
    str,
    typer.Argument(
        help=f"The kind of resource: {', '.join(OWNED)}.",
        callback=lambda text: kind_named(text, OWNED).value,
        autocompletion=lambda: list(OWNED),
    ),
]


@dataclass(frozen=True)
class AdoptableFlow:
    """A flow's pass, and the items that the flow could adopt."""

    one: SinglePass
    seen: Adoptable

    @property
    def plan(self) -> AdoptionPlan:
        return self.seen.plan

    def take_over(self) -> None:
        """Writes the ledger and the audit topic. This process must lead the flow. Raises as `sinks.engine.adopting`."""
        flow, clusters = self.one.flow, self.one.clusters
        checked = guard(flow, clusters.source, clusters.target)
        take_over(self.plan, self.seen.ledger, checked, audit(flow, clusters.target))

    def as_json(self, taken: bool) -> dict[str, Any]:
        """Returns the flow's part of the document. `taken`: True adds the outcomes."""
        errors = [error.as_json() for error in self.seen.errors]
        left_out = {"errors": errors, "paused": [self.plan.kind.value] if self.seen.paused else []}
        return self.plan.as_json() | left_out | ({"outcomes": self.plan.outcomes()} if taken else {})


def adopt(
    kind: OwnedArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be adopted. Exit 3: there is something to adopt.")
    ] = (False),
    yes: YesOption = False,
    with_records: Annotated[
        bool, typer.Option("--with-records", help="Agree that adopted topics may be deleted, with their records.")
    ] = False,
) -> None:
    """Takes ownership of items that are equal on both clusters. Lockstep deletes owned items that the source no longer
    has. Writes the ledger and an audit event for each."""
    owned = Kind(kind)
    if not owned.row.owned:
        raise WrongUsage(
            f"{owned}: Lockstep never owns items of this kind, so there is nothing to adopt. A remote topic's configs "
            "always follow the source's, and a group's offsets are its own"
        )
    if owned.row.data and not with_records:
        raise WrongUsage(
            f"{owned}: with lockstep.sync.topic.deletes.enabled Lockstep deletes an adopted topic and its records "
            "once the source's topic is gone. To agree, say --with-records"
        )
    settings = with_overrides(config, flow)
    with ExitStack() as stack:
        found, failed = _found(settings, stack, owned, lead=yes and not dry_run, writes=not dry_run)
        if not dry_run:
            if not yes:
                _ask(found)
                found = [_compared_again(row, stack) for row in found]
            for row in found:
                row.take_over()
    if output is Output.JSON:
        lost = [(row.plan.flow.name, LockstepError(error.reason)) for row in found for error in row.seen.errors]
        document = {"flows": [row.as_json(taken=not dry_run) for row in found]}
        print_json(with_failures(document, [*failed, *lost]))
    else:
        for row in found:
            _print(row, taken=not dry_run)
    pending = dry_run and any(row.plan.items for row in found)
    broken = failed or any(row.seen.errors for row in found)
    raise typer.Exit(FAILED if broken else PENDING if pending else DONE)


def _found(
    settings: Settings, stack: ExitStack, kind: Kind, *, lead: bool, writes: bool
) -> tuple[list[AdoptableFlow], Failures]:
    """Returns what each flow with this kind enabled could adopt, and the flows that cannot be observed."""
    flows = [one for one in settings.flows if one.enabled.get(kind, False)]
    off = {one.flow.name: one.disabled_reasons.get(kind, "not enabled") for one in settings.flows if one not in flows}
    if not flows:
        raise WrongUsage(
            f"{kind}: no flow keeps this kind in step, so no flow can adopt it: {'; '.join(set(off.values()))}"
        )
    for name, reason in off.items():
        complain(f"{name}: {kind} is left alone: {reason}")
    found: list[AdoptableFlow] = []
    failed = Failures()
    wishes = expected_wishes(settings, [kind])
    for flow in flows:
        with failed.noted(flow.flow.name):
            command, shared = "adopt" if writes else None, wishes[flow.flow.target]
            one = stack.enter_context(single_pass(settings, flow, writes=command, kinds=[kind], wishes=shared))
            if lead:
                stack.enter_context(one.reconcile.leading())
            found.append(AdoptableFlow(one, adoptable(one.reconcile, kind)))
    return found, failed


def _ask(found: Sequence[AdoptableFlow]) -> None:
    count = sum(len(row.plan.items) for row in found)
    if not count:
        return
    need_terminal(f"{count} are to be adopted")
    for row in found:
        _print(row, taken=False)
    typer.confirm(f"Adopt these {count}?", abort=True, err=True)


def _compared_again(row: AdoptableFlow, stack: ExitStack) -> AdoptableFlow:
    """Compares again, and returns the result. Clusters and leader may have changed while the prompt waited."""
    stack.enter_context(row.one.reconcile.leading())
    now = AdoptableFlow(row.one, adoptable(row.one.reconcile, row.plan.kind))
    if now.plan.digest != row.plan.digest:
        raise DigestMismatch(
            f"{row.plan.flow.name}: the clusters changed since this was shown. Lockstep adopted nothing. Run "
            "`lockstep adopt` again"
        )
    return now


def _print(row: AdoptableFlow, taken: bool) -> None:
    plan = row.plan
    print_line(f"{plan.flow.name}  {plan.digest}")
    if plan.items:
        print_table("", ("kind", "key"), [(plan.kind, key_as_text(plan.kind, key)) for key in sorted(plan.items)])
    refused = by_reason((key_as_text(plan.kind, key), reason) for key, reason in sorted(plan.refused.items()))
    for reason, keys in refused.items():
        print_line(f"refused: {keys}: {reason}")
    for error in row.seen.errors:
        print_line(f"not seen: {error.kind}: {error.reason}")
    for line in paused_lines([plan.kind] if row.seen.paused else ()):
        print_line(line)
    print_line(f"{len(plan.items)} {'adopted' if taken else 'to adopt'}, {plan.owned} owned already")
