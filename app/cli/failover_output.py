"""What the commands of a failover print, and which flow they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.options import with_overrides
from app.cli.output import Output, complain, print_json, print_line
from app.failover_hooks import failover_hooks
from app.failover_session import FailoverCall
from app.settings import Settings
from app.settings.flow_sections import not_enabled
from sinks.failover.foreseen import foreseen
from sinks.failover.record import FailoverRecord
from sinks.failover.scene import Scene
from sinks.failover.states import Command
from sinks.flow_settings import FlowSettings
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
