"""Reporters that remember, fail and hang."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from prometheus_client import CollectorRegistry

from app.local.waiting import wait_for
from sinks.notify.notifier import Patience

SOON = 60.0
QUICK = Patience(limit=SOON, first_wait=0.01, longest_wait=0.05)
IMPATIENT = Patience(limit=0.05, first_wait=0.01, longest_wait=0.05)


class Remembers:
    """Writes down its calls; `trouble` is called at the start of each with its name, and may raise or block."""

    def __init__(self, trouble: Callable[[str], None] = lambda call: None) -> None:
        self.calls: list[str] = []
        self.registry: CollectorRegistry | None = None
        self._trouble = trouble

    def init(self, registry: CollectorRegistry) -> None:
        self._trouble("init")
        self.registry = registry
        self.calls.append("init")

    def close(self) -> None:
        self._trouble("close")
        self.calls.append("close")


class Tunable(Remembers):
    """Takes `acme.rate` while it runs."""

    def reconfigurable_configs(self) -> Collection[str]:
        return ["acme.rate"]

    def validate_reconfiguration(self, properties: Mapping[str, str]) -> None:
        """Anything goes."""

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        self._trouble("reconfigure")
        self.calls.append(f"reconfigure {properties.get('acme.rate')}")

    def was_told(self, rate: str | None) -> bool:
        return self.calls[-1] == f"reconfigure {rate}"


class Failing:
    """Trouble that raises at the first so many calls of one name."""

    def __init__(self, call: str, times: int, error: BaseException) -> None:
        self._call, self.left, self._error = call, times, error

    def __call__(self, call: str) -> None:
        if call == self._call and self.left:
            self.left -= 1
            raise self._error


class Hanging:
    """Trouble that blocks at the calls of one name until it is let go."""

    def __init__(self, call: str) -> None:
        self._call, self.entered, self.go = call, threading.Event(), threading.Event()

    def __call__(self, call: str) -> None:
        if call == self._call:
            self.entered.set()
            assert self.go.wait(SOON)


class Counts(Counter[str]):
    """Failures by reporter."""

    def add(self, reporter: str) -> None:
        self[reporter] += 1


def called(reporter: Remembers, *calls: str) -> None:
    """Waits until exactly these calls were made."""
    wait_for(lambda: len(reporter.calls) >= len(calls), SOON, f"the calls {calls}")
    assert reporter.calls == list(calls)
