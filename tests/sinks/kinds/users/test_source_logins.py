"""A password that was changed on the source alone is found by a login there, without many logins at once."""

from __future__ import annotations

from dataclasses import replace

from sinks.kafka.memory.memory_acls import MemoryAcls
from sinks.kafka.memory.memory_users import MemoryUsers, Stored
from sinks.kafka.ports.users import LoginTrial
from sinks.kinds.users.controller import REST
from sinks.kinds.users.rules import WantedUser
from sinks.kinds.users.source_logins import SourceLogins
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.memory_flow import Passwords

SHA = "SCRAM-SHA-512"
ALICE, BOB = ("alice", SHA), ("bob", SHA)
HOUR = 3600.0


class Stage:
    """Users of a source, a provider that knows their passwords, and the logins that were tried."""

    def __init__(self, *names: str) -> None:
        self.users = MemoryUsers("a", {(name, SHA): Stored(4096, "hush") for name in names})
        self.provider = Passwords()
        self.provider.known = dict.fromkeys(names, ("hush", "1"))
        self.tried: list[str] = []
        self.wanted = {(name, SHA): WantedUser(name, 4096, "1") for name in names}
        self.logins = SourceLogins("a", self.log_in, self.provider, HOUR)

    def log_in(self, user: str, password: str, mechanism: str) -> LoginTrial:
        self.tried.append(user)
        return LoginTrial(self.users.logs_in(user, password, mechanism))

    def turns(self, start: float, count: int) -> list[str]:
        """Who was tried in so many turns, ten seconds apart."""
        before = len(self.tried)
        for turn in range(count):
            self.logins.take_turn(self.wanted, start + turn * 10.0)
        return self.tried[before:]


def test_each_user_is_tried_once_an_hour_and_one_in_a_turn() -> None:
    stage = Stage("alice", "bob")
    assert stage.turns(0.0, 1) == ["alice"]
    assert stage.turns(10.0, 5) == ["bob"]
    assert stage.turns(HOUR, 1) == ["alice"]
    assert stage.turns(HOUR + 10.0, 5) == ["bob"]


def test_password_that_is_no_more_the_sources_is_refused_until_the_new_one_is_stored() -> None:
    stage = Stage("alice")
    stage.users.stored[ALICE] = Stored(4096, "changed")
    stage.turns(0.0, 1)
    (refusal,) = stage.logins.refusals()
    assert refusal.key == ALICE
    assert "lockstep credentials set" in refusal.reason
    stage.provider.known["alice"] = ("changed", "2")
    stage.wanted[ALICE] = replace(stage.wanted[ALICE], version="2")
    assert stage.turns(10.0, 1) == ["alice"]
    assert stage.logins.refusals() == []


def test_other_iterations_on_the_source_are_a_reason_to_try_at_once() -> None:
    stage = Stage("alice")
    stage.turns(0.0, 1)
    stage.wanted[ALICE] = replace(stage.wanted[ALICE], iterations=8192)
    assert stage.turns(10.0, 2) == ["alice"]


def test_user_of_whom_no_password_is_known_is_not_tried_and_one_that_is_gone_is_forgotten() -> None:
    stage = Stage("alice", "bob")
    stage.users.stored[BOB] = Stored(4096, "changed")
    stage.wanted[ALICE] = WantedUser("alice", 4096)
    assert stage.turns(0.0, 3) == ["bob"]
    del stage.wanted[BOB]
    stage.turns(30.0, 1)
    assert stage.logins.refusals() == []


def test_login_that_tells_nothing_is_no_drift_but_a_note() -> None:
    stage = Stage("alice", "bob")
    stage.logins = SourceLogins("a", lambda *login: LoginTrial(None, "nobody logs in there"), stage.provider, HOUR)
    stage.turns(0.0, 5)
    assert stage.logins.refusals() == []
    assert stage.logins.notes() == [
        "whether a password was changed on a alone cannot be seen: nobody logs in there",
    ]


def test_password_changed_on_the_source_alone_is_drift_of_the_kind_with_its_reason() -> None:
    stage = Stage("alice")
    world = World(
        flow_settings(),
        source_acls=MemoryAcls("a", {acl("ALLOW READ User:alice TOPIC x")}),
        source_users=stage.users,
        provider=stage.provider,
        log_in=stage.log_in,
    )
    put_topic(world.source, "x")
    world.settle()
    assert world.run_pass(after=REST).plan.refused == ()
    stage.users.stored[ALICE] = Stored(4096, "changed")
    (refusal,) = world.run_pass(after=HOUR).plan.refused
    assert (refusal.key, "another one on the source" in refusal.reason) == (ALICE, True)
