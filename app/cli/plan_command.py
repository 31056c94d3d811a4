"""`lockstep plan` and `lockstep apply`: show the pending changes, then write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.failures import Failed, Failures, with_failures
from app.cli.output import DONE, FAILED, PENDING, Output, complain, interrupted, print_json
from app.cli.plan_text import by_reason, print_outcomes, print_plan
from app.cli.shared_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FlowOption,
    KindsOption,
    OutputOption,
    YesOption,
    need_terminal,
    progress_bar,
    with_overrides,
)
from app.held_interrupts import held_interrupts
from app.private_files import check_writable, replace_file
from app.settings import Settings
from app.single_pass import SinglePass, expected_wishes, single_pass
from sinks.engine.report import Compared
from sinks.faults import DigestMismatch, IncrementalUnsupported
from sinks.model.changes import Kind, Outcome
from sinks.model.plan import Plan, digest_of
from streaming.errors import LockstepError, WrongUsage, prefixed
from streaming.flow import Flow
from streaming.message_words import number_of

ForceOption = Annotated[bool, typer.Option("--force", help="Lift the limit on deletions.")]


@dataclass(frozen=True)
class Planned:
    one: SinglePass
    compared: Compared

    @property
    def plan(self) -> Plan:
        return self.compared.plan

    @property
    def paused(self) -> list[Kind]:
        """The paused kinds that the flow enables and the command asks for. The plan leaves them out."""
        paused, enabled = self.one.reconcile.paused, self.one.flow.enabled
        return [kind for kind in self.one.kinds if kind in paused and enabled.get(kind, False)]

    @property
    def troubles(self) -> list[Failed]:
        """The reasons that stopped kinds, each once."""
        found = by_reason(self.compared.trouble.faulted.items())
        return [(f"{self.one.flow.flow.name}: {kinds}", LockstepError(why)) for why, kinds in found.items()]


def plan(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the plan here, for `apply --plan`.")] = None,
    force: ForceOption = False,
    kind: KindsOption = None,
) -> None:
    """Shows what `apply` would do now; writes nothing. Exit 3: changes are pending, or held."""
    if out is not None:
        check_writable(out)
    settings = with_overrides(config, flow)
    with ExitStack() as stack:
        planned, failed = _plans(settings, stack, _chosen(kind), force=force)
        documents = [_planned(row) for row in planned]
    document = {"flows": documents + [_unplanned(*one) for one in failed]}
    if out is not None:
        write_plan(out, document)
    if output is Output.JSON:
        print_json(with_failures(document, [*failed, *_troubles(planned)]))
    else:
        for row in planned:
            print_plan(row.plan, row.paused)
    _say_trouble(planned)
    pending = _is_held(planned) or any(row.plan.changes for row in planned)
    raise typer.Exit(FAILED if failed or _troubled(planned) else PENDING if pending else DONE)


def apply(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    reviewed: Annotated[
        Path | None, typer.Option("--plan", help="Apply only if the plan made now equals the plan in this file.")
    ] = None,
    force: ForceOption = False,
    yes: YesOption = False,
    kind: KindsOption = None,
) -> None:
    """Writes what `plan` shows. A plan of some kinds alone is applied with the same --kind."""
    expected = ReviewedPlan(reviewed) if reviewed is not None else None
    settings = with_overrides(config, flow)
    if expected is not None:
        expected.check_flows(one.flow for one in settings.flows)
    with ExitStack() as stack:
        seen = expected is not None or not yes
        kinds = _chosen(kind)
        with _nothing_written():
            planned, failed = _plans(settings, stack, kinds, lead=yes, command="apply", force=force, reviewed=seen)
            if expected is not None:
                for row in planned:
                    expected.check(row.plan, force=force)
            if not yes:
                _ask(planned)
                planned = [_compared_again(row, stack, force) for row in planned]
        done = _written(planned, failed, again=REVIEW_AGAIN if expected is not None else APPLY_AGAIN)
    if output is Output.JSON:
        documents = [_planned(row) | {"outcomes": [one.as_json() for one in outcomes]} for row, outcomes in done]
        lost = [(one.change.label, LockstepError(str(one.error))) for _, rows in done for one in rows if one.error]
        document = {"flows": documents + [_unplanned(*one) for one in failed]}
        print_json(with_failures(document, [*failed, *_troubles(planned), *lost]))
    else:
        for row, outcomes in done:
            print_outcomes(row.plan, outcomes, row.paused)
    _say_trouble(planned)
    broken = any(outcome.error for _, outcomes in done for outcome in outcomes)
    left = _is_held(planned) or any(row.compared.waiting for row in planned)
    raise typer.Exit(FAILED if failed or broken or _troubled(planned) else PENDING if left else DONE)


@contextmanager
def _nothing_written() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        interrupted("interrupted: nothing was written")
        raise


def _is_held(planned: Sequence[Planned]) -> bool:
    return any(row.compared.trouble.held for row in planned)


def _chosen(kinds: list[Kind] | None) -> list[Kind]:
    return [kind for kind in Kind if kind in (kinds or list(Kind))]


def _plans(
    settings: Settings,
    stack: ExitStack,
    kinds: Sequence[Kind],
    *,
    lead: bool = False,
    command: str | None = None,
    force: bool = False,
    reviewed: bool = False,
) -> tuple[list[Planned], Failures]:
    """Returns the plan of each flow, and the flows that cannot be planned.

    `lead`: no other process writes these flows until `stack` ends. `command`: the command that writes the plans.
    `reviewed`: a person sees the plans before they are written.
    """
    planned: list[Planned] = []
    failed = Failures()
    wishes = expected_wishes(settings, kinds)
    for flow in settings.flows:
        name = flow.flow.name
        with failed.noted(name), progress_bar(f"{name}: comparing topics") as progress:
            shared = wishes[flow.flow.target]
            opened = single_pass(
                settings, flow, writes=command, kinds=kinds, progress=progress, wishes=shared, reviewed=reviewed
            )
            one = stack.enter_context(opened)
            if lead:
                stack.enter_context(one.reconcile.leading())
            planned.append(Planned(one, one.compare(force=force)))
    # What was held until every flow had said what it wants.
    waiting = frozenset().union(*(one.waiting() for one in wishes.values()))
    for at, row in enumerate(planned):
        if row.one.flow.flow in waiting:
            planned[at] = Planned(row.one, row.one.compare(force=force))
    return planned, failed


def _unplanned(flow: str, error: LockstepError) -> dict[str, Any]:
    return Flow.parse(flow).as_json() | {"reason": str(error)}


def _planned(row: Planned) -> dict[str, Any]:
    """Returns the plan's document. Its errors include the reasons that stopped kinds."""
    document = row.plan.as_json()
    faulted = row.compared.trouble.faulted.items()
    errors = document["errors"] + [{"kind": kind.value, "reason": why} for kind, why in faulted]
    return document | {"errors": errors, "paused": [kind.value for kind in row.paused]}


