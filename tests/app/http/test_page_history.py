"""What is kept of a flow for the page: bounded, and without secrets."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

import pytest

from app.http import page_history
from app.http.page_history import CHANGES, LONGEST, SAMPLES, FlowHistory
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.report import Report
from sinks.engine.status import FlowState, FlowStatus
from sinks.faults import ItemFault
from sinks.model.changes import Change, Kind, Outcome, ScramSpec
from sinks.model.plan import Plan
from tests.sinks.builders import FLOW, World, config_change, put_topic, world_in_step

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def reported(*outcomes: Outcome, seconds: float = 0.25) -> Report:
    return Report(Plan(FLOW), outcomes, seconds={"observe": seconds, "plan": 0.25})


def test_changes_are_kept_with_both_sides_and_outcome_the_newest_first() -> None:
    history = FlowHistory()
    history.passed(reported(Outcome(config_change("a.t", "retention.ms", "1", "2"))))
    history.passed(
        reported(Outcome(config_change("a.u", "retention.ms", None, "2"), ItemFault("POLICY_VIOLATION", "no")))
    )
    newest, oldest = history.changes()
    assert (oldest["key"], oldest["before"], oldest["after"]) == ({"topic": "a.t", "name": "retention.ms"}, "1", "2")
    assert (newest["result"], newest["error"]) == ("failed", "POLICY_VIOLATION: no")


def test_an_offset_that_moves_on_is_no_change_to_show() -> None:
    history = FlowHistory()
    history.passed(reported(Outcome(Change(Kind.GROUP_OFFSET, ("g", "a.t", "0"), 1, 2))))
    assert history.changes() == []


def test_a_credential_is_shown_by_iterations_and_version() -> None:
    history = FlowHistory()
    history.passed(reported(Outcome(Change(Kind.SCRAM_USER, ("u", "SCRAM-SHA-256"), None, ScramSpec(4096, "v1")))))
    assert history.changes()[0]["after"] == {"iterations": 4096, "version": "v1"}


def test_of_a_pass_with_more_changes_than_are_kept_the_last_ones_are() -> None:
    history = FlowHistory()
    changes = [config_change(f"a.t{number}", "x", None, "y") for number in range(CHANGES + 5)]
    history.passed(reported(*map(Outcome, changes)))
    assert [one["key"]["topic"] for one in (history.changes()[0], history.changes()[-1])] == ["a.t504", "a.t5"]


def test_no_more_is_kept_than_fits() -> None:
    history = FlowHistory()
    for number in range(CHANGES + 5):
        history.passed(reported(Outcome(config_change(f"a.t{number}", "x", None, "y" * 10 * LONGEST))))
    for number in range(SAMPLES + 5):
        history.sample(FlowStatus(FLOW, FlowState.LIVE), NOON + timedelta(seconds=number))
    assert len(history.changes()) == CHANGES
    assert history.changes()[-1]["key"]["topic"] == "a.t5"
    assert len(history.changes()[0]["after"]) == LONGEST + 1
    assert [len(history.samples()), history.samples()[0].at] == [SAMPLES, NOON + timedelta(seconds=5)]


def test_a_sample_has_the_longest_pass_since_the_one_before() -> None:
    history = FlowHistory()
    for seconds in (0.5, 2.0):
        history.passed(reported(seconds=seconds))
    for _ in range(2):
        history.sample(FlowStatus(FLOW, FlowState.LIVE, 1.5, 200), NOON)
    first, second = history.samples()
    assert (first.passes, first.slowest_pass_seconds, first.latency_seconds) == (2, 2.25, 0.2)
    assert (second.passes, second.slowest_pass_seconds) == (0, None)


def test_passes_of_a_real_flow_tell_topics_and_changes() -> None:
    world, history = world_in_step(), FlowHistory()
    world.observers.append(history)
    put_topic(world.source, "new", 2)
    world.run_pass()
    assert history.remote()["new"] == "a.new"
    assert ("topic", "a.new") in {(row["kind"], row["key"]["topic"]) for row in history.changes()}
    assert history.passes == 1


class Silent(FlowTask):
    """One whose status never comes."""

    asked = threading.Event()

    def status(self) -> FlowStatus:
        self.asked.set()
        threading.Event().wait()
        raise AssertionError


def test_end_leaves_a_sample_behind_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_history, "INTERVAL", 0.01)
    monkeypatch.setattr(page_history, "SAMPLED_WITHIN_S", 0.05)
    task, over = Silent(World().reconcile, Metrics("0")), threading.Event()

    def run() -> None:
        with page_history.sampling({FLOW: task}, {FLOW: FlowHistory()}):
            task.asked.wait(60)
        over.set()

    threading.Thread(target=run, daemon=True).start()
    assert over.wait(60)
