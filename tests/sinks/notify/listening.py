"""Listeners that remember, fail and hang, and a flow that tells them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from sinks.notify.announcements import Announcements
from sinks.notify.notifier import Patience
from sinks.plugins.listeners import DefaultGroupListener, DefaultTopicListener, GroupListener, TopicListener
from streaming.flow import Flow

FLOW = Flow("a", "b")
QUICK = Patience(limit=10, first_wait=0.01, longest_wait=0.05)
IMPATIENT = Patience(limit=0.05, first_wait=0.01, longest_wait=0.05)
SOON = 60.0
"""Seconds that a test waits for another thread at most."""

ORDERS = {"orders": "a.orders"}
BOTH = {"orders": "a.orders", "users": "a.users"}


class Remembers:
    """Writes down every call; `trouble` may raise or block before that."""

    def __init__(self, trouble: Callable[[], None] = lambda: None) -> None:
        self.topics: list[Mapping[str, str]] = []
        self.groups: list[AbstractSet[str]] = []
        self.closed = 0
        self._trouble = trouble

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        self._trouble()
        self.topics.append(upstream_to_downstream)

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        self._trouble()
        self.groups.append(groups)

    def close(self) -> None:
        self.closed += 1

    def was_told(self, topics: Mapping[str, str]) -> bool:
        return self.topics[-1:] == [topics]


class Counts(Counter[tuple[str, str]]):
    """Calls by (listener, result)."""

    def add(self, flow: Flow, listener: str, result: str) -> None:
        assert flow == FLOW
        self[listener, result] += 1


class Hangs:
    """Trouble that blocks until it is let go."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self.go.wait(SOON)


@contextmanager
def announcing(
    topics: TopicListener | None = None,
    groups: GroupListener | None = None,
    counts: Counts | None = None,
    patience: Patience = QUICK,
    secrets: tuple[str, ...] = (),
) -> Iterator[Announcements]:
    told = Announcements(
        FLOW,
        topics or DefaultTopicListener(),
        groups or DefaultGroupListener(),
        (counts if counts is not None else Counts()).add,
        patience,
        secrets,
    )
    try:
        yield told
    finally:
        told.close(within=SOON)


def failing(times: int, error: BaseException) -> Callable[[], None]:
    left = [error] * times

    def trouble() -> None:
        if left:
            raise left.pop()

    return trouble
