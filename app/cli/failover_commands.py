"""The failover commands: `fence`, `unfence`, `cutover`, `promote`, `failover`, `failback`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import javaproperties
import typer

from app.cli.failover_run import DryRunOption, FailoverRun, OneFlowOption, called, say_of
from app.cli.output import Output, complain
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, OutputOption, YesOption, need_terminal, seconds, whole
from app.cli.status_text import lost_line
from app.failover_session import FailoverCall
from app.private_files import replace_file
from sinks.failover import commands
from sinks.failover.commands import check_loss, moved_groups
from sinks.failover.commands import failover as fail_over
from sinks.failover.failing_back import check_resume, resume
from sinks.failover.failing_back import failback as lead_back
from sinks.failover.fencing import check_liftable
from sinks.failover.lost_before_copying import kept_lost, lost_as_json, unacknowledged
from sinks.failover.predicted_loss import ANY_LOSS, TYPED_UNKNOWN, Prediction, predict
from sinks.failover.readiness_facts import losses_as_json, losses_of
from sinks.failover.scene import Scene
from sinks.failover.unreplicated import Unreplicated
from sinks.kinds.file_warnings import left_behind
from sinks.kinds.offsets.same_offsets import check_leads_back
from sinks.ledger.failover_record import Command, NotNow, State
from streaming.errors import LockstepError
from streaming.flow import Flow
from streaming.message_words import first_names, number_of


def typed_loss(text: str) -> str:
    """Checks a typed loss: a number of records or `unknown`. Raises BadParameter."""
    if text != TYPED_UNKNOWN and not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text}: a number of records, or {TYPED_UNKNOWN}")
    return text


def accepted_loss(typed: str | None) -> float | None:
    """Returns the number of records that `typed_loss` accepted; infinity for `unknown`, None if none was typed."""
    return None if typed is None else ANY_LOSS if typed == TYPED_UNKNOWN else int(typed)


WhyOption = Annotated[str, typer.Option("--why", help="The reason, for the ledger and the audit.")]
TakeOverOption = Annotated[
    bool,
    typer.Option(
        "--take-over", help="Continue although another process claims the flow. That process must have ended."
    ),
]
WithoutFenceOption = Annotated[
    bool,
    typer.Option("--without-fence", help="Set no DENY ACLs: you stopped the producers. End offsets must prove it."),
]
WithinOption = Annotated[
    float, typer.Option("--within", parser=seconds, help="Seconds in which all records must be on the target.")
]
AcceptOption = Annotated[
    list[str] | None, typer.Option("--accept", help="A topic whose records may be missing; may be repeated.")
]
AcceptGroupOption = Annotated[
    list[str] | None,
    typer.Option("--accept-group", help="A group that need not get its last offsets; may be repeated."),
]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare the records of both sides before clients may move, as `verify` does.")
]
AbortOption = Annotated[
    bool,
    typer.Option(
        "--abort-transactions",
        help="Abort the transactions that are open on the source behind the fence. Readers never see what they wrote.",
    ),
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch", help="Number of topics to fence and drain at a time. Default: all at once.", parser=whole(1)
    ),
]
AcceptLossOption = Annotated[
    str | None,
    typer.Option(
        "--accept-loss",
        parser=typed_loss,
        help="Number of records that may be lost although the source still answers; `unknown`: any number.",
    ),
]
TypedLossOption = Annotated[
    str | None,
    typer.Option(
        "--yes",
        parser=typed_loss,
        help="Agree to the predicted loss: the number that `--dry-run` shows, or `unknown`.",
    ),
]
ExportOption = Annotated[
    Path | None, typer.Option("--export", help="A new folder for the records that only one cluster has, as Parquet.")
]
DiscardOption = Annotated[
    str | None,
    typer.Option(
        "--discard",
        parser=typed_loss,
        help="Number of these records that may stay behind; `unknown`: also those that cannot be counted.",
    ),
]
OutOption = Annotated[Path | None, typer.Option("--out", help="The properties file to write for the reverse flow.")]
DoneOption = Annotated[bool, typer.Option("--done", help="The source leads again: mirror as before.")]
LeadsOption = Annotated[
    str | None,
    typer.Option(
        "--yes", metavar="STATE", help="With --done, if the reverse flow was not cut over: confirm by its state."
    ),
]

CUTOVER = (Command.FENCE, Command.DRAIN, Command.PROMOTE)

MOST_PARTITIONS = 20
"""Partitions that the output names, one a line. It counts the others."""


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
    """Keeps all producers from writing the replicated topics on the source, and proves it."""
    named = tuple(topics or ())
    run = called(config, flow, output, FailoverCall(why, take_over, aborts=abort_transactions), dry=dry)
    with run.scene(named) as scene:
        if dry:
            commands.check_fence(scene, named)
            run.would(scene, [Command.FENCE])
        else:
            run.did(commands.fence(scene, named))


def unfence(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Removes the fence: producers may write on the source again."""
    run = called(config, flow, output, FailoverCall(why, take_over), dry=dry)
    with run.scene() as scene:
        if dry:
            check_liftable(scene)
            run.would(scene, [Command.UNFENCE])
        else:
            run.did(commands.unfence(scene))


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
    yes: YesOption = False,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Runs the whole planned failover: fence, wait for the last records, promote. Loses nothing but what `--accept`
    names."""
    call = FailoverCall(why, take_over, within, accept or (), accept_group or (), verify, abort_transactions)
    run = called(config, flow, output, call, dry=dry)

    def agreed(scene: Scene) -> None:
        _tell_cutover(scene, without_fence)
        if not yes:
            need_terminal(f"`cutover` ends {scene.settings.flow.name}")
            typer.confirm(f"Cut over {scene.settings.flow.name}?", abort=True, err=True)

    with run.scene(accept) as scene:
        if not dry:
            run.did(commands.cutover(scene, without_fence=without_fence, batch=batch, agreed=agreed))
        elif not run.has_ended(scene, commands.promoted):
            commands.check_cutover(scene, without_fence=without_fence)
            run.would(scene, CUTOVER, groups=_tell_cutover(scene, without_fence))


def _tell_cutover(scene: Scene, without_fence: bool) -> int | None:
    """Prints what a cutover does from here. Returns how many groups it moves; None: unknown."""
    flow, record, listed = scene.settings.flow, scene.journal.record, scene.listed()
    fenced = [] if record.state is State.MIRRORING else scene.topics(listed)
    if fenced:
        already = number_of(len(fenced), f"topic on {flow.source} is", f"topics on {flow.source} are")
        say_of(scene.settings, f"{already} fenced already: {first_names(fenced)}")
    if new := sorted(set(scene.fenced(listed)) - set(fenced)):
        topics = f"{number_of(len(new), 'topic')} on {flow.source}: {first_names(new)}"
        does = "sets no fence, and expects no producer on" if without_fence else "denies everybody to write"
        say_of(scene.settings, f"cutover {does} {topics}")
    moved: int | None = None
    try:
        moved = moved_groups(scene)
        say_of(scene.settings, f"it writes the last offsets of {number_of(moved, 'group')} on {flow.target}")
    except LockstepError as error:
        say_of(scene.settings, f"how many groups it moves is unknown: {error}")
    say_of(scene.settings, f"then {flow.name} has ended: Lockstep keeps nothing in step for it any more")
    return moved


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
    """Ends a flow whose records are all on the target: writes the last offsets, grants the rights to write, stops
    syncing."""
    accepted, groups = accept or (), accept_group or ()
    call = FailoverCall(
        why, take_over, accepted=accepted, accepted_groups=groups, verifies=verify, aborts=abort_transactions
    )
    run = called(config, flow, output, call, dry=dry)
    with run.scene(accept) as scene:
        if not dry:
            run.did(commands.promote(scene))
        elif not run.has_ended(scene, commands.promoted):
            commands.check_promote(scene)
            run.would(scene, [Command.PROMOTE])


def failover(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    accept_loss: AcceptLossOption = None,
    yes: TypedLossOption = None,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Ends a flow whose source is gone. Shows the predicted loss first, and asks the operator to type it."""
    run = called(config, flow, output, FailoverCall(why, take_over), dry=dry, needs_source=False)
    loss = accepted_loss(accept_loss)
    seen: list[Prediction] = []

    with run.scene() as scene:

        def agreed(found: Prediction) -> None:
            seen.append(found)
            _print_prediction(scene, found)
            _insist(found, yes)

        if not dry:
            record = fail_over(scene, accept_loss=loss, agreed=agreed)
            run.did(record, prediction=_as_json(seen[0]) if seen else None)
        elif not run.has_ended(scene, lambda scene: scene.journal.has_done(State.FAILED_OVER)):
            run.would(scene, [Command.FAIL_OVER], prediction=_foretold(scene, loss))


