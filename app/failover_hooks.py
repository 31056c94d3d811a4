"""Tells a class and a program of the operator's of each state that a failover reaches, as JSON.

Lockstep switches no client over and moves no DNS: that is what these are for.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from sinks.failover.journal import StateObserver
from sinks.failover.record import FailoverRecord
from sinks.flow_settings import FlowSettings

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
