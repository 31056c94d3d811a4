"""What a drill says of the fence is what it saw."""

from __future__ import annotations

import pytest

from sinks.failover.drill import Drill, DrillResult
from sinks.faults import ClusterUnreachable
from tests.sinks.failover.scenes import stage


def test_a_source_that_does_not_answer_is_not_taken_for_one_that_the_fence_closed() -> None:
    built, result = stage(), DrillResult("y")
    drill = Drill(built.scene(), "y", lambda groups: [])
    built.world.source.reachable = False
    with pytest.raises(ClusterUnreachable):
        drill._fence(result)
    assert result.fenced is None
