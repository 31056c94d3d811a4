"""Log lines as JSON: one object each, with the flow and the pass that they are about."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from app.cli.run_command import JSON, TEXT, log_formatter
from sinks.engine.flow_task import FlowTask, current_pass, in_pass
from sinks.engine.metrics import Metrics
from sinks.faults import ClusterUnreachable
from tests.sinks.scripted_pass import ScriptedPass

LOG = logging.getLogger("sinks.engine.flow_task")


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged as JSON."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(log_formatter(JSON))
    LOG.addHandler(handler)
    yield written
    LOG.removeHandler(handler)


def test_a_line_about_a_pass_says_which_one(lines: io.StringIO) -> None:
    passes = ScriptedPass()
    task = FlowTask(passes, Metrics("0"))  # type: ignore[arg-type]
    task.step(None)
    passes.error = ClusterUnreachable("b gives no answer")
    task.step(None)
    line = json.loads(lines.getvalue())
    assert (line["flow"], line["pass"], line["level"], line["logger"]) == ("a->b", 2, "ERROR", LOG.name)
    assert "b gives no answer" in line["message"]
    assert line["time"].endswith("Z")
    assert current_pass() is None


def test_a_line_about_no_pass_names_none_and_a_trace_stays_one_line(lines: io.StringIO) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        LOG.error("broke\x1b[31m", exc_info=sys.exc_info())
    assert lines.getvalue().count("\n") == 1
    assert "\x1b" not in lines.getvalue()
    line = json.loads(lines.getvalue())
    assert set(line) == {"time", "level", "logger", "message", "error"}
    assert line["error"].endswith("ValueError: two\nlines")


def test_passes_of_two_flows_do_not_mix() -> None:
    with in_pass("a->b", 1):
        with in_pass("b->a", 7):
            assert current_pass() == ("b->a", 7)
        assert current_pass() == ("a->b", 1)


def test_text_is_a_line_that_people_read() -> None:
    record = logging.LogRecord("app", logging.INFO, "", 1, "%s is read", ("x",), None)
    assert log_formatter(TEXT).format(record).endswith(" INFO app: x is read")
