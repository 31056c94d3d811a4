"""Waits for others in threads that nobody waits for: a process that ends leaves behind what will never be answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

A = TypeVar("A")


def begun(call: Callable[[], A], name: str) -> Future[A]:
    """Calls it in a daemon thread of this name, no pool's; the future has what it returns, or raises."""
    answer: Future[A] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return answer
