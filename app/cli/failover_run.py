"""How every command of a failover runs: dry, or on the flow itself, with its hooks told."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.options import seconds, with_overrides
from app.cli.output import Output, complain, print_json, print_line
from app.cli.wrong_names import refuse_wrong_topics
from app.failover_session import FailoverCall, failover_session
from app.settings import Settings
from app.settings.flow_sections import not_enabled
from sinks.failover.foreseen import foreseen
from sinks.failover.journal import StateObserver
from sinks.failover.scene import Scene
from sinks.failover.unplanned import ANY_LOSS, TYPED_UNKNOWN
from sinks.flow_settings import FlowSettings
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.failover_states import Command
from streaming.errors import WrongUsage
from streaming.number_of import number_of


def nothing_more() -> dict[str, Any]:
    """For a document that is that of the state alone."""
    return {}


@dataclass(frozen=True)
class FailoverRun:
    """A command, called for one flow. `dry`: it says what it would do. Not `needs_source`: that may be gone."""

    settings: Settings
    flow: FlowSettings
    output: Output
    call: FailoverCall
    dry: bool = False
    needs_source: bool = True

    def carry_out(
        self,
        commands: Sequence[Command],
        does: Callable[[Scene], FailoverRecord],
        *,
        topics: Sequence[str] = (),
        done: Callable[[Scene], FailoverRecord | None] = lambda scene: None,
        checks: Callable[[Scene], None] = lambda scene: None,
        foresees: Callable[[Scene], dict[str, Any]] = lambda scene: {},
        tells: Callable[[], dict[str, Any]] = nothing_more,
    ) -> None:
        """Prints what came of it, or would. `commands`: those that it leads through. `topics`: named by the caller.

        For a dry run, both write nothing: `done`, the record where the command would do nothing any more; `checks`
        raises what the command itself would refuse. `foresees` and `tells` add to the document of a dry run, and of one
        that was done. Raises WrongUsage, NotNow, LockstepError.
        """
        if self.dry:
            with failover_session(
                self.settings, self.flow, self.call, needs_source=self.needs_source, writes=False
            ) as scene:
                self._check(scene, topics)
                if record := done(replace(scene, say=partial(say_of, self.flow))):
                    nothing_left(self.flow, record, self.output)
                    return
                checks(scene)
                dry_run(scene, commands, self.output, **foresees(scene))
            return
        with (
            saying(self.call, self.flow) as call,
            failover_session(self.settings, self.flow, call, needs_source=self.needs_source) as scene,
        ):
            self._check(scene, topics)
            record = does(scene)
            finish(self.flow, record, self.output, **tells())

    def _check(self, scene: Scene, topics: Sequence[str]) -> None:
        if topics:
            refuse_wrong_topics(topics, [(self.flow, scene.listed())])


def called(
    config: Path,
    flow: list[str] | None,
    output: Output,
    call: FailoverCall,
    *,
    dry: bool = False,
    needs_source: bool = True,
) -> FailoverRun:
    """A command for the one flow that is meant. Raises WrongUsage where that is more than one."""
    settings, chosen = one_flow(config, flow)
    return FailoverRun(settings, chosen, output, call, dry, needs_source)


# The options that the commands of a failover share.


OneFlowOption = Annotated[
    list[str] | None, typer.Option("--flow", help="The one flow that is meant, where the file enables several.")
]
WhyOption = Annotated[str, typer.Option("--why", help="Why, for the ledger and the audit.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Go on although another process claims the flow: it must be gone.")
]
WithoutFenceOption = Annotated[
    bool,
    typer.Option("--without-fence", help="Set no DENY: producers were stopped otherwise; end offsets prove it."),
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
AgreeOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AbortOption = Annotated[
    bool,
    typer.Option(
        "--abort-transactions",
        help="Abort the transactions that are open on the source behind the fence: what they wrote is lost to readers.",
    ),
]


def typed_loss(text: str) -> str:
    """Raises BadParameter for what no prediction is."""
    if text != TYPED_UNKNOWN and not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text}: a number of records, or {TYPED_UNKNOWN}")
    return text


AcceptLossOption = Annotated[
    str | None,
    typer.Option(
        "--accept-loss",
        parser=typed_loss,
        help="Records that may be lost, where the source still answers; `unknown`: any number.",
    ),
]


def accepted_loss(typed: str | None) -> float | None:
    """What `typed_loss` let through, as a number of records."""
    return None if typed is None else ANY_LOSS if typed == TYPED_UNKNOWN else int(typed)


YesOption = Annotated[
    str | None,
    typer.Option(
        "--yes",
        parser=typed_loss,
        help="The predicted loss as `--dry-run` shows it, typed back: this number, or `unknown`.",
    ),
]


def at_least_one(number: int | None) -> int | None:
    """Raises BadParameter for any other."""
    if number is not None and number < 1:
        raise typer.BadParameter(f"{number}: 1 or more")
    return number


BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch", help="Fence and drain so many topics at a time. Default: all at once.", callback=at_least_one
    ),
]


# What the commands of a failover print, and which flow they are about.


def one_flow(config: Path, flow: list[str] | None) -> tuple[Settings, FlowSettings]:
    """The settings and the flow that is meant. Raises WrongUsage where that is more than one."""
    settings = with_overrides(config, None)
    names = [one.flow.name for one in settings.flows]
    for name in flow or ():
        if name not in names:
            raise WrongUsage(not_enabled(name, names))
    wanted = [one for one in settings.flows if not flow or one.flow.name in flow]
    if len(wanted) != 1:
        raise WrongUsage(f"a failover is one flow's: say which with --flow ({', '.join(names)})")
    return settings, wanted[0]


@contextmanager
def saying(call: FailoverCall, flow: FlowSettings) -> Iterator[FailoverCall]:
    """The call with lines on stderr, and the hooks told of each state."""
    with failover_hooks(flow) as on_state:
        yield replace(call, say=partial(say_of, flow), on_state=on_state)


def say_of(flow: FlowSettings, line: str) -> None:
    """A line of this flow on stderr."""
    if line:
        complain(f"{flow.flow.name}: {line}")


def document(flow: FlowSettings, record: FailoverRecord) -> dict[str, Any]:
    """A flow's state as JSON."""
    return {
        "source": flow.flow.source,
        "target": flow.flow.target,
        "state": record.state.value,
        "doing": record.doing.value if record.doing else None,
        "who": record.begun.who,
        "at": record.begun.at or None,
        "why": record.begun.why,
        "topics": list(record.topics),
    }


