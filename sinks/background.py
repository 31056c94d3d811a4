"""Calls functions in daemon threads, so that a request without an answer does not keep the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillWaiting
from typing import Protocol, TypeVar

A = TypeVar("A")

LOOKS_EVERY = 0.5
"""Seconds between two looks while waiting. CPython runs a signal's handler between two instructions of the main thread.
In a wait without a limit a Ctrl-C would wait for a silent cluster."""


class Beside(Protocol):
    """Begins a call that its caller need not wait for."""

    def __call__(self, call: Callable[[], A], name: str) -> Future[A]:
        """Returns a future with the result of `call`. `name`: of the thread, if a thread is used."""


def at_once(call: Callable[[], A], name: str) -> Future[A]:
    """A `Beside` that calls in the caller's thread, for a single use. Raises what the call raises."""
    answer: Future[A] = Future()
    answer.set_result(call())
    return answer


def begun(call: Callable[[], A], name: str) -> Future[A]:
    """Call a function in a daemon thread of this name. Returns a future with its result."""
    answer: Future[A] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return answer


def awaited(answer: Future[A]) -> A:
    """Wait for a future, without a limit; a signal ends the wait at once. Raises what the future raised."""
    while True:
        try:
            return answer.result(LOOKS_EVERY)
        except StillWaiting:
            if answer.done():
                return answer.result()
