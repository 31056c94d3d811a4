"""What the target refused is tried again ever less often; nothing else waits with it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sinks.every_kind.backoff import DENIED_TRIED, DENIED_WAIT, FIRST_RETRY_S, LONGEST_RETRY_S, Backoff
from sinks.faults import ItemFault
from sinks.model.changes import Change, Outcome
from streaming.durations import doubled
from tests.sinks.builders import config_change

REFUSED = ItemFault("INVALID_CONFIG", "not on this cluster")
CHANGE = config_change("a.t", "retention.ms", None, "1")
NEIGHBOUR = config_change("a.t", "retention.bytes", None, "1")


@pytest.fixture
def backed_off() -> Backoff:
    built = Backoff()
    built.learn([Outcome(CHANGE, REFUSED), Outcome(NEIGHBOUR)], 0.0)
    return built


def tried(backed_off: Backoff, *changes: Change, now: float) -> list[Change]:
    """The changes that are tried at this time."""
    return backed_off.sift(changes, now, [])[0]


def test_waits_double_up_to_the_longest() -> None:
    waits = [doubled(FIRST_RETRY_S, tries, LONGEST_RETRY_S) for tries in range(1, 100)]
    assert waits[:4] == [FIRST_RETRY_S, 2 * FIRST_RETRY_S, 4 * FIRST_RETRY_S, 8 * FIRST_RETRY_S]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_RETRY_S


def test_refused_change_waits_and_says_why_how_often_and_how_long(backed_off: Backoff) -> None:
    todo, (refusal,) = backed_off.sift([CHANGE], 10.0, [])
    assert todo == []
    assert (refusal.kind, refusal.op, refusal.key) == (CHANGE.kind, CHANGE.op, CHANGE.key)
    assert refusal.reason == "INVALID_CONFIG: not on this cluster (refused 1 time, tried again in 20 s)"
    assert backed_off.waiting(10.0) == [refusal]


def test_neighbours_do_not_wait(backed_off: Backoff) -> None:
    other_topic = config_change("a.u", "retention.ms", None, "1")
    assert tried(backed_off, CHANGE, NEIGHBOUR, other_topic, now=1.0) == [NEIGHBOUR, other_topic]


def test_refused_change_is_tried_ever_less_often(backed_off: Backoff) -> None:
    tries, now = [], 0.0
    while now < 4 * 3600:
        now += 1.0
        if tried(backed_off, CHANGE, now=now):
            tries.append(now)
            backed_off.learn([Outcome(CHANGE, REFUSED)], now)
    waits = [later - earlier for earlier, later in zip([0.0, *tries], tries, strict=False)]
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


DENIED = ItemFault("TOPIC_AUTHORIZATION_FAILED", "")
MANY = [config_change(f"a.{number:02d}", "retention.ms", None, "1") for number in range(20)]


def times_tried(backed_off: Backoff, changes: list[Change], fault: ItemFault, *, hours: int) -> list[tuple[float, int]]:
    """When how many of these were tried, and refused each time."""
    tries = []
    for now in range(1, hours * 3600):
        if todo := tried(backed_off, *changes, now=float(now)):
            tries.append((float(now), len(todo)))
            backed_off.learn([Outcome(change, fault) for change in todo], float(now))
    return tries


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "RightsMissing"])
def test_what_a_missing_right_denied_is_tried_every_minute(code: str) -> None:
    backed_off, fault = Backoff(), ItemFault(code, "")
    backed_off.learn([Outcome(CHANGE, fault)], 0.0)
    times = [0.0, *(at for at, _ in times_tried(backed_off, [CHANGE], fault, hours=3))]
    assert max(later - earlier for earlier, later in pairwise(times)) == DENIED_WAIT


def test_of_many_that_a_missing_right_denied_some_are_tried_every_minute_in_turn() -> None:
    backed_off = Backoff()
    backed_off.learn([Outcome(change, DENIED) for change in MANY], 0.0)
    tries = times_tried(backed_off, MANY, DENIED, hours=6)
    times = [at for at, _ in tries]
    assert max(later - earlier for earlier, later in pairwise(times)) == DENIED_WAIT
    assert {count for at, count in tries if at > 3600} == {DENIED_TRIED}
    assert len({refusal.reason.split(",")[0] for refusal in backed_off.waiting(0.0)}) <= 2, "one is tried more often"


def granted_one() -> Backoff:
    """All of MANY were denied for long; the first one went through at 7200."""
    backed_off = Backoff()
    backed_off.learn([Outcome(change, DENIED) for change in MANY], 0.0)
    times_tried(backed_off, MANY, DENIED, hours=2)
    backed_off.learn([Outcome(MANY[0])], 7200.0)
    return backed_off


def test_once_one_is_granted_ever_more_of_its_kind_are_tried_at_once_as_long_as_all_go_through() -> None:
    backed_off, left, counts = granted_one(), MANY[1:], list[int]()
    refused = config_change("a.t", "retention.ms", None, "-7")
    backed_off.learn([Outcome(refused, REFUSED)], 7200.0)
    while left:
        todo = tried(backed_off, *left, refused, now=7200.0)
        backed_off.learn(map(Outcome, todo), 7200.0)
        left = [change for change in left if change not in todo]
        counts.append(len(todo))
    assert counts == [2 * DENIED_TRIED, len(MANY) - 1 - 2 * DENIED_TRIED]


def test_right_for_one_alone_has_few_others_tried_that_are_denied_again() -> None:
    backed_off = granted_one()
    first = tried(backed_off, *MANY[1:], now=7200.0)
    backed_off.learn([Outcome(first[0]), *(Outcome(change, DENIED) for change in first[1:])], 7200.0)
    assert len(first) == 2 * DENIED_TRIED
    assert len(tried(backed_off, *MANY[1:], now=7201.0)) <= DENIED_TRIED


def test_its_topic_is_due_when_its_time_has_come(backed_off: Backoff) -> None:
    assert backed_off.due(FIRST_RETRY_S - 1) == set()
    assert backed_off.due(FIRST_RETRY_S) == {"a.t"}


def test_another_wanted_value_is_tried_at_once_and_counts_from_one_again(backed_off: Backoff) -> None:
    backed_off.learn([Outcome(CHANGE, REFUSED)], FIRST_RETRY_S)
    other = config_change("a.t", "retention.ms", None, "2")
    assert tried(backed_off, other, now=FIRST_RETRY_S + 1) == [other]
    backed_off.learn([Outcome(other, REFUSED)], FIRST_RETRY_S + 1)
    assert tried(backed_off, other, now=FIRST_RETRY_S + FIRST_RETRY_S) == []
    assert tried(backed_off, other, now=FIRST_RETRY_S + FIRST_RETRY_S + 1) == [other]


def test_change_of_what_the_target_has_is_still_the_same_refusal(backed_off: Backoff) -> None:
    assert tried(backed_off, config_change("a.t", "retention.ms", "7", "1"), now=1.0) == []


def test_change_that_went_through_is_forgotten(backed_off: Backoff) -> None:
    backed_off.learn([Outcome(CHANGE)], FIRST_RETRY_S)
    assert backed_off.waiting(FIRST_RETRY_S) == []


def test_fault_that_passes_by_itself_sets_nothing_aside() -> None:
    backed_off = Backoff()
    backed_off.learn([Outcome(CHANGE, ItemFault("REQUEST_TIMED_OUT", "", retriable=True))], 0.0)
    assert tried(backed_off, CHANGE, now=0.0) == [CHANGE]


def test_what_is_no_longer_wanted_of_a_topic_looked_at_is_forgotten(backed_off: Backoff) -> None:
    backed_off.sift([], 0.0, ["a.u"])
    assert backed_off.due(FIRST_RETRY_S) == {"a.t"}
    backed_off.sift([CHANGE], 0.0, ["a.t"])
    assert backed_off.due(FIRST_RETRY_S) == {"a.t"}
    backed_off.sift([NEIGHBOUR], 0.0, ["a.t"])
    assert backed_off.due(FIRST_RETRY_S) == set()


def test_what_is_wanted_no_more_is_forgotten(backed_off: Backoff) -> None:
    backed_off.keep(lambda change: change.key == CHANGE.key)
    assert backed_off.waiting(0.0) != []
    backed_off.keep(lambda change: change.key == NEIGHBOUR.key)
    assert backed_off.waiting(0.0) == []


def test_after_a_restart_each_is_tried_once_more() -> None:
    assert tried(Backoff(), CHANGE, now=1.0) == [CHANGE]
