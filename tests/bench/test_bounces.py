"""What a command must not do while brokers come and go, and the table that says whether it did."""

from __future__ import annotations

import orjson
import pytest

from bench.bounces import Ran, judge, section, summed_up
from bench.every_kind import GROUP


def answer(**flow: object) -> str:
    return orjson.dumps({"flows": [flow]}).decode()


OFFSET = {"group": GROUP, "downstream_offset": 7}


@pytest.mark.parametrize(
    ("command", "code", "out", "err", "said"),
    [
        ("plan", None, "", "", "did not end"),
        ("plan", -6, "", "", "signal 6"),
        ("plan", 2, "", "what?", "exit code 2"),
        ("plan", 1, "", "Traceback (most recent call last)\nBoom", "a traceback: Boom"),
        ("plan", 1, "", "", "without a word"),
        ("plan", 1, "", "cluster a: no answer", ""),
        ("plan", 3, answer(changes=[{"op": "update", "kind": "acl", "key": {}}]), "", ""),
        ("plan", 3, answer(changes=[{"op": "delete", "kind": "acl", "key": {}}]), "", "deletes acl"),
        (
            "apply",
            0,
            answer(changes=[{"op": "create", "kind": "topic", "key": {"topic": "a.changed"}}]),
            "",
            "is there",
        ),
        ("status", 0, answer(state="NO_HEARTBEAT"), "", ""),
        ("status", 0, answer(state="LIVE"), "", "without a heartbeat"),
        ("offsets", 0, answer(offsets=[OFFSET]), "", ""),
        ("offsets", 0, answer(offsets=[]), "", "does not know"),
        ("offsets", 0, answer(offsets=[OFFSET | {"downstream_offset": 8}]), "", "beyond what was read"),
    ],
)
def test_answer_is_wrong_where_it_crashes_hangs_or_says_what_is_not_so(
    command: str, code: int | None, out: str, err: str, said: str
) -> None:
    found = judge(command, code, out, err, 7)
    assert said in found
    assert bool(found) == bool(said)


def test_table_of_bounces_counts_what_failed_and_what_was_wrong() -> None:
    ran = [Ran("plan", 2.0, 0), Ran("plan", 9.0, 1), Ran("status", 1.0, -6, "ended by signal 6")]
    run = {"brokers": 3, "bounces": 10, "changes": 41, "seconds": 12.3, "missing": {}, "commands": summed_up(ran)}
    assert "| 3 | 10 | 41 | 12.3 s | 3 (1) | 1 | 9 s |" in section({"limit": 30.0, "runs": [run]})
    late = run | {"missing": {"acl": "False, not True"}, "seconds": 600.0}
    assert "| not within 600 s: acl |" in section({"limit": 30.0, "runs": [late]})
