"""The end of a job waits for all flows at once."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from app.job.running_job import side_by_side

WITHIN = 60.0


def test_flows_that_wait_at_their_end_wait_at_the_same_time() -> None:
    together = threading.Barrier(8)
    side_by_side([partial(together.wait, WITHIN) for _ in range(8)])
    assert not together.broken


def test_flow_that_cannot_be_closed_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise ValueError("x")

    closed: list[int] = []
    side_by_side([fails, partial(closed.append, 1)])
    assert closed == [1]
    assert "could not be closed" in caplog.text


def test_job_without_flows_ends() -> None:
    side_by_side([])
