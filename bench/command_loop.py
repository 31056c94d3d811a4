"""Commands that run one after another while brokers come and go, and what is wrong with each of their answers."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from bench.every_kind import GROUP, THERE
from bench.pair import lockstep

COMMANDS: Mapping[str, Sequence[str]] = {
    "plan": ("plan", "-o", "json"),
    "apply": ("apply", "--yes", "-o", "json"),
    "status": ("status", "-o", "json"),
    "offsets": ("offsets", "-o", "json"),
}
ENDS_WITHIN: Final = 180.0
"""Seconds: a dozen requests that may each wait for `admin.timeout.ms`."""

EXPECTED: Final = frozenset({0, 1, 3, 4})
"""Exit codes: done, failed with a reason, changes are pending, no job answers."""


@dataclass(frozen=True)
class Ran:
    """One command. `wrong`: what it must not do; empty where all is well. `said`: its last line on stderr."""

    command: str
    seconds: float
    code: int | None
    wrong: str = ""
    said: str = ""


def judge(command: str, code: int | None, out: str, err: str, last: int) -> str:
    """What is wrong with an answer, "" for nothing. `last`: no group was ever further on than this."""
    if code is None:
        return f"did not end within {ENDS_WITHIN:g} s"
    if code < 0:
        return f"ended by signal {-code}"
    if code not in EXPECTED:
        return f"exit code {code}: {err.strip()[-200:]}"
    if "Traceback" in err:
        return f"a traceback: {err.strip().splitlines()[-1]}"
    if code == 1:
        return "" if err.strip() or out.strip() else "failed without a word"
    document: dict[str, Any] = orjson.loads(out)
    return "; ".join(found for flow in document["flows"] for found in STATEMENTS[command](flow, last))


def _deletions(flow: Mapping[str, Any], last: int) -> list[str]:
    """The source never loses anything, and the remote topic is always there."""
    found = [f"deletes {change['kind']} {change['key']}" for change in flow["changes"] if change["op"] == "delete"]
    made = [change["key"] for change in flow["changes"] if change["kind"] == "topic" and change["op"] == "create"]
    return found + [f"creates {key}, which is there" for key in made if key["topic"] == THERE.topic]


def _states(flow: Mapping[str, Any], last: int) -> list[str]:
    """No MM2 runs here."""
    return ["LIVE without a heartbeat"] if flow["state"] == "LIVE" else []


def _offsets(flow: Mapping[str, Any], last: int) -> list[str]:
    rows = [row for row in flow["offsets"] if row["group"] == GROUP]
    beyond = [row for row in rows if (row["downstream_offset"] or 0) > last]
    return [*([] if rows else [f"does not know {GROUP}"]), *(f"beyond what was read: {row}" for row in beyond)]


STATEMENTS: Mapping[str, Callable[[Mapping[str, Any], int], list[str]]] = {
    "plan": _deletions,
    "apply": _deletions,
    "status": _states,
    "offsets": _offsets,
}
"""What must not be said, by command."""


@dataclass
class CommandLoop:
    """Runs them in a thread of its own, from `with` to its end. `last`: as of `judge`, asked after each command."""

    config: Path
    last: Callable[[], int]
    ran: list[Ran] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def __enter__(self) -> CommandLoop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.is_set():
            for name, arguments in COMMANDS.items():
                if not self._ends.is_set():
                    self.ran.append(self._one(name, arguments))

    def _one(self, name: str, arguments: Sequence[str]) -> Ran:
        begun = time.monotonic()
        try:
            done = lockstep(*arguments, "--config", str(self.config), within=ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            return Ran(name, ENDS_WITHIN, None, judge(name, None, "", "", self.last()))
        seconds = time.monotonic() - begun
        wrong = judge(name, done.returncode, done.stdout, done.stderr, self.last())
        return Ran(name, seconds, done.returncode, wrong, "".join(done.stderr.strip().splitlines()[-1:]))
