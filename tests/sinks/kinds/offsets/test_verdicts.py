"""One verdict for each group and partition, with its reason, and writes only where nothing can be lost."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.translation import Unanswered
from sinks.kinds.offsets.verdicts import Facts, Verdict, verdict_on

READY = Facts("b", 50, LogRange(0, 100), committed=40)


@pytest.mark.parametrize(
    ("changed", "verdict", "reason"),
    [
        ({}, Verdict.PENDING, "the group is at 40 on b"),
        ({"committed": None}, Verdict.PENDING, "at no offset on b"),
        ({"enabled": False}, Verdict.PENDING, "sync.group.offsets.enabled is false"),
        ({"committed": 50}, Verdict.SYNCED, "goes on at this offset on b"),
        ({"committed": 50, "members": 2}, Verdict.SYNCED, "goes on at this offset"),
        ({"members": 2}, Verdict.GROUP_ACTIVE, r"members on b \(2\)"),
        ({"committed": 51}, Verdict.TARGET_AHEAD, "at 51 on b already"),
        ({"answer": Unanswered.NO_OFFSET_SYNC}, Verdict.NO_OFFSET_SYNC, "no offset-sync"),
        ({"answer": Unanswered.NO_OFFSET_SYNC, "source_empty": True}, Verdict.SOURCE_EMPTY, "has no record"),
        (
            {"answer": Unanswered.NO_OFFSET_SYNC, "source_empty": True, "committed": None},
            Verdict.NO_OFFSET_SYNC,
            "no offset-sync",
        ),
        ({"answer": Unanswered.TOO_OLD}, Verdict.TOO_OLD, "before the earliest offset-sync"),
        ({"answer": Unanswered.BEYOND_END}, Verdict.ERROR, "truncated or recreated"),
        ({"answer": 101}, Verdict.ERROR, "outside the log on b"),
        ({"committed": 101}, Verdict.ERROR, "at 101 on b, beyond the end of the log"),
        ({"committed": 51, "untrue": True}, Verdict.ERROR, "at 51 on b before the log there lost its tail"),
        ({"committed": 49, "untrue": True}, Verdict.PENDING, "at 49 on b"),
        ({"committed": 51, "untrue": True, "members": 1}, Verdict.GROUP_ACTIVE, "members"),
        ({"answer": Unanswered.NO_OFFSET_SYNC, "untrue": True}, Verdict.ERROR, "lost its tail"),
        ({"skipped": 9}, Verdict.TARGET_AHEAD, "begins at 0: about 9 records"),
        ({"skipped": 9, "members": 1}, Verdict.GROUP_ACTIVE, "members"),
        ({"stale": True}, Verdict.ERROR, "before its log lost its tail"),
        ({"log": None}, Verdict.TOPIC_MISSING, "does not exist on b"),
        ({"error": "TIMED_OUT", "log": None}, Verdict.ERROR, "^TIMED_OUT$"),
    ],
)
def test_each_state_has_its_verdict_and_a_reason(changed: dict[str, Any], verdict: Verdict, reason: str) -> None:
    judged = verdict_on(replace(READY, **changed))
    assert judged.verdict is verdict
    assert re.search(reason, judged.reason)


@given(
    st.builds(
        Facts,
        st.just("b"),
        st.integers(0, 30) | st.sampled_from(Unanswered),
        st.none() | st.builds(LogRange, st.integers(0, 10), st.integers(10, 30)),
        st.none() | st.integers(0, 30),
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.none() | st.just("TIMED_OUT"),
    )
)
def test_an_offset_is_written_only_forward_within_the_log_and_for_a_group_without_members(facts: Facts) -> None:
    if verdict_on(facts).writes:
        assert isinstance(facts.answer, int)
        assert facts.log is not None
        assert facts.log.start <= facts.answer <= facts.log.end
        assert facts.committed is None or facts.committed < facts.answer
        assert facts.members == 0
        assert facts.enabled
        assert facts.error is None
