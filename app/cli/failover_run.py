"""What all failover commands share: the choice of one flow, the dry run, and the calls of the operator's hooks."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.cli.output import Output, complain, interrupted, print_json, print_line
from app.cli.shared_options import with_overrides
from app.cli.wrong_names import refuse_wrong_topics
from app.failover_session import FailoverCall, failover_session
from app.settings import Settings
from app.settings.flow_sections import not_enabled
from sinks.failover.commands import foreseen
from sinks.failover.scene import Scene
from sinks.flow_settings import FlowSettings
from sinks.ledger.failover_record import Command, FailoverRecord, way_on
from streaming.errors import WrongUsage
from streaming.message_words import number_of

log = logging.getLogger(__name__)


OneFlowOption = Annotated[list[str] | None, typer.Option("--flow", help="The flow, if the file enables several.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")]


@dataclass(frozen=True)
class FailoverRun:
    """A failover command for one flow. `dry`: only prints what it would do. `needs_source`: False if the source may be
    gone."""

    settings: Settings
    flow: FlowSettings
    output: Output
    call: FailoverCall
    dry: bool = False
    needs_source: bool = True

    @contextmanager
    def scene(self, topics: Sequence[str] | None = None) -> Iterator[Scene]:
        """Opens the flow. `topics`: those the operator named. Raises WrongUsage for a topic that is not replicated."""
        call = self.call if self.dry else spoken(self.call, self.flow)
        opened = failover_session(self.settings, self.flow, call, needs_source=self.needs_source, writes=not self.dry)
        with opened as scene:
            if topics:
                refuse_wrong_topics(topics, [(self.flow, scene.listed())])
            try:
                yield scene
            except KeyboardInterrupt:
                if way := way_on(scene.journal.record):
                    is_now = f"the flow is {scene.journal.record.describe()}"
                    interrupted(f"{self.flow.flow.name}: interrupted: {is_now}: {way}")
                raise

    def did(self, record: FailoverRecord, **more: Any) -> None:
        """Prints the state of the flow."""
        self._print([f"{self.flow.flow.name}: {record.describe()}"], record, more)

    def has_ended(self, scene: Scene, done: Callable[[Scene], FailoverRecord | None]) -> bool:
        """Returns whether a dry run has nothing left to do, and prints that. `done`: returns the record in that case,
        else None."""
        record = done(replace(scene, say=partial(say_of, self.flow)))
        if record is None:
            return False
        nothing: dict[str, Any] = {"would_do": [], "would_be": record.state.value, "topics": []}
        self._print([f"{self.flow.flow.name} is {record.describe()}; nothing is left to do"], record, nothing)
        return True

    def would(self, scene: Scene, commands: Sequence[Command], **more: Any) -> None:
        """Prints the steps that these commands would take from here. Raises NotNow if they could not begin."""
        record, found = scene.journal.record, foreseen(scene, commands)
        rows = [{"command": command.value, "step": step.name, "does": step.value} for command, step in found.steps]
        would = {"would_do": rows, "would_be": found.then.value, "topics": list(found.topics)}
        steps = [f"  {command.typed}: {step}" for command, step in found.steps]
        topics = number_of(len(found.topics), "topic is", "topics are")
        begin = f"{self.flow.flow.name} is {record.describe()}; it would"
        self._print([begin, *steps, f"and be {found.then}. {topics} concerned"], record, would | more)

    def _print(self, lines: Sequence[str], record: FailoverRecord, more: dict[str, Any]) -> None:
        if self.output is Output.JSON:
            print_json({"flows": [_document(self.flow, record) | more]})
            return
        for line in lines:
            print_line(line)


def called(
    config: Path,
    flow: list[str] | None,
    output: Output,
    call: FailoverCall,
    *,
    dry: bool = False,
    needs_source: bool = True,
) -> FailoverRun:
    """Returns the command for the one flow that `--flow` or the file names.

    Raises WrongUsage for several flows. Raises it too if the operator's program cannot run, because clients would wait
    for it behind the fence.
    """
    settings, chosen = one_flow(config, flow)
    program = chosen.failover.program
    if program is not None and shutil.which(program) is None:
        raise WrongUsage(
            f"lockstep.failover.program.path: this user cannot run {program}. Correct the path or the file's mode, or "
            "remove the key"
        )
    return FailoverRun(settings, chosen, output, call, dry, needs_source)


def one_flow(config: Path, flow: list[str] | None) -> tuple[Settings, FlowSettings]:
    """Returns the settings and the one flow that `--flow` or the file names. Raises WrongUsage for several flows."""
    settings = with_overrides(config, None)
    names = [one.flow.name for one in settings.flows]
    for name in flow or ():
        if name not in names:
            raise WrongUsage(not_enabled(name, names))
    wanted = [one for one in settings.flows if not flow or one.flow.name in flow]
    if len(wanted) != 1:
        raise WrongUsage(f"a failover concerns one flow. Name it with --flow ({', '.join(names)})")
    return settings, wanted[0]


def spoken(call: FailoverCall, flow: FlowSettings) -> FailoverCall:
    """Returns the call, with output to stderr and with the operator's hooks."""
    return replace(call, say=partial(say_of, flow), on_state=partial(call_hooks, flow))


def say_of(flow: FlowSettings, line: str) -> None:
    """Prints a line about this flow to stderr."""
    if line:
        complain(f"{flow.flow.name}: {line}")


def _document(flow: FlowSettings, record: FailoverRecord) -> dict[str, Any]:
    return flow.flow.as_json() | {
        "state": record.state.value,
        "doing": record.doing.value if record.doing else None,
        "who": record.begun.who,
        "at": record.begun.at or None,
        "why": record.begun.why,
        "topics": list(record.topics),
    }


def call_hooks(flow: FlowSettings, before: FailoverRecord, after: FailoverRecord) -> None:
    """Calls the operator's class and program with a state that the failover has reached, as JSON.

    They switch clients over and move DNS, which Lockstep does not. A failed hook is logged and stops nothing.
    """
    state = _document(flow, after) | {"before": before.state.value, "at": after.begun.at}
    listener, program = flow.failover.listener, flow.failover.program
    if listener is not None:
        _guarded("lockstep.failover.listener.class", lambda: listener.state_changed(state))
    if program is not None:
        _guarded("lockstep.failover.program.path", lambda: _run(program, state, flow.failover.hook_seconds))


def _guarded(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the operator's own code may raise anything, and a failover goes on
        log.warning("%s failed: %s: %s", name, type(error).__name__, error)


def _run(program: str, state: dict[str, Any], seconds: float) -> None:
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
    ) as started:
        try:
            started.communicate(orjson.dumps(state), timeout=seconds)
        finally:
            if started.poll() is None:
                # With what it started itself.
                os.killpg(started.pid, signal.SIGKILL)
    if started.returncode:
        raise RuntimeError(f"it ended with {started.returncode}")
