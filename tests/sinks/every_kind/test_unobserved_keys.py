"""Keys that could not be compared are compared again soon, ever less often while that does not change."""

from __future__ import annotations

from sinks.every_kind.backoff import LONGEST_RECOMPARE_S
from sinks.every_kind.kinds_agenda import RETRIED_AT_ONCE, KeysToCompare
from sinks.model.changes import Kind
from sinks.model.plan import Unobserved

WHY = Unobserved(Kind.TOPIC_CONFIG, "x on b: TOPIC_AUTHORIZATION_FAILED")
NONE = float("inf")


def unobserved(*topics: str) -> KeysToCompare:
    """As they were found at 0 s."""
    built = KeysToCompare()
    built.compared(topics, (), dict.fromkeys(topics, WHY), 0.0)
    return built


def tries(built: KeysToCompare, until: float) -> list[float]:
    """When x is compared again, in vain."""
    found = list[float]()
    while (now := built.retry_at()) <= until:
        assert built.retried({"x"}, now) == {"x"}
        built.compared({"x"}, (), {"x": WHY}, now)
        found.append(now)
    return found


def test_tries_double_up_to_the_longest_wait() -> None:
    assert tries(unobserved("x"), 100.0) == [1, 3, 7, 15, 31, 31 + LONGEST_RECOMPARE_S, 31 + 2 * LONGEST_RECOMPARE_S]


def test_before_its_time_nothing_is_compared_again() -> None:
    assert unobserved("x").retried({"x"}, 0.9) == set()


def test_topic_that_was_compared_is_owed_nothing() -> None:
    built = unobserved("x", "y")
    built.compared({"x"}, (), {}, 1.0)
    assert built.retried({"x", "y"}, 1.0) == {"y"}
    built.compared({"y"}, (), {}, 1.0)
    assert (built.retry_at(), list(built.unobserved)) == (NONE, [])


def test_topic_that_is_gone_is_forgotten_when_its_time_comes() -> None:
    built = unobserved("x")
    assert built.retried(set(), 1.0) == set()
    assert built.retry_at() == NONE


def test_time_that_came_is_past_also_where_nobody_compared() -> None:
    built = unobserved("x")
    built.retried({"x"}, 1.0)
    assert built.retry_at() == 3.0


def test_new_one_is_compared_again_soon_however_long_others_have_waited() -> None:
    built = unobserved("x")
    tries(built, 100.0)
    built.compared({"y"}, (), {"y": WHY}, 100.0)
    assert built.retry_at() == 101.0


def test_of_many_all_have_their_turn_and_no_turn_has_more_than_a_request_describes() -> None:
    many = [f"t{number:04}" for number in range(2 * RETRIED_AT_ONCE)]
    built, compared = unobserved(*many), set[str]()
    for _ in range(2):
        now = built.retry_at()
        turn = built.retried(many, now)
        assert len(turn) == RETRIED_AT_ONCE
        built.compared(turn, (), dict.fromkeys(turn, WHY), now)
        compared |= turn
    assert compared == set(many)
