"""The status page says what `lockstep status` says, and takes nothing that it shows for HTML."""

from __future__ import annotations

from datetime import datetime, timezone

from app.http.page import status_page
from sinks.engine.effective_drift import Case, DriftGroup
from sinks.engine.model import Kind, Op
from sinks.engine.plan import Refusal
from sinks.engine.status import FlowState, FlowStatus, KindStatus, Task
from streaming.flow import Flow

AB = Flow("a", "b")
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def test_flow_in_trouble_is_shown_with_everything_that_is_known_of_it() -> None:
    refusal = Refusal(Kind.TOPIC_CONFIG, Op.UPDATE, ("a.orders", "retention.ms"), "POLICY_VIOLATION: too long")
    kinds = {Kind.TOPIC_CONFIG: KindStatus(Task.FAULTED, "no right", 1, NOON, (refusal,))}
    drift = DriftGroup(Case(Kind.TOPIC_CONFIG, "retention.ms", "1000", "2000"), 120)
    flow = FlowStatus(AB, FlowState.ERROR, 3.2, 41, "cluster a does not answer", kinds, (drift,))
    page = " ".join(status_page([flow.as_json()], "1.2").split())
    for words in (
        'a → b <span class="ERROR">ERROR</span>',
        "newest heartbeat 3.2 s old, 41 ms on its way",
        "cluster a does not answer",
        '<td class="number drift">1</td>',
        "2026-03-01T12:00:00Z",
        "set aside: a.orders retention.ms: POLICY_VIOLATION: too long",
        "retention.ms of 120 topics: 1000 on a, 2000 on b",
        "Lockstep 1.2",
    ):
        assert words in page


def test_flow_of_which_nothing_is_known_yet_has_a_page_too() -> None:
    assert "no heartbeat seen" in status_page([FlowStatus(AB, FlowState.NO_HEARTBEAT).as_json()], "1.2")


def test_reason_that_looks_like_html_is_text() -> None:
    page = status_page([FlowStatus(AB, FlowState.ERROR, reason="<script>alert(1)</script>").as_json()], "1.2")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
