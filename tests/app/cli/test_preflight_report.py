"""`preflight`: what it prints, reports and ends with."""

from __future__ import annotations

import pytest

from app.cli.output import DONE, PENDING
from app.cli.preflight_command import CHECK_COLUMNS, as_text, document, exit_code, markdown, verdict
from sinks.failover.readiness import Answered, Check, CheckResult, Readiness, ReadinessAnswer
from sinks.failover.readiness_facts import ReadinessFacts
from sinks.flow_settings import FailoverRules
from streaming.flow import Flow


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("a | b", r"a \| b"),
        ("[here](http://x)", r"\[here\](http\://x)"),
        ("<script>&amp;", r"\<script\>\&amp;"),
        ("`rm` *all* _of_ ~it~", r"\`rm\` \*all\* \_of\_ \~it\~"),
        ("ends in \\", "ends in \\\\"),
        ("two\nlines", r"two\\nlines"),
        ("WWW.example.org", r"WWW\.example.org"),
        ("\x1b[2J", r"\\u001b\[2J"),
    ],
)
def test_markup_is_escaped(said: str, written: str) -> None:
    assert as_text(said) == written


def test_every_check_is_one_row_with_as_many_cells_as_the_head() -> None:
    checks = (Check("in step", CheckResult.FAILED, "a|b\nc", "0", "look"), Check("fence", CheckResult.OK, "fine"))
    no, yes = Answered(ReadinessAnswer.NO, "a|b"), Answered(ReadinessAnswer.YES, "It would lose 0 records")
    found = Readiness(checks, no, yes)
    head, _, cutover, _, failover, _, *table = markdown(Flow("a", "b"), found).splitlines()
    assert head == r"# a-\>b: not ready to fail over"
    assert (cutover, failover) == (
        r"cutover: NO. a\|b",
        "failover without the source: YES. It would lose 0 records",
    )
    assert [line.replace(r"\|", "").count("|") for line in table] == [len(CHECK_COLUMNS) + 1] * 4


@pytest.mark.parametrize(
    ("answer", "ready", "code", "said"),
    [
        (ReadinessAnswer.YES, True, DONE, "ready to fail over"),
        (ReadinessAnswer.NO, False, PENDING, "not ready to fail over"),
        (ReadinessAnswer.UNKNOWN, False, PENDING, "not ready to fail over"),
        (ReadinessAnswer.DONE, None, DONE, "b has taken over"),
    ],
)
def test_exit_code_document_and_text_say_the_same(
    answer: ReadinessAnswer, ready: bool | None, code: int, said: str
) -> None:
    headline = "b has taken over" if answer is ReadinessAnswer.DONE else "why"
    found = Readiness((), Answered(answer, headline), Answered(answer, headline))
    assert document(Flow("a", "b"), found, ReadinessFacts(FailoverRules()))["ready"] is ready
    assert (exit_code([found]), verdict(found)) == (code, said)


def test_one_flow_that_is_not_ready_decides_the_exit_code_of_all() -> None:
    done, no = (Answered(answer, "") for answer in (ReadinessAnswer.DONE, ReadinessAnswer.NO))
    assert exit_code([Readiness((), done, done), Readiness((), no, no)]) == PENDING
