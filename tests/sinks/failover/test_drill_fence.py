"""What a drill says of the fence is what it saw, and what it could not do is said before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sinks.failover.drill import Drill, DrillResult
from sinks.failover.fencing import FenceCopied
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FailoverRules
from tests.sinks.failover.scenes import stage


def test_a_source_that_does_not_answer_is_not_taken_for_one_that_the_fence_closed() -> None:
    built, result = stage(), DrillResult("y")
    drill = Drill(built.scene(), "y", lambda groups: [])
    built.world.source.reachable = False
    with pytest.raises(ClusterUnreachable):
        drill._fence(result)
    assert result.fenced is None


@pytest.mark.parametrize("begin", [Drill.check, Drill.run], ids=["dry run", "run"])
def test_a_fence_that_mm2_would_copy_is_refused_before_anything_is_written(begin: Callable[[Drill], object]) -> None:
    built = stage()
    world = built.world
    world.settings = replace(world.settings, failover=FailoverRules(copier_copies_acls=True))
    before = world.source.writes, world.target.writes
    with pytest.raises(FenceCopied, match=r"write sync\.topic\.acls\.enabled=false"):
        begin(Drill(built.scene(), "practice", lambda groups: []))
    assert (world.source.writes, world.target.writes) == before
    assert not built.ledger().fences()


def test_a_source_without_an_authorizer_can_be_drilled_whatever_mm2_copies() -> None:
    built = stage()
    built.world.settings = replace(built.world.settings, failover=FailoverRules(copier_copies_acls=True))
    built.world.source_acls.authorizer = False
    Drill(built.scene(), "practice", lambda groups: []).check()
