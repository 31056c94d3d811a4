"""A process that runs commands of Lockstep, each in a child of its own that may be told to die, or to stop, at a step.

`python -m tests.kafka.failover.command_server`: takes a line of JSON for each command on its standard input, and
answers with the child's process id; `{"wait": pid}` is answered with the child's exit status. What is imported once
costs no command its start.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from app.cli import failover_commands
from app.main import main
from sinks.failover.journal import Journal
from sinks.ledger.failover_record import FailoverRecord, Step

PRELOADED = (failover_commands,)
"""Commands are imported when they are called, else."""


def interrupt(at: Step, when: str, number: int) -> None:
    """Sends this process a signal `before` a step is done, or `after` it, when the ledger does not have that yet."""
    run = Journal.run

    def interrupted(self: Journal, steps: Mapping[Step, Callable[[], None]]) -> FailoverRecord:
        def step() -> None:
            if when == "after":
                steps[at]()
            os.kill(os.getpid(), number)
            if when == "before":
                steps[at]()

        return run(self, {**steps, at: step} if at in steps else steps)

    Journal.run = interrupted  # type: ignore[method-assign]  # in a child that runs one command


LIMIT = 300
"""Seconds until a command that did not end is killed, by SIGALRM."""


def start(command: Mapping[str, Any]) -> int:
    """The child's process id."""
    if pid := os.fork():
        return pid
    for stream, path in ((1, command["out"]), (2, command["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    if command["at"] is not None:
        interrupt(Step[command["at"]], command["when"], signal.Signals[command["signal"]])
    signal.alarm(LIMIT)
    sys.argv = ["lockstep", *command["arguments"]]
    status = 1
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve() -> None:
    """Until its standard input ends."""
    children = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
            children.discard(asked["wait"])
        else:
            answer = start(asked)
            children.add(answer)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for child in children:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    serve()
