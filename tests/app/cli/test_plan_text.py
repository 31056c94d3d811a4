"""What a plan says to people: nothing that was left out looks as if all were well, and one reason is said once."""

from __future__ import annotations

import pytest

from app.cli.plan_text import print_outcomes, print_plan
from sinks.faults import ItemFault
from sinks.model.changes import Kind, Op, Outcome
from sinks.model.plan import Plan, Refusal, Unobserved
from tests.sinks.builders import FLOW, config_change

REASON = "the plan deletes 7 of 7"


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def deletions(count: int) -> tuple[Refusal, ...]:
    return tuple(Refusal(Kind.TOPIC, Op.DELETE, (f"a.t{number}",), REASON) for number in range(count))


def test_a_paused_kind_is_named_and_the_plan_is_not_called_done(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(Plan(FLOW), [Kind.ACL])
    lines = said(capsys)
    assert "paused: acl is not compared, so its drift is unknown; `lockstep resume acl` starts it again" in lines
    assert "nothing to do" not in lines


def test_a_plan_without_anything_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(Plan(FLOW))
    assert said(capsys)[-1] == "nothing to do"


def test_refused_deletions_are_in_the_plan_and_their_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(Plan(FLOW, refused=deletions(7)))
    lines = said(capsys)
    assert f"refused: delete topic a.t0, a.t1, a.t2, a.t3, a.t4 and 2 more: {REASON}" in lines
    assert sum(REASON in line for line in lines) == 1
    assert "nothing to do" not in lines


def test_kinds_that_could_not_be_seen_for_one_reason_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(Plan(FLOW, errors=(Unobserved(Kind.ACL, "denied"), Unobserved(Kind.SCRAM_USER, "denied"))))
    assert "not planned: acl, scram-user: denied" in said(capsys)


def test_what_apply_left_out_is_said_beside_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    change = config_change("a.t", "retention.ms", None, "1")
    print_outcomes(Plan(FLOW, refused=deletions(1)), [Outcome(change, ItemFault("DENIED", "no"))], [Kind.ACL])
    lines = said(capsys)
    assert lines[0] == "a->b: 0 applied, 1 failed"
    assert lines[1].startswith("failed: create topic-config a.t retention.ms: DENIED: no")
    assert f"refused: delete topic a.t0: {REASON}" in lines
    assert lines[-1].startswith("paused: acl is not compared")