def _troubles(planned: Sequence[Planned]) -> list[Failed]:
    return [trouble for row in planned for trouble in row.troubles]


def _say_trouble(planned: Sequence[Planned]) -> None:
    for row in planned:
        said = {refusal.reason for refusal in row.plan.refused}
        for name, error in row.troubles:
            if str(error) not in said:
                complain(prefixed(name, error))
        for why in row.compared.trouble.held.values():
            complain(f"held: {why}")
        for why in row.one.reconcile.warnings:
            complain(f"{row.one.flow.flow.name}: {why}")
        if row.compared.waiting:
            count = number_of(len(row.compared.waiting), "deletion")
            complain(
                f"{row.one.flow.flow.name}: {count} left: no person saw the plan, so one moment's answer deletes "
                "nothing. The running job makes them once it is certain; or review them: `lockstep plan --out FILE`, "
                "then `lockstep apply --plan FILE`"
            )
        for reason, kinds in by_reason(row.compared.trouble.unsupported.items()).items():
            complain(f"{row.one.flow.flow.name}: {kinds}: left alone: {reason}")


def _troubled(planned: list[Planned]) -> bool:
    return any(row.plan.errors or row.compared.trouble.faulted for row in planned)


APPLY_AGAIN = "`lockstep apply` again sends the rest"

REVIEW_AGAIN = "make a new plan for the rest: `lockstep plan --out FILE`"
"""The reviewed plan has changes that were sent, so it is refused from now on."""


def _written(
    planned: Sequence[Planned], failed: list[Failed], *, again: str
) -> list[tuple[Planned, tuple[Outcome, ...]]]:
    """Writes each flow's plan. Returns the outcomes. Adds to `failed` the flows that lack IncrementalAlterConfigs.

    `again`: what sends the rest after Ctrl-C."""
    done = []
    for row in planned:
        try:
            done.append((row, write(row, again=again)))
        except IncrementalUnsupported as error:
            complain(prefixed(row.one.flow.flow.name, error))
            failed.append((row.one.flow.flow.name, error))
    return done