def _insist(found: Prediction, yes: str | None) -> None:
    if yes is None:
        need_terminal(f"the predicted loss is {found.typed}", f"say --yes {found.typed}")
        yes = typer.prompt(f"Records that are lost; type {found.typed} to go on", err=True)
    if yes != found.typed:
        raise NotNow(f"the predicted loss is {found.typed}, not {yes}. Nothing was done")


def _foretold(scene: Scene, loss: float | None) -> dict[str, Any]:
    found = predict(scene)
    _print_prediction(scene, found)
    try:
        check_loss(scene, found, loss)
    except NotNow as refused:
        complain(f"{scene.settings.flow.name}: it would be refused: {refused}")
    return _as_json(found)


def _as_json(found: Prediction) -> dict[str, Any]:
    losses = losses_of(found.arrivals.values(), time.time() * 1000)
    age = None if found.at_ms is None else round(time.time() - found.at_ms / 1000, 1)
    unknown = [
        {"topic": where.topic, "partition": where.partition, "reason": why}
        for where, why in sorted(found.unknown.items())
    ]
    unplaced = [{"topic": where.topic, "partition": where.partition} for where in found.without_position]
    counted = {"records": found.records, "exact": found.exact, "unknown": unknown, "without_position": unplaced}
    return {**losses_as_json(losses), **counted, "source_seen_seconds_ago": age}


