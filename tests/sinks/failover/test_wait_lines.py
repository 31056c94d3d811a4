"""Who waits is told what for, again and again, and not at every look."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover
from sinks.failover.drill import Drill
from sinks.failover.open_transactions import NotDrained
from sinks.failover.scene import WaitLines
from streaming.errors import LockstepError
from tests.sinks.failover.scenes import stage


def test_a_wait_is_told_of_every_ten_seconds() -> None:
    said, now = list[str](), [100.0]
    lines = WaitLines(said.append, lambda: now[0], 30.0)
    for _ in range(50):
        assert not lines.is_over
        lines.go_on("MM2")
        now[0] += 0.5
    assert said == ["waiting for MM2: 10 s, at most 30 s", "waiting for MM2: 20 s, at most 30 s"]
    now[0] += 10
    assert lines.is_over


def test_a_drill_says_what_it_does_and_what_it_waits_for() -> None:
    built = stage()
    with pytest.raises(LockstepError, match=r"gave up after 35 s of waiting for the copy a\.x-drill to exist"):
        Drill(built.scene(), "x-drill", lambda groups: [], records=10, within=35.0).run()
    assert built.said == [
        "first copy: writes 10 records to x-drill, and waits until MM2 has copied them",
        *(f"waiting for the copy a.x-drill to exist: {seconds} s, at most 35 s" for seconds in (10, 20, 30)),
        "deletes x-drill and its fence",
    ]


def test_a_cutover_says_how_many_records_it_waits_for() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 1, 3)
    with pytest.raises(NotDrained):
        cutover(built.scene())
    waits = [line for line in built.said if line.startswith("waiting for MM2, since 3 records of x are not on")]
    assert [line.split(": ")[1] for line in waits[:2]] == ["10 s, at most 60 s", "20 s, at most 60 s"]
