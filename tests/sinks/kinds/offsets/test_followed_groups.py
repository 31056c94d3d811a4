"""Groups that are followed: polled or from the stream, no commit is missed, and none is asked for that is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ClusterUnreachable
from sinks.flow_settings import OffsetsSource
from sinks.kinds.offsets.commit_feed import MANY, CommitFeed
from sinks.kinds.offsets.group_polls import POLL_LEAST
from streaming.commits.commit_record import CommitBatch
from tests.sinks.kinds.offsets.streamed_groups import Stage, X, Y, streamed


def test_while_the_stream_lives_a_commit_is_known_without_a_request() -> None:
    stage = streamed(g=1, h=2)
    stage.commit("g", X, 5)
    stage.deliver()
    assert stage.poll(after=60.0) == {"g"}
    assert (stage.compared["g"], stage.groups.asked) == ({X: 5}, 0)
    assert stage.followed.due == float("inf")


def test_a_group_that_commits_what_it_had_committed_has_not_moved() -> None:
    stage = streamed(g=1)
    stage.commit("g", X, 1)
    stage.deliver()
    assert stage.poll() == set()


def test_a_group_that_is_new_to_the_stream_is_followed_if_the_filter_lets_it_through() -> None:
    stage = streamed(g=1)
    stage.commit("new", X, 7)
    stage.commit("connect-x", X, 7)
    stage.deliver()
    assert stage.poll() == {"new"}
    assert "connect-x" not in stage.followed.chosen
    assert (stage.compared["new"], stage.groups.asked) == ({X: 7}, 0)


def test_offsets_that_are_deleted_or_expire_are_forgotten_and_a_reset_goes_back() -> None:
    stage = streamed(g=9)
    stage.commit("g", Y, 3)
    stage.commit("g", X, None)
    stage.deliver()
    stage.poll()
    assert stage.compared["g"] == {Y: 3}
    stage.commit("g", Y, 1)
    stage.deliver()
    assert stage.poll() == {"g"}
    assert stage.compared["g"] == {Y: 1}


def test_a_group_whose_commit_is_not_understood_is_asked_for() -> None:
    stage = streamed(g=1, h=2)
    stage.groups.offsets["g"][X] = 4
    stage.feed.put(CommitBatch({"g": {Y: 8}}, frozenset({"g"})))
    assert stage.poll() == {"g"}
    assert (stage.compared["g"], stage.groups.asked) == ({X: 4}, 1)


def test_a_full_comparison_finds_what_the_stream_lost() -> None:
    stage = streamed(g=1)
    stage.commit("g", X, 5)
    stage.log.clear()
    assert stage.poll() == set()
    assert stage.poll(everything=True) == {"g"}


def test_without_the_stream_groups_are_polled_at_their_pace() -> None:
    stage = streamed(g=1)
    stage.feed.end("the query failed")
    stage.commit("g", X, 5)
    assert stage.poll() == {"g"}
    stage.commit("g", X, 6)
    assert stage.poll() == set()
    assert stage.poll(after=POLL_LEAST) == {"g"}
    assert stage.followed.due == stage.now + POLL_LEAST


def test_until_a_stream_brings_something_groups_are_polled() -> None:
    stage = Stage()
    stage.commit("g", X, 1)
    stage.feed.begin()
    assert stage.poll() == {"g"}
    stage.commit("g", X, 2)
    assert stage.poll(after=POLL_LEAST) == {"g"}


def test_what_a_stream_brought_before_all_was_read_is_read_again_after_a_failure() -> None:
    stage = streamed(g=1)
    stage.feed.end(None)
    stage.commit("g", X, 5)
    stage.begin()
    stage.commit("g", X, 6)
    stage.deliver()
    stage.groups.reachable = False
    with pytest.raises(ClusterUnreachable):
        stage.poll()
    stage.groups.reachable = True
    assert stage.poll() == {"g"}
    assert stage.compared["g"] == {X: 6}


@pytest.mark.parametrize(
    ("source", "groups", "wanted"),
    [
        (OffsetsSource.POLL, 100 * MANY, False),
        (OffsetsSource.STREAM, 0, True),
        (OffsetsSource.AUTO, MANY, False),
        (OffsetsSource.AUTO, MANY + 1, True),
    ],
)
def test_the_stream_is_wanted_where_it_was_asked_for_or_groups_are_many(
    source: OffsetsSource, groups: int, wanted: bool
) -> None:
    feed = CommitFeed()
    feed.want(source, groups)
    assert feed.wanted is wanted


def test_a_stream_that_nobody_asks_anything_is_not_wanted() -> None:
    stage = streamed(g=1)
    stage.feed.want(OffsetsSource.STREAM, 1)
    stage.followed.let_go()
    assert not stage.feed.wanted


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(["g", "h", "i"]), st.sampled_from([X, Y]), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.sampled_from(["g", "h", "i"]), st.sampled_from([X, Y]), st.none()),
    st.tuples(st.sampled_from(["deliver", "poll", "compare", "begin", "end", "away", "back"])),
)


def take(stage: Stage, step: Sequence[object]) -> None:
    what = step[0]
    if what in ("commit", "delete"):
        _, group, where, offset = step
        stage.commit(group, where, offset)  # type: ignore[arg-type]  # as STEPS has it
    elif what == "deliver":
        stage.deliver(1)
    elif what in ("poll", "compare"):
        try:
            stage.poll(everything=what == "compare", after=1.0)
        except ClusterUnreachable:
            assert not stage.groups.reachable
    elif what == "begin":
        stage.begin()
    elif what == "end":
        stage.feed.end("it ended")
    else:
        stage.groups.reachable = what == "back"


@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_every_group_is_compared_by_what_it_committed_last(steps: list[tuple[object, ...]]) -> None:
    stage = Stage()
    for step in steps:
        take(stage, step)
    stage.groups.reachable = True
    stage.deliver()
    stage.poll(after=1.0)
    if not stage.feed.live:
        # Polled groups take as long as their own watch; a full comparison compares every group.
        return
    for group, offsets in stage.groups.offsets.items():
        assert stage.compared.get(group, {}) == offsets


def test_what_was_heard_before_a_reading_that_failed_is_read_again() -> None:
    stage = streamed(g=1)
    stage.commit("g", X, 900)
    stage.deliver()
    stage.groups.reachable = False
    with pytest.raises(ClusterUnreachable):
        stage.poll(everything=True)
    stage.groups.reachable = True
    assert stage.poll(after=60.0) == {"g"}
    assert stage.compared["g"] == {X: 900}


def test_the_group_without_a_name_is_not_followed() -> None:
    stage = streamed(g=1)
    stage.commit("", X, 7)
    stage.deliver()
    assert stage.poll() == set()
    assert stage.poll(everything=True) == set()
    assert stage.followed.chosen == {"g"}
