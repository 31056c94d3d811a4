"""A flow's task over a walk that does as it is told."""

from __future__ import annotations

import pytest

from sinks.metrics import Metrics
from sinks.task import FlowTask
from tests.sinks.builders import Clock, deaf
from tests.sinks.walks import Walks


@pytest.fixture
def walks() -> Walks:
    return Walks()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def task(walks: Walks, clock: Clock) -> FlowTask:
    return FlowTask(walks, deaf, Metrics("0"), clock)  # type: ignore[arg-type]
