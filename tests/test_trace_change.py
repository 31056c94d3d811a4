"""How far one change travels. Lower the figures with each change that makes the way shorter."""

from __future__ import annotations

from tests.trace_change import trace_change

MOST_FUNCTIONS, MOST_FILES = 203, 47


def test_one_change_of_retention_goes_through_no_more_functions_and_files_than_before() -> None:
    trace = trace_change()

    assert len(trace.entered) <= MOST_FUNCTIONS, trace.summary
    assert len(trace.files) <= MOST_FILES, trace.summary


def test_the_trace_begins_with_the_pass_and_reaches_the_writer() -> None:
    names = [one.name for one in trace_change().entered.values()]

    assert names[0] == "FlowReconcile.run_pass"
    assert "ConfigWriter.write" in names