def finish(flow: FlowSettings, record: FailoverRecord, output: Output, **more: Any) -> None:
    """Prints where the flow is now."""
    if output is Output.JSON:
        print_json({"flows": [document(flow, record) | more]})
    else:
        print_line(f"{flow.flow.name}: {record.describe()}")


def nothing_left(flow: FlowSettings, record: FailoverRecord, output: Output) -> None:
    """Prints what a dry run says where the command has come to its end before."""
    if output is Output.JSON:
        print_json({"flows": [document(flow, record) | {"would_do": [], "would_be": record.state.value, "topics": []}]})
    else:
        print_line(f"{flow.flow.name} is {record.describe()}; nothing is left to do")


def dry_run(scene: Scene, parts: Sequence[Command], output: Output, **more: Any) -> None:
    """Prints the steps that the commands would take from here. Raises NotNow where they could not begin."""
    record, found = scene.journal.record, foreseen(scene, parts)
    if output is Output.JSON:
        rows = [{"command": command.value, "step": step.name, "does": step.value} for command, step in found.steps]
        would = {"would_do": rows, "would_be": found.then.value, "topics": list(found.topics)}
        print_json({"flows": [document(scene.settings, record) | would | more]})
        return
    print_line(f"{scene.settings.flow.name} is {record.describe()}; it would")
    for command, step in found.steps:
        print_line(f"  {command.typed}: {step}")
    topics = number_of(len(found.topics), "topic is", "topics are")
    print_line(f"and be {found.then}. {topics} concerned")


# Tells a class and a program of the operator's of each state that a failover reaches, as JSON.
#
# Lockstep switches no client over and moves no DNS: that is what these are for.


log = logging.getLogger(__name__)


@contextmanager
def failover_hooks(flow: FlowSettings) -> Iterator[StateObserver]:
    """What to call with the record before and after. What a hook raises, or how it ends, stops nothing."""

    def notify(before: FailoverRecord, after: FailoverRecord) -> None:
        state = {
            "source": flow.flow.source,
            "target": flow.flow.target,
            "before": before.state.value,
            "state": after.state.value,
            "doing": after.doing.value if after.doing else None,
            "topics": list(after.topics),
            "who": after.begun.who,
            "why": after.begun.why,
            "at": after.begun.at,
        }
        listener, program = flow.failover.listener, flow.failover.program
        if listener is not None:
            _guarded("lockstep.failover.listener.class", lambda: listener.state_changed(state))
        if program is not None:
            _guarded("lockstep.failover.program.path", lambda: _run(program, state, flow.failover.hook_seconds))

    yield notify


def _guarded(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the operator's own code may raise anything, and a failover goes on
        log.warning("%s failed: %s: %s", name, type(error).__name__, error)


def _run(program: str, state: dict[str, Any], seconds: float) -> None:
    done = subprocess.run([program], input=orjson.dumps(state), timeout=seconds, check=False, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"it ended with {done.returncode}")