def write(row: Planned, *, again: str = APPLY_AGAIN) -> tuple[Outcome, ...]:
    """Writes the plan and returns the outcomes. Ctrl-C ends it between two requests, so that outcomes are recorded.

    `again`: what sends the rest then."""
    name, sent = row.one.flow.flow.name, 0
    try:
        with held_interrupts() as end_here, progress_bar(f"{name}: writing") as progress:

            def written(done: int, total: int) -> None:
                nonlocal sent
                sent = done
                progress(done, total)
                end_here()

            return row.one.reconcile.apply(row.compared, written).outcomes
    except KeyboardInterrupt:
        changes = number_of(len(row.plan.changes), "change")
        interrupted(f"{name}: interrupted: {sent} of {changes} sent; {again}")
        raise


def _ask(planned: list[Planned]) -> None:
    """Asks the operator whether to write the changes, if there are any. Raises Abort if the answer is no."""
    changes = sum(len(row.plan.changes) for row in planned)
    if not changes:
        return
    need_terminal(f"{number_of(changes, 'change is', 'changes are')} pending")
    for row in planned:
        print_plan(row.plan, row.paused)
    typer.confirm(f"Write {number_of(changes, 'change')}?", abort=True, err=True)


def _compared_again(row: Planned, stack: ExitStack, force: bool) -> Planned:
    """Compares again, and returns the new plan. Clusters and leader may have changed during the prompt."""
    stack.enter_context(row.one.reconcile.leading())
    now = Planned(row.one, row.one.compare(force=force))
    if now.plan.digest != row.plan.digest:
        raise DigestMismatch(
            f"{row.one.flow.flow.name}: the clusters changed since the plan was shown ({row.plan.digest} is "
            f"{now.plan.digest} now); nothing was written. Run `lockstep apply` again"
        )
    return now


DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
FOR_REVIEWERS = 0o666
AGAIN = "nothing was written. The file was changed: make the plan again, and review that"


class ReviewedPlan:
    """The digests of a reviewed plan, by flow."""

    def __init__(self, path: Path) -> None:
        """Reads a file of `lockstep plan --out`. Raises WrongUsage if it is not such a file, or was changed."""
        self._path = path
        try:
            flows = [(Flow(one["source"], one["target"]), one) for one in orjson.loads(path.read_bytes())["flows"]]
            # A flow that could not be planned has a reason, and no digest.
            planned = [(flow, one["digest"], digest_of(flow, one["changes"])) for flow, one in flows if "digest" in one]
        except OSError as error:
            written = "`lockstep plan --out` writes such a file"
            raise WrongUsage(f"--plan {path} cannot be read: {error.strerror}; {written}") from error
        except orjson.JSONDecodeError as error:
            raise WrongUsage(f"--plan {path} is not a file of `lockstep plan --out`: it is not JSON") from error
        except (ValueError, KeyError, TypeError) as error:
            problem = "it names no flows, or no changes"
            raise WrongUsage(f"--plan {path} is not a file of `lockstep plan --out`: {problem}") from error
        self._digests: Mapping[Flow, str] = {flow: shown for flow, shown, _ in planned}
        for flow, shown, counted in planned:
            if not (isinstance(shown, str) and DIGEST.fullmatch(shown)):
                raise WrongUsage(f"--plan {path} is not a file of `lockstep plan --out`: no digest of {flow.name}")
            if shown != counted:
                raise WrongUsage(f"--plan {path}: the changes of {flow.name} do not match its digest; {AGAIN}")
        for flow, times in Counter(flow for flow, _ in flows).items():
            if times > 1:
                raise WrongUsage(f"--plan {path}: it has {flow.name} {times} times; {AGAIN}")

    def check_flows(self, flows: Iterable[Flow]) -> None:
        """Raises DigestMismatch for a flow that was not reviewed. Called before the comparison."""
        for flow in flows:
            if flow not in self._digests:
                raise DigestMismatch(
                    f"{flow.name}: this flow is not in {self._path}; nothing was written. Name the flows that are, "
                    "with --flow, or make the plan again"
                )

    def check(self, plan: Plan, *, force: bool = False) -> None:
        """Raises DigestMismatch if the plan differs from the reviewed one. `force`: it was made with --force."""
        if self._digests[plan.flow] != plan.digest:
            # Only where a limit refused or would refuse deletions can --force make a difference.
            both = "; make both with --force, or both without" if force or plan.refused else ""
            raise DigestMismatch(
                f"{plan.flow.name}: the plan made now ({plan.digest}) is not the one reviewed "
                f"({self._digests[plan.flow]}); nothing was written. Review a new one: `lockstep plan --out FILE`{both}"
            )


def write_plan(path: Path, document: Mapping[str, Any]) -> None:
    """Writes the plan file, whole or not at all. Raises WrongUsage."""
    try:
        replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2), FOR_REVIEWERS)
    except OSError as error:
        raise WrongUsage(f"--out {path}: {error.strerror}") from error
