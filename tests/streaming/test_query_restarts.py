"""When a query is started again, and why it ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.query_restarts import Restarts, root_cause

TRACE = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: boom SQLSTATE: XXKST
=== Streaming Query ===
org.apache.spark.sql.streaming.StreamingQueryException: boom
	at org.apache.spark.sql.execution.streaming.StreamExecution.run(StreamExecution.scala:1)
Caused by: java.util.concurrent.ExecutionException: wrapped
	at java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listTopics
	at x.y(Z.java:1)
"""


def test_a_query_that_breaks_off_again_and_again_waits_twice_as_long_each_time() -> None:
    restarts = Restarts(first=1, longest=10, settled=60)
    assert [restarts.delay(ran_for=0.5) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_a_query_that_ran_well_for_a_while_is_started_again_soon() -> None:
    restarts = Restarts(first=1, longest=10, settled=60)
    for _ in range(5):
        restarts.delay(ran_for=1)
    assert restarts.delay(ran_for=61) == 1


@given(st.lists(st.floats(0, 1_000), max_size=200))
def test_a_wait_never_leaves_its_bounds(runs: list[float]) -> None:
    restarts = Restarts(first=1, longest=60, settled=60)
    assert all(1 <= restarts.delay(ran_for) <= 60 for ran_for in runs)


def test_the_reason_is_the_innermost_cause_in_one_line() -> None:
    assert root_cause(TRACE) == "TimeoutException: Timed out waiting for a node assignment. Call: listTopics"


def test_what_the_sink_raised_is_the_reason_whatever_java_wrapped_around_it() -> None:
    raised = """Query terminated with exception: Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    sink(batch, number)
RuntimeError: the ledger is gone
 SQLSTATE: 39000
Caused by: py4j.Py4JException: Return Message: Traceback (most recent call last):
"""
    assert root_cause(raised) == "RuntimeError: the ledger is gone"


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        ("just this\nand that", "just this"),
        ("", "no reason was given"),
        ("x\nCaused by: java.lang.StackOverflowError\n\tat y", "StackOverflowError"),
    ],
)
def test_a_trace_without_a_cause_still_gives_a_reason(trace: str, reason: str) -> None:
    assert root_cause(trace) == reason
