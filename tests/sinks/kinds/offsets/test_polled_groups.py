"""Groups that are polled: at their pace, those that the filter lets through, and no commit is missed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kinds.offsets import polled_groups
from sinks.kinds.offsets.polled_groups import POLL_LONGEST
from tests.sinks.kinds.offsets.logged_groups import Fails, LoggedGroups, Polled, X


def polled(*names: str) -> Polled:
    """Groups that have each committed once, and are all known."""
    groups = LoggedGroups("a")
    groups.begin()
    for name in names:
        groups.commit_to(name, 1)
    found = Polled(groups)
    assert found.poll(everything=True) == set(names)
    return found


def test_between_two_polls_no_group_is_asked_for() -> None:
    stage = polled("g")
    stage.groups.commit_to("g", 5)
    asked = stage.groups.asked
    assert stage.of.poll(stage.of.due - 0.01, everything=False, partitions=stage.partitions) == ((), ())
    assert stage.groups.asked == asked
    assert stage.of.poll(stage.of.due, everything=False, partitions=stage.partitions).committed == {"g"}


def test_a_group_is_followed_if_the_filter_lets_it_through_and_has_a_name() -> None:
    stage = polled("g")
    for name in ("new", "connect-x", ""):
        stage.groups.commit_to(name, 7)
    assert stage.poll(everything=True) == {"new"}
    assert stage.of.chosen == {"g", "new"}


def test_a_group_that_is_gone_is_told() -> None:
    stage = polled("g", "h")
    del stage.groups.offsets["g"]
    stage.now += POLL_LONGEST
    assert stage.of.poll(stage.now, everything=True, partitions=stage.partitions).gone == {"g"}


def test_what_a_cluster_that_was_away_did_not_tell_is_found_when_it_is_back() -> None:
    stage = polled("g")
    stage.groups.commit_to("g", 5)
    stage.groups.reachable = False
    with pytest.raises(ClusterUnreachable):
        stage.poll(everything=True)
    stage.groups.reachable = True
    assert stage.poll() == {"g"}


def test_a_poll_that_fails_leaves_its_groups_waiting_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polled_groups, "POLLED_AT_ONCE", 2)
    groups = Fails("a")
    groups.begin()
    for name in ("b", "c", "d"):
        groups.commit_to(name, 1)
    stage = Polled(groups)
    assert stage.poll(everything=True) == {"b", "c"}
    groups.fails = True
    for name in ("a", "b"):
        groups.commit_to(name, 5)
    with pytest.raises(RightsMissing):
        stage.poll(everything=True)
    groups.fails = False
    assert [stage.poll(), stage.poll()] == [{"d", "b"}, {"a"}]
    groups.commit_to("c", 7)
    del groups.offsets["a"]
    assert stage.poll(everything=True) == {"c"}


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(["g", "h", "i"]), st.integers(2, 5)),
    st.tuples(st.sampled_from(["poll", "compare", "away", "back"]), st.none(), st.none()),
)


@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_a_group_that_committed_is_found(steps: list[tuple[str, str | None, int | None]]) -> None:
    stage, known = polled("g", "h", "i"), dict.fromkeys("ghi", 1)
    for what, group, offset in (*steps, ("back", None, None), *[("compare", None, None)] * 2):
        if group is not None and offset is not None:
            stage.groups.commit_to(group, offset)
        elif what in ("away", "back"):
            stage.groups.reachable = what == "back"
        else:
            try:
                moved = stage.poll(everything=what == "compare")
            except ClusterUnreachable:
                continue
            known |= {one: stage.groups.offsets[one][X] for one in moved}
    assert known == {one: offsets[X] for one, offsets in stage.groups.offsets.items()}
