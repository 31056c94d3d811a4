"""The commands of a planned failover: `fence`, `unfence`, `cutover`, `promote`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from app.cli.failover_options import (
    AbortOption,
    AcceptGroupOption,
    AcceptOption,
    AgreeOption,
    BatchOption,
    DryRunOption,
    OneFlowOption,
    TakeOverOption,
    VerifyOption,
    WhyOption,
    WithinOption,
    WithoutFenceOption,
)
from app.cli.failover_output import say_of
from app.cli.failover_run import called
from app.cli.options import DEFAULT_CONFIG, ConfigOption, OutputOption
from app.cli.output import Output
from app.failover_session import FailoverCall
from sinks.failover import commands
from sinks.failover.fence_lifting import check_liftable
from sinks.failover.foreseen import moved_groups
from sinks.failover.scene import Scene
from sinks.ledger.failover_states import Command, State
from sinks.ledger.fence_rules import shown
from streaming.errors import WrongUsage
from streaming.number_of import number_of


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
    yes: AgreeOption = False,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Leads the whole planned failover: fence, wait for the last records, promote. Loses nothing but
    what `--accept` names."""
    accepted, groups = tuple(accept or ()), tuple(accept_group or ())
    call = FailoverCall(why, within, accepted, groups, verify, abort_transactions)
    run = called(config, flow, output, call, dry=dry)

    def told(scene: Scene) -> dict[str, Any]:
        return {"groups": _tell_cutover(scene, without_fence)}

    def agreed(scene: Scene) -> None:
        told(scene)
        if not yes:
            _ask(scene)

    run.carry_out(
        CUTOVER,
        lambda scene: commands.cutover(
            scene, without_fence=without_fence, take_over=take_over, batch=batch, agreed=agreed
        ),
        topics=accept or (),
        done=commands.promoted,
        checks=lambda scene: commands.check_cutover(scene, without_fence=without_fence),
        foresees=told,
    )


CUTOVER = (Command.FENCE, Command.DRAIN, Command.PROMOTE)


def _tell_cutover(scene: Scene, without_fence: bool) -> int | None:
    """Says what a cutover does from here, and returns how many groups it moves; None: unknown."""
    flow, record, listed, moved = scene.settings.flow, scene.journal.record, scene.listed(), moved_groups(scene)
    fenced = [] if record.state is State.MIRRORING else scene.topics(listed)
    if fenced:
        already = number_of(len(fenced), f"topic on {flow.source} is", f"topics on {flow.source} are")
        say_of(scene.settings, f"{already} fenced already: {shown(fenced)}")
    if new := sorted(set(scene.fenced(listed)) - set(fenced)):
        topics = f"{number_of(len(new), 'topic')} on {flow.source}: {shown(new)}"
        does = "sets no fence, and expects that nobody writes" if without_fence else "denies everybody to write"
        say_of(scene.settings, f"cutover {does} {topics}")
    if moved.count is None:
        say_of(scene.settings, f"how many groups are moved is unknown: {moved.unknown}")
    else:
        say_of(scene.settings, f"it writes the last offsets of {number_of(moved.count, 'group')} on {flow.target}")
    say_of(scene.settings, f"then {flow.name} has ended: Lockstep keeps nothing in step for it any more")
    return moved.count


def _ask(scene: Scene) -> None:
    """Raises WrongUsage where nobody can be asked, and Abort where they do not agree."""
    if not sys.stdin.isatty():
        raise WrongUsage("there is no terminal to ask on: say --yes")
    typer.confirm(f"Cut over {scene.settings.flow.name}?", abort=True, err=True)


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
