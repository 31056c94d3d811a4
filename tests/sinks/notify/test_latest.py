"""What a listener is told next, and when; how often trouble is logged. Times come in, nothing waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.notify.notifier import LOG_EVERY, Latest, Patience, Seldom


def test_waits_double_up_to_the_longest() -> None:
    patience = Patience(first_wait=1, longest_wait=300)
    assert [patience.wait_after(failures) for failures in (1, 2, 3, 9, 10, 5000)] == [1, 2, 4, 256, 300, 300]


def test_another_set_is_told_at_once_although_the_one_before_failed() -> None:
    latest: Latest[int] = Latest(Patience())
    latest.want(1, 0.0)
    assert latest.failed(1, 0.0) == 1
    assert latest.wait(0.5) == 0.5
    latest.want(2, 0.5)
    assert latest.wait(0.5) == 0


def test_the_set_before_is_told_again_where_another_one_failed_in_between() -> None:
    latest: Latest[int] = Latest(Patience())
    latest.want(1, 0.0)
    latest.delivered(1)
    latest.want(2, 1.0)
    latest.failed(2, 1.0)
    latest.want(1, 1.5)
    assert latest.wait(1.5) == 0


STEPS = st.lists(st.tuples(st.sampled_from(["want", "call", "fail"]), st.integers(0, 3), st.floats(0, 100)))


@given(STEPS)
def test_the_listener_ends_up_with_the_newest_set_and_never_gets_what_it_has(
    steps: list[tuple[str, int, float]],
) -> None:
    latest: Latest[int] = Latest(Patience())
    now, newest, has = 0.0, None, None
    for step, current, passed in [*steps, ("call", 0, 1000.0)]:
        now += passed
        if step == "want":
            latest.want(current, now)
            newest = current
        elif latest.wait(now) == 0:
            told = latest.wanted
            assert told is not None
            assert told == newest != has
            if step == "call":
                latest.delivered(told)
                has = told
            else:
                latest.failed(told, now)
                has = None
    assert has == newest


def test_complaints_come_once_a_while() -> None:
    seldom = Seldom()
    times = [0.0, 1.0, LOG_EVERY - 1, LOG_EVERY, LOG_EVERY + 1, 2 * LOG_EVERY]
    assert [seldom.due(now) for now in times] == [True, False, False, True, False, True]
    assert seldom.over()
    assert not seldom.over()
    assert seldom.due(2 * LOG_EVERY + 1)
