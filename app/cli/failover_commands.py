"""The commands of a planned failover: `fence`, `unfence`, `cutover`, `promote`."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.failover_options import (
    AbortOption,
    AcceptGroupOption,
    AcceptOption,
    BatchOption,
    DryRunOption,
    OneFlowOption,
    TakeOverOption,
    VerifyOption,
    WhyOption,
    WithinOption,
    WithoutFenceOption,
)
from app.cli.failover_run import called
from app.cli.options import DEFAULT_CONFIG, ConfigOption, OutputOption
from app.cli.output import Output
from app.failover_session import FailoverCall
from sinks.failover import commands
from sinks.failover.fence_lifting import check_liftable
from sinks.failover.states import Command


def fence(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics of the source; none: all replicated ones.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    abort_transactions: AbortOption = False,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Keeps everybody from writing the replicated topics on the source, and proves it."""
    named = tuple(topics or ())
    run = called(config, flow, output, FailoverCall(why, aborts=abort_transactions), dry=dry)
    run.carry_out(
        [Command.FENCE],
        lambda scene: commands.fence(scene, named, take_over=take_over),
        topics=named,
        checks=lambda scene: commands.check_fence(scene, named),
    )


def unfence(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Takes the fence away: producers may write on the source again."""
    run = called(config, flow, output, FailoverCall(why), dry=dry)
    run.carry_out([Command.UNFENCE], lambda scene: commands.unfence(scene, take_over=take_over), checks=check_liftable)


def cutover(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    without_fence: WithoutFenceOption = False,
    within: WithinOption = 300.0,
    accept: AcceptOption = None,
    accept_group: AcceptGroupOption = None,
    abort_transactions: AbortOption = False,
    batch: BatchOption = None,
    verify: VerifyOption = False,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Leads the whole planned failover: fence, wait for the last records, promote. Loses nothing but
    what `--accept` names."""
    accepted, groups = tuple(accept or ()), tuple(accept_group or ())
    call = FailoverCall(why, within, accepted, groups, verify, abort_transactions)
    run = called(config, flow, output, call, dry=dry)
    run.carry_out(
        [Command.FENCE, Command.DRAIN, Command.PROMOTE],
        lambda scene: commands.cutover(scene, without_fence=without_fence, take_over=take_over, batch=batch),
        topics=accept or (),
        done=commands.promoted,
        checks=lambda scene: commands.check_cutover(scene, without_fence=without_fence),
    )


def promote(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    accept: AcceptOption = None,
    accept_group: AcceptGroupOption = None,
    abort_transactions: AbortOption = False,
    verify: VerifyOption = False,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Ends a flow whose records are all on the target: last offsets, rights to write, and nothing more is written."""
    accepted, groups = tuple(accept or ()), tuple(accept_group or ())
    call = FailoverCall(why, accepted=accepted, accepted_groups=groups, verifies=verify, aborts=abort_transactions)
    run = called(config, flow, output, call, dry=dry)
    run.carry_out(
        [Command.PROMOTE],
        lambda scene: commands.promote(scene, take_over=take_over),
        topics=accept or (),
        done=commands.promoted,
    )
