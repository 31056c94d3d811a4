"""Commands of Lockstep in processes of their own, which may be killed or stopped around a step of a failover."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.local.jars import PROJECT
from sinks.ledger.failover_record import Step


@dataclass(frozen=True)
class Ended:
    """A command that is over: its exit code, or minus the signal that ended it, and what it printed."""

    code: int
    out: str
    err: str

    def flow(self) -> dict[str, Any]:
        """The JSON of its only flow."""
        assert self.code == 0, self.err
        (flow,) = json.loads(self.out)["flows"]
        return dict(flow)


@dataclass(frozen=True)
class Running:
    """A command that may still run."""

    pid: int
    commands: Commands
    out: Path
    err: Path

    def go_on(self) -> None:
        """After it stopped itself."""
        os.kill(self.pid, signal.SIGCONT)

    def is_stopped(self) -> bool:
        """Whether it stopped itself."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def wait(self) -> Ended:
        """Until it is over."""
        return Ended(self.commands.ask({"wait": self.pid}), self.out.read_text(), self.err.read_text())


class Commands:
    """Of one server; see `command_server`."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        assert server.stdin and server.stdout
        self._in: IO[str] = server.stdin
        self._out: IO[str] = server.stdout
        self._folder, self._numbers = folder, itertools.count()

    def ask(self, command: dict[str, Any]) -> int:
        """What the server answers."""
        self._in.write(f"{json.dumps(command)}\n")
        self._in.flush()
        return int(self._out.readline())

    def start(
        self, *arguments: str, config: Path, at: Step | None = None, when: str = "before", sends: str = "SIGKILL"
    ) -> Running:
        """Begins one, which gets the signal `at` a step, `before` it or `after` it."""
        number = next(self._numbers)
        out, err = self._folder / f"{number}.out", self._folder / f"{number}.err"
        command = {"out": str(out), "err": str(err), "at": at.name if at else None, "when": when, "signal": sends}
        pid = self.ask(command | {"arguments": [*arguments, "-o", "json", "--config", str(config)]})
        return Running(pid, self, out, err)

    def run(self, *arguments: str, config: Path, at: Step | None = None, when: str = "before") -> Ended:
        """One from its beginning to its end."""
        return self.start(*arguments, config=config, at=at, when=when).wait()


@contextmanager
def command_server(folder: Path) -> Iterator[Commands]:
    """For the length of a `with` block."""
    started = [sys.executable, "-m", "tests.kafka.failover.command_server"]
    with subprocess.Popen(
        started, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as server:
        yield Commands(server, folder)
        assert server.stdin
        server.stdin.close()
