"""Starts child processes that never outlive this program, however it ends. A terminal's Ctrl-C does not reach them."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue

KILLED_WITHIN_S = 10.0
"""Seconds after SIGKILL until a remaining child counts as hanging in the kernel. Lockstep then leaves it."""

TERM_WITHIN = 20.0
"""Seconds in which a child must end after SIGTERM. Then it gets SIGKILL."""

PR_SET_PDEATHSIG = 1
"""The option of Linux's prctl(2) that sets the signal at the parent's death."""

Child = subprocess.Popen[bytes]

_running: list[Child] = []


def spawn(
    command: Sequence[str],
    log: Path,
    at_death: signal.Signals = signal.SIGKILL,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Starts the command in a session of its own, with stdout and stderr appended to `log`. `environment`: further
    variables. Raises OSError if it cannot be started.

    If this program dies, even by SIGKILL, the child gets the signal `at_death`. That needs Linux; on other systems this
    program must end regularly.
    """
    started: Future[Child] = Future()

    def start() -> None:
        try:
            started.set_result(_popen(command, log, at_death, {**os.environ, **(environment or {})}))
        except OSError as error:
            started.set_exception(error)

    _spawner().put(start)
    # No limit: it takes as long as one fork. A child that came after a limit would never be ended.
    child = started.result()
    _running.append(child)
    return child


def stop(*children: Child, within: float = TERM_WITHIN) -> None:
    """Sends SIGTERM to all children, then SIGKILL to those that have not ended `within` seconds."""
    for child in children:
        child.terminate()
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(within)
        # Does nothing to a process that has ended.
        kill(child)


def kill(*children: Child) -> None:
    """Sends SIGKILL to all children, which looks like a crash to other processes."""
    for child in children:
        child.kill()
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(KILLED_WITHIN_S)
        if child in _running:
            _running.remove(child)


def _popen(command: Sequence[str], log: Path, at_death: signal.Signals, environment: Mapping[str, str]) -> Child:
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=_tie_to_parent(at_death),
        )


def _tie_to_parent(at_death: signal.Signals) -> Callable[[], None]:
    linux = sys.platform == "linux"
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl if linux else None  # between fork and exec little is allowed

    def tie() -> None:
        # A Ctrl-C between fork and here was for the parent, which then ends this child: it must not raise in it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if prctl is None:
            return
        prctl(PR_SET_PDEATHSIG, at_death)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return tie


@cache
def _spawner() -> SimpleQueue[Callable[[], None]]:
    # To Linux the "parent" of PR_SET_PDEATHSIG is the thread that forked. Hence one thread that never ends starts all.
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def serve() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while True:
            queue.get()()

    threading.Thread(target=serve, name="spawner", daemon=True).start()
    atexit.register(lambda: stop(*reversed(_running)))
    return queue
