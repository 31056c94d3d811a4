"""Listeners are told the whole set at the start and when it changes; none of them can break, delay or stop a batch."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial

import pytest

from app.local.waiting import wait_for
from sinks.plugins.listeners import DefaultGroupListener, DefaultTopicListener, wants_nothing
from tests.sinks.notify.listening import BOTH, IMPATIENT, ORDERS, SOON, Counts, Hangs, Remembers, announcing, failing


def test_the_whole_set_is_told_at_the_start_even_an_empty_one() -> None:
    listener = Remembers()
    with announcing(listener, listener) as told:
        told.announce_topics(BOTH)
        told.announce_groups(set())
    assert listener.topics == [BOTH]
    assert listener.groups == [frozenset()]


def test_the_whole_set_is_told_again_when_it_changed_and_only_then() -> None:
    listener, counts = Remembers(), Counts()
    with announcing(listener, counts=counts) as told:
        for current in (ORDERS, BOTH, {}, ORDERS):
            for _ in range(3):
                told.announce_topics(dict(current))
            wait_for(partial(listener.was_told, current), SOON, "the call")
    assert listener.topics == [ORDERS, BOTH, {}, ORDERS]
    assert counts == {("topic", "ok"): 4}


def test_a_listener_that_inherits_from_kafkas_own_is_told_and_kafkas_own_is_nobody() -> None:
    class Topics(Remembers, DefaultTopicListener): ...

    class Groups(Remembers, DefaultGroupListener): ...

    topics, groups = Topics(), Groups()
    with announcing(topics, groups) as told:
        told.announce_topics(ORDERS)
        told.announce_groups({"g"})
    assert (topics.topics, groups.groups) == ([ORDERS], [frozenset({"g"})])
    assert not wants_nothing(topics)
    assert wants_nothing(DefaultTopicListener())


def test_names_that_stay_as_they_are_are_told_as_well() -> None:
    listener = Remembers()
    with announcing(listener) as told:
        told.announce_topics({"orders": "orders"})
    assert listener.topics == [{"orders": "orders"}]


def test_a_set_that_the_caller_or_the_listener_changes_afterwards_changes_nothing() -> None:
    class Spoils(Remembers):
        def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
            super().topics_changed(dict(upstream_to_downstream))
            assert isinstance(upstream_to_downstream, dict)
            upstream_to_downstream.clear()

    listener, mine = Spoils(), dict(ORDERS)
    with announcing(listener) as told:
        told.announce_topics(mine)
        mine["users"] = "a.users"
        wait_for(lambda: listener.topics, SOON, "the call")
        told.announce_topics(ORDERS)
    assert listener.topics == [ORDERS]


def test_a_listener_that_raises_is_counted_and_told_again_later() -> None:
    listener, counts = Remembers(failing(3, OSError("disk full"))), Counts()
    with announcing(listener, counts=counts) as told:
        told.announce_topics(ORDERS)
        wait_for(lambda: listener.topics, SOON, "the call that goes well")
    assert listener.topics == [ORDERS]
    assert counts == {("topic", "failed"): 3, ("topic", "ok"): 1}


def test_a_listener_that_wants_to_end_the_process_has_failed_and_no_more() -> None:
    listener, counts = Remembers(failing(1, SystemExit(3))), Counts()
    with announcing(groups=listener, counts=counts) as told:
        told.announce_groups({"billing"})
        wait_for(lambda: listener.groups, SOON, "the call that goes well")
    assert counts == {("group", "failed"): 1, ("group", "ok"): 1}


def test_trouble_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    listener = Remembers(failing(5, OSError("disk full")))
    with announcing(listener) as told:
        told.announce_topics(ORDERS)
        wait_for(lambda: listener.topics, SOON, "the call that goes well")
    failed, recovered = caplog.messages
    assert "the topic listener tests.sinks.notify.listening:Remembers failed, and is called again" in failed
    assert "OSError: disk full" in failed
    assert recovered.endswith("works again")


def test_no_log_shows_a_secret_that_a_listener_gives_away(caplog: pytest.LogCaptureFixture) -> None:
    listener = Remembers(failing(1, ValueError("cannot log in\nwith hunter2hunter2 or hunter2")))
    with announcing(listener, secrets=("hunter2", "", "hunter2hunter2")) as told:
        told.announce_topics(ORDERS)
        wait_for(lambda: listener.topics, SOON, "the call that goes well")
    assert "ValueError: cannot log in with [hidden] or [hidden]" in caplog.text


def test_telling_never_waits_for_a_listener_that_hangs() -> None:
    hangs = Hangs()
    listener = Remembers(hangs)
    with announcing(listener) as told:
        told.announce_topics(ORDERS)
        assert hangs.entered.wait(SOON)
        start = time.monotonic()
        told.announce_topics(BOTH)
        assert time.monotonic() - start < SOON / 2
        assert listener.topics == []
        hangs.go.set()


def test_of_the_sets_that_came_meanwhile_a_hanging_listener_is_told_the_newest_alone() -> None:
    hangs, counts = Hangs(), Counts()
    listener = Remembers(hangs)
    with announcing(listener, counts=counts, patience=IMPATIENT) as told:
        told.announce_topics(ORDERS)
        assert hangs.entered.wait(SOON)
        wait_for(lambda: counts["topic", "timeout"], SOON, "the time limit")
        for number in range(50):
            told.announce_topics({"orders": f"a{number}.orders"})
        hangs.go.set()
        wait_for(lambda: len(listener.topics) == 2, SOON, "the second call")
    assert listener.topics == [ORDERS, {"orders": "a49.orders"}]
    assert counts["topic", "timeout"] >= 1
    assert counts.total() >= 2


def test_a_hanging_listener_costs_one_thread_and_holds_up_no_other() -> None:
    hangs = Hangs()
    hanging, other = Remembers(hangs), Remembers()
    with announcing(hanging, other) as told:
        told.announce_topics(ORDERS)
        assert hangs.entered.wait(SOON)
        before = threading.active_count()
        for number in range(50):
            told.announce_topics({"orders": f"a{number}.orders"})
        assert threading.active_count() <= before
        told.announce_groups({"billing"})
        wait_for(lambda: other.groups, SOON, "the other listener's call")
        hangs.go.set()


def test_listeners_are_closed_once_after_what_waited_was_told() -> None:
    listener = Remembers()
    with announcing(listener) as told:
        told.announce_topics(ORDERS)
        assert told.close()
        assert told.close()
        told.announce_topics(BOTH)
    assert (listener.topics, listener.closed) == ([ORDERS], 1)


def test_a_listener_that_was_never_told_anything_is_closed_too() -> None:
    listener = Remembers()
    with announcing(listener):
        pass
    assert listener.closed == 1


def test_a_listener_need_not_have_a_close() -> None:
    class Bare:
        def groups_changed(self, groups: AbstractSet[str]) -> None: ...

    with announcing(groups=Bare()) as told:
        assert told.close()


def test_closing_takes_no_longer_than_its_limit_and_a_listener_that_comes_back_is_closed_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hangs = Hangs()
    listener = Remembers(hangs)
    with announcing(listener, patience=IMPATIENT) as told:
        told.announce_topics(ORDERS)
        assert hangs.entered.wait(SOON)
        assert not told.close()
        assert "did not end within 0.05 s and is left behind" in caplog.text
        assert listener.closed == 0
        hangs.go.set()
        wait_for(lambda: listener.closed, SOON, "the listener to be closed")


def test_closing_within_no_time_drops_what_waits() -> None:
    hangs = Hangs()
    listener = Remembers(hangs)
    with announcing(listener) as told:
        told.announce_topics(ORDERS)
        assert hangs.entered.wait(SOON)
        told.announce_topics(BOTH)
        assert not told.close(within=0)
        hangs.go.set()
    assert (listener.topics, listener.closed) == ([ORDERS], 1)


def test_a_close_that_raises_is_logged_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class CannotClose(Remembers):
        def close(self) -> None:
            raise OSError("still busy")

    with announcing(CannotClose()) as told:
        assert told.close()
    assert "could not be closed: OSError: still busy" in caplog.text


def test_the_default_listeners_cost_no_thread() -> None:
    before = threading.active_count()
    with announcing() as told:
        told.announce_topics(ORDERS)
        told.announce_groups({"billing"})
        assert threading.active_count() <= before
