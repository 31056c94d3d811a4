"""`preflight --report`: what clusters said is text in it, whatever it looks like."""

from __future__ import annotations

import pytest

from app.cli.preflight_command import CHECK_COLUMNS, as_text, markdown
from sinks.failover.readiness import Answered, Check, CheckResult, Readiness, ReadinessAnswer
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
