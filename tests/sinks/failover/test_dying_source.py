"""A source that loses its brokers one by one: what it had by then is not forgotten before it is gone."""

from __future__ import annotations

import pytest

from sinks.failover.record import NotNow
from sinks.failover.unplanned import Prediction, failover
from sinks.kinds.offsets.history import History
from sinks.kinds.offsets.stored_histories import store_histories
from tests.sinks.failover.scenes import look, stage
from tests.sinks.failover.test_unplanned import X0, X1, Y0, agree, lose_the_source


def test_a_broker_of_the_source_that_died_first_hides_no_loss() -> None:
    built, seen = stage(), list[Prediction]()
    built.mirrors = False
    built.write("x", 1, 4)
    store_histories(built.ledger(), {where: History(4, 4, 0) for where in (X0, X1, Y0)})
    look(built, 1000.0)
    del built.here.logs[X1]
    look(built, 1010.0)
    lose_the_source(built)
    failover(built.scene(), source_answers=False, accept_loss=None, agreed=seen.append)
    assert seen[0].records == 4


def test_of_a_partition_whose_end_was_never_seen_nobody_can_tell_what_is_lost() -> None:
    built = stage()
    del built.here.logs[X1]
    look(built, 1000.0)
    lose_the_source(built)
    with pytest.raises(NotNow, match="nobody can tell how many records"):
        failover(built.scene(), source_answers=False, accept_loss=1000, agreed=agree)
