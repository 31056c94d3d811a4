"""Work of other threads done at once, where a test is not about threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

A = TypeVar("A")


def inline(call: Callable[[], A], name: str) -> Future[A]:
    """A `Beside` that calls before it answers. The future has what the call raises."""
    done: Future[A] = Future()
    try:
        done.set_result(call())
    except Exception as error:  # noqa: BLE001 - whatever it is, the future has it
        done.set_exception(error)
    return done