def _print_prediction(scene: Scene, found: Prediction) -> None:
    flow, name = scene.settings, f"{scene.settings.flow.name}: "
    for lost in lost_as_json(unacknowledged(kept_lost(scene.journal.ledger)))["topics"]:
        complain(f"{name}{lost_line(lost)}")
    with suppress(LockstepError):
        # A source that does not answer shows nothing that the file might leave out.
        for line in left_behind(flow, scene.listed()) if scene.source_answers else ():
            complain(f"{name}{line}")
    if not found.is_known:
        complain(f"{name}the loss is unknown, because no job kept the source's end offsets in the ledger")
        return
    losses = losses_of(found.arrivals.values(), time.time() * 1000)
    for topic, loss in sorted(losses.items()):
        complain(f"{name}{topic} loses {'' if loss.exact else 'at most '}{number_of(loss.records, 'record')}")
    if found.without_position:
        named = first_names([str(where) for where in found.without_position])
        complain(f"{name}how far MM2 copied {named} is unknown, so all its records on the source count as lost")
    unknown = sorted(found.unknown.items())
    for where, why in unknown[:MOST_PARTITIONS]:
        complain(f"{name}the loss of {where} is unknown: {why}")
    if (more := len(unknown) - MOST_PARTITIONS) > 0:
        complain(
            f"{name}the loss of {number_of(more, 'more partition', 'more partitions')} is unknown: `-o json` names all"
        )
    most = "" if found.exact or found.records is None else "at most "
    seen = "" if found.at_ms is None else f", and what came since {time.time() - found.at_ms / 1000:.0f} s ago"
    if found.at_ms is not None and found.unanswered:
        seen += f" to {first_names(sorted(map(str, found.unanswered)))}: {flow.flow.source} does not answer for them"
    complain(f"{name}lost in all: {most}{found.typed} records{seen}")


def failback(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    export: ExportOption = None,
    discard: DiscardOption = None,
    out: OutOption = None,
    done: DoneOption = False,
    yes: LeadsOption = None,
    why: WhyOption = "",
    dry: DryRunOption = False,
    take_over: TakeOverOption = False,
) -> None:
    """Leads back once the source is there again: counts the records that only it has, and writes the reverse flow's
    file."""
    run = called(config, flow, output, FailoverCall(why, take_over), dry=dry)
    check_leads_back(run.flow)
    names = run.flow.flow
    target = out or config.with_name(f"{config.stem}-{names.target}-to-{names.source}.properties")
    exported = Export(export, dry=dry)
    with run.scene() as scene:
        if done:
            _lead_again(run, scene, yes, exported, accepted_loss(discard))
        elif not dry:
            record = lead_back(
                scene,
                export=exported.taker,
                discard=accepted_loss(discard),
                write_reverse=lambda: write_reverse(config, target, names, replaces=out is not None),
            )
            for line in NEXT:
                complain(line.format(file=target, flow=names.name, reverse=names.reverse.name, source=names.source))
            run.did(record, exported=exported.count, file=str(target))
        elif not run.has_ended(scene, lambda scene: scene.journal.has_done(State.REVERSING)):
            run.would(scene, [Command.INVALIDATE, Command.REVERSE])


