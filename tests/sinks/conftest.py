"""A flow's task over a walk that does as it is told."""

from __future__ import annotations

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from tests.sinks.builders import Clock, deaf
from tests.sinks.walks import ScriptedPass


@pytest.fixture
def walks() -> ScriptedPass:
    return ScriptedPass()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def task(walks: ScriptedPass, clock: Clock) -> FlowTask:
    return FlowTask(walks, deaf, Metrics("0"), clock)  # type: ignore[arg-type]
