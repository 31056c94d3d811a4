"""A flow's task over a pass that does as it is told."""

from __future__ import annotations

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from tests.sinks.builders import Clock
from tests.sinks.scripted_pass import ScriptedPass


@pytest.fixture
def passes() -> ScriptedPass:
    return ScriptedPass()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def task(passes: ScriptedPass, clock: Clock) -> FlowTask:
    return FlowTask(passes, Metrics("0"), clock)  # type: ignore[arg-type]
