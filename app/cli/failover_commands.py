"""The commands of a planned failover: `fence`, `unfence`, `cutover`, `promote`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from app.cli.failover_output import dry_run, finish, one_flow, saying
from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption
from app.cli.output import Output
from app.failover_session import FailoverCall, failover_session
from app.settings import Settings
from sinks.failover import commands
from sinks.failover.fencing import Proof
from sinks.failover.record import FailoverRecord
from sinks.failover.scene import Choices, Scene
from sinks.failover.states import Command
from sinks.flow_settings import FlowSettings

WhyOption = Annotated[str, typer.Option("--why", help="Why, for the ledger and the audit.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Although another process claims it, which is gone for certain.")
]
WithoutFenceOption = Annotated[
    bool, typer.Option("--without-fence", help="Set no DENY: producers were stopped otherwise; the ends prove it.")
]
WithinOption = Annotated[float, typer.Option("--within", help="Seconds in which all records must be on the target.")]
AcceptOption = Annotated[
    list[str] | None, typer.Option("--accept", help="A topic whose records may be missing; may be repeated.")
]


def fence(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics of the source; none: all replicated ones.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Keeps everybody from writing the replicated topics on the source, and proves it."""
    settings, chosen = one_flow(config, flow)

    def run(scene: Scene) -> FailoverRecord:
        return commands.fence(scene, tuple(topics or ()), take_over=take_over)

    _run(settings, chosen, output, [Command.FENCE], run, dry, FailoverCall(why, _choices(settings, chosen)))


def unfence(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Takes the fence away: producers may write on the source again."""
    settings, chosen = one_flow(config, flow)

    def run(scene: Scene) -> FailoverRecord:
        return commands.unfence(scene, take_over=take_over)

    _run(settings, chosen, output, [Command.UNFENCE], run, dry, FailoverCall(why))


def cutover(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    without_fence: WithoutFenceOption = False,
    within: WithinOption = 300.0,
    accept: AcceptOption = None,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Leads the whole planned failover: fence, wait for the last records, promote. Loses nothing."""
    settings, chosen = one_flow(config, flow)

    def run(scene: Scene) -> FailoverRecord:
        return commands.cutover(scene, without_fence=without_fence, take_over=take_over)

    call = FailoverCall(why, _choices(settings, chosen, within, accept))
    _run(settings, chosen, output, [Command.FENCE, Command.DRAIN, Command.PROMOTE], run, dry, call)


def promote(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    accept: AcceptOption = None,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Ends a flow whose records are all on the target: last offsets, rights to write, and nothing more is written."""
    settings, chosen = one_flow(config, flow)

    def run(scene: Scene) -> FailoverRecord:
        return commands.promote(scene, take_over=take_over)

    call = FailoverCall(why, _choices(settings, chosen, accept=accept))
    _run(settings, chosen, output, [Command.PROMOTE], run, dry, call)


def _choices(settings: Settings, flow: FlowSettings, within: float = 300.0, accept: list[str] | None = None) -> Choices:
    return Choices(Proof(flow.failover.proof_seconds), within, frozenset(accept or ()))


def _run(
    settings: Settings,
    flow: FlowSettings,
    output: Output,
    parts: list[Command],
    run: Callable[[Scene], FailoverRecord],
    dry: bool,
    call: FailoverCall,
) -> None:
    if dry:
        with failover_session(settings, flow, call, writes=False) as scene:
            dry_run(scene, parts, output)
        return
    with saying(call, flow) as told, failover_session(settings, flow, told) as scene:
        finish(flow, run(scene), output)
