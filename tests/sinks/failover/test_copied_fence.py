"""A fence that MM2 would copy to the target, where it would stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.failover.commands import fence
from sinks.failover.fencing import FenceCopied
from sinks.flow_settings import FailoverRules
from sinks.ledger.failover_record import State
from tests.sinks.failover.scenes import stage


def test_it_is_refused_and_nothing_is_left_of_it() -> None:
    built = stage()
    world = built.world
    world.settings = replace(world.settings, failover=FailoverRules(copier_copies_acls=True))
    with pytest.raises(FenceCopied, match=r"write sync\.topic\.acls\.enabled=false"):
        fence(built.scene())
    assert built.scene().journal.record.state is State.MIRRORING
    assert not world.source_acls.bindings
    assert not built.ledger().fences()
