"""What waits for a flow's next pass: nothing of it is lost, and nothing is done for what was replaced meanwhile."""

from __future__ import annotations

import threading

import pytest

from app.local.waiting import wait_for
from sinks.engine.flow_task import Build, Mailbox
from sinks.ledger.audit import SettingChange
from tests.sinks.scripted_pass import ScriptedPass

SOON = 60.0
FIRST, SECOND = SettingChange("topics", "a", "b"), SettingChange("topics", "b", "c")


def build() -> Build:
    """A build that is no other one."""
    return lambda: ScriptedPass()  # type: ignore[return-value]


class Calls:
    """Plug-ins that are told: by name, in their order."""

    def __init__(self) -> None:
        self.one, self.two = (lambda: None), (lambda: None)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def test_what_was_taken_does_not_come_again(mailbox: Mailbox) -> None:
    mailbox.renew(build(), [FIRST])
    mailbox.request_pass(["x"], 0)
    mailbox.take()
    mail = mailbox.take()
    assert (mail.requested, mail.everything, mail.build, mail.calls, mail.changes) == (frozenset(), False, None, (), ())
    assert not mailbox.has_request()


def test_build_that_failed_comes_again_with_its_changes_and_the_calls_after_it(mailbox: Mailbox) -> None:
    calls, first = Calls(), build()
    mailbox.renew(first, [FIRST])
    mailbox.add_call(calls.one, [SECOND])
    mail = mailbox.take()
    mailbox.give_back(mail.build, mail.calls, mail.changes)
    again = mailbox.take()
    assert (again.build, again.calls, again.changes) == (first, (calls.one,), (FIRST, SECOND))


def test_call_that_comes_while_a_build_fails_is_made_after_it(mailbox: Mailbox) -> None:
    calls, first = Calls(), build()
    mailbox.renew(first, [FIRST])
    mail = mailbox.take()
    mailbox.add_call(calls.one, [SECOND])
    mailbox.give_back(mail.build, mail.calls, mail.changes)
    again = mailbox.take()
    assert (again.build, again.calls, again.changes) == (first, (calls.one,), (FIRST, SECOND))


def test_newer_build_that_comes_meanwhile_counts_alone_and_all_changes_are_audited(mailbox: Mailbox) -> None:
    calls, newer = Calls(), build()
    mailbox.renew(build(), [FIRST])
    mailbox.add_call(calls.one, [])
    mail = mailbox.take()
    mailbox.renew(newer, [SECOND])
    mailbox.add_call(calls.two, [])
    mailbox.give_back(mail.build, mail.calls, mail.changes)
    again = mailbox.take()
    assert (again.build, again.calls, again.changes) == (newer, (calls.two,), (FIRST, SECOND))


def test_call_for_plugins_that_a_build_replaces_is_not_made_but_its_change_is_audited(mailbox: Mailbox) -> None:
    calls, newer = Calls(), build()
    mailbox.add_call(calls.one, [FIRST])
    mailbox.renew(newer, [SECOND])
    mail = mailbox.take()
    assert (mail.build, mail.calls, mail.changes, mail.everything) == (newer, (), (FIRST, SECOND), True)


def test_calls_that_failed_come_before_those_that_came_meanwhile(mailbox: Mailbox) -> None:
    calls = Calls()
    mailbox.add_call(calls.one, [FIRST])
    mail = mailbox.take()
    mailbox.add_call(calls.two, [SECOND])
    mailbox.give_back(None, mail.calls, mail.changes)
    again = mailbox.take()
    assert (again.calls, again.changes) == ((calls.one, calls.two), (FIRST, SECOND))


def test_what_a_failed_pass_should_have_compared_the_next_one_does_but_nobody_asks_for_it_at_once(
    mailbox: Mailbox,
) -> None:
    mailbox.request_pass(["x"], 0)
    mailbox.request_pass([], 0)
    mailbox.owe(mailbox.take())
    assert not mailbox.has_request(), "a retry waits for its time"
    again = mailbox.take()
    assert (again.requested, again.everything) == ({"x"}, True)
    assert not mailbox.take().everything


def test_look_that_is_asked_for_during_a_pass_waits_for_the_next_one(mailbox: Mailbox) -> None:
    running = mailbox.take()
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(mailbox.request_pass(["x"], SOON)))
    asking.start()
    wait_for(mailbox.has_request, SOON, "the question")
    mailbox.done(running.number)
    assert not mailbox.request_pass([], 0), "the pass under way began before it was asked for"
    mail = mailbox.take()
    assert "x" in mail.requested
    assert answers == []
    mailbox.done(mail.number)
    asking.join(SOON)
    assert answers == [True]
