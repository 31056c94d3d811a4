"""What the commands of a failover print, and which flow they are about."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from app.cli.options import with_overrides
from app.cli.output import Output, complain, print_json, print_line
from app.failover_session import FailoverCall
from app.settings import Settings
from app.settings.flow_sections import not_enabled
from sinks.failover.foreseen import foreseen
from sinks.failover.journal import StateObserver
from sinks.failover.scene import Scene
from sinks.flow_settings import FlowSettings
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.failover_states import Command
from streaming.errors import WrongUsage
from streaming.number_of import number_of


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