def _lead_again(run: FailoverRun, scene: Scene, yes: str | None, exported: Export, discard: float | None) -> None:
    if not run.dry:
        record = resume(scene, typed=yes, export=exported.taker, discard=discard)
        run.did(record, exported=exported.count)
    elif not run.has_ended(scene, lambda scene: scene.journal.has_done(State.MIRRORING)):
        check_resume(scene, yes, export=exported.taker, discard=discard)
        run.would(scene, [Command.RESUME])


class Export:
    """Writes the records that only one cluster has to a folder; a dry run writes none. `count`: records written so
    far."""

    def __init__(self, folder: Path | None, *, dry: bool) -> None:
        self._folder, self._dry, self.count = folder, dry, 0

    @property
    def taker(self) -> Callable[[Unreplicated], None] | None:
        """Returns the function that writes the records; None without a folder."""
        return None if self._folder is None else partial(self._take, self._folder)

    def _take(self, folder: Path, found: Unreplicated) -> None:
        if self._dry:
            return
        # Spark takes seconds to start, and few ask for it.
        from app.job.exported_records import export_records

        self.count += found.count
        export_records(found.records, folder)


NEXT = (
    "next, if {reverse} mirrors already: only `lockstep unfence` for {flow}",
    "otherwise: check {file}; stop the MM2 of {flow}",
    "  start MM2 with that file, and `lockstep run` in place of the old job",
    "  once nothing is missing: `lockstep cutover` with that file",
    "  `lockstep offsets --reverse --execute` with the old file, for the groups",
    "  `lockstep failback --done` with the old file: {source} leads again",
)
"""The next steps of a failback, printed to stderr."""


# The properties of the reverse flow, made from a flow's: one file for MM2 and Lockstep alike.


HEAD = """# {reverse}, made by `lockstep failback` from {path}. Look at it before MM2 and Lockstep get it:
# - {flow} is off. Stop the MM2 that runs it.
# - lockstep.acl.principal.mapping is unchanged: reverse its rules.
# - Under the default policy MM2 never copies topics {source}.* back: producers on {target} must write to others.
# - Under the identity policy the fence on {source} keeps MM2 away, too: `lockstep unfence`, or make it a super user.
"""


def reverse_properties(lines: dict[str, str], flow: Flow) -> dict[str, str]:
    """Returns the properties of the reverse flow: each key of the flow becomes one of its reverse. References stay
    references.

    Keys that the file already has for the reverse flow win.
    """
    reverse = flow.reverse
    found: dict[str, str] = {}
    for name, value in lines.items():
        start, rest = _split(name, flow)
        found.setdefault(f"{start}{reverse.name}.{rest}" if rest else name, value)
    found |= {name: value for name, value in lines.items() if _split(name, reverse)[1]}
    return found | {f"{flow.name}.enabled": "false", f"{reverse.name}.enabled": "true"}


def _split(name: str, flow: Flow) -> tuple[str, str]:
    """Splits a key at the flow's name. The second part is empty for a key of no flow or another flow."""
    for start in ("", "lockstep."):
        if name.startswith(f"{start}{flow.name}."):
            return start, name.removeprefix(f"{start}{flow.name}.")
    return name, ""


def write_reverse(path: Path, out: Path, flow: Flow, *, replaces: bool = True) -> None:
    """Writes the file of the reverse flow, whole or not at all, readable by its owner alone. Raises LockstepError.

    `replaces`: False refuses to replace a file with other content.
    """
    try:
        with path.open(encoding="utf-8") as file:
            lines = javaproperties.load(file)
        names = {"flow": flow.name, "source": flow.source, "target": flow.target, "path": path.name}
        head = HEAD.format(reverse=f"{flow.target}->{flow.source}", **names)
        text = head + javaproperties.dumps(reverse_properties(lines, flow), timestamp=False, sort_keys=True)
        if not replaces and os.path.lexists(out) and out.read_text(encoding="utf-8") != text:
            raise LockstepError(
                f"{out} exists already with other content: to replace it, name it with --out; else name another file "
                "with --out"
            )
        replace_file(out, text.encode())
    except OSError as error:
        raise LockstepError(f"{error.filename}: {error.strerror}") from error
