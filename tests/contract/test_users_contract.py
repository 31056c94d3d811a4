"""One suite for every cluster: what `sinks.kafka.ports.users` promises of SCRAM users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from app.local.broker import ADMIN, RESTRICTED
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.jvm.jvm_login import can_log_in
from sinks.kafka.jvm.jvm_users import JvmUsers
from sinks.kafka.ports.users import Upsertion, Users
from tests.conftest import Clusters
from tests.memory.memory_users import MemoryUsers

SOON = 180.0
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
PASSWORD = 'a "geheim"\\=, €\n'


@dataclass
class Stage:
    """A cluster's users, as one who may do nothing sees them, and whether a user logs in (password, mechanism)."""

    users: Users
    restricted: Users
    logs_in: Callable[[str, str, str], bool]

    def comes_in(self, user: str, password: str, mechanism: str) -> None:
        """A broker shows a credential a moment before it lets the user in."""
        wait_for(lambda: self.logs_in(user, password, mechanism), SOON, f"{user} to log in with {mechanism}")

    def shows(self, user: str, mechanisms: Mapping[str, int]) -> None:
        """A change is acknowledged by the controller, and reaches the broker that answers a moment later."""
        expected = {user: dict(mechanisms)} if mechanisms else {}
        wait_for(lambda: self.users.describe([user]) == expected, SOON, f"{user} to be shown with {mechanisms}")


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def stage(request: pytest.FixtureRequest) -> Stage:
    if request.param == "memory":
        memory = MemoryUsers("b")
        return Stage(memory, MemoryUsers("b", memory.stored, denied={"describe", "alter"}), memory.logs_in)
    cluster = request.getfixturevalue("clusters").b
    plain, nobody, admin = (cluster.client_properties(user) for user in (None, RESTRICTED, ADMIN))

    def logs_in(user: str, password: str, mechanism: str) -> bool:
        return can_log_in(admin_of("b", admin), user, password, mechanism) is None

    return Stage(JvmUsers(admin_of("b", plain)), JvmUsers(admin_of("b", nobody)), logs_in)


@pytest.fixture
def user(unique: str) -> str:
    """A name that no other test has, with what needs care in SCRAM; Kafka lets names of ASCII alone log in."""
    return f"{unique},=x y"


def test_what_is_written_is_described_logs_in_and_is_gone_when_deleted(stage: Stage, user: str) -> None:
    asked = [Upsertion(user, SHA_256, 4096, PASSWORD), Upsertion(user, SHA_512, 8192, PASSWORD)]
    assert stage.users.upsert(asked) == {(user, SHA_256): None, (user, SHA_512): None}
    stage.shows(user, {SHA_256: 4096, SHA_512: 8192})
    assert stage.users.describe()[user] == {SHA_256: 4096, SHA_512: 8192}
    for mechanism in (SHA_256, SHA_512):
        stage.comes_in(user, PASSWORD, mechanism)
        assert not stage.logs_in(user, "another", mechanism)
    assert stage.users.delete([(user, SHA_256)]) == {(user, SHA_256): None}
    stage.shows(user, {SHA_512: 8192})
    wait_for(lambda: not stage.logs_in(user, PASSWORD, SHA_256), SOON, f"{user} to be kept out")
    assert stage.users.delete([(user, SHA_512)]) == {(user, SHA_512): None}
    stage.shows(user, {})


def test_a_second_password_takes_the_place_of_the_first(stage: Stage, user: str) -> None:
    stage.users.upsert([Upsertion(user, SHA_512, 4096, "first")])
    stage.shows(user, {SHA_512: 4096})
    stage.users.upsert([Upsertion(user, SHA_512, 4097, "second")])
    stage.shows(user, {SHA_512: 4097})
    stage.comes_in(user, "second", SHA_512)
    assert not stage.logs_in(user, "first", SHA_512)


def test_a_fault_concerns_one_credential_and_none_of_its_neighbours(stage: Stage, unique: str) -> None:
    half, whole = f"{unique}-half", f"{unique}-whole"
    asked = [
        Upsertion(half, SHA_256, 4096, "p"),
        Upsertion(half, SHA_512, 20000, "p"),
        Upsertion(whole, SHA_512, 4096, "p"),
    ]
    faults = stage.users.upsert(asked)
    assert faults[half, SHA_256] is None
    assert faults[whole, SHA_512] is None
    assert (fault := faults[half, SHA_512]) is not None
    assert fault.code == "UNACCEPTABLE_CREDENTIAL"
    stage.shows(whole, {SHA_512: 4096})
    stage.shows(half, {SHA_256: 4096})


def test_what_is_gone_already_is_no_fault_and_keeps_nothing_else_from_going(stage: Stage, user: str) -> None:
    stage.users.upsert([Upsertion(user, SHA_512, 4096, "p")])
    stage.shows(user, {SHA_512: 4096})
    keys = [(user, SHA_256), (user, SHA_512), (f"{user}-none", SHA_512)]
    assert stage.users.delete(keys) == dict.fromkeys(keys)
    stage.shows(user, {})


def test_who_is_no_user_is_left_out(stage: Stage, user: str) -> None:
    stage.users.upsert([Upsertion(user, SHA_512, 4096, "p")])
    stage.shows(user, {SHA_512: 4096})
    assert stage.users.describe([user, f"{user}-none", user]) == {user: {SHA_512: 4096}}


def test_nothing_asked_is_nothing_answered(stage: Stage) -> None:
    assert stage.users.describe([]) == {}
    assert stage.users.upsert([]) == {}
    assert stage.users.delete([]) == {}


def test_many_users_are_one_call(stage: Stage, unique: str) -> None:
    names = [f"{unique}-{number}" for number in range(20)]
    faults = stage.users.upsert([Upsertion(name, SHA_512, 4096, "p") for name in names])
    assert faults == {(name, SHA_512): None for name in names}
    wait_for(lambda: set(stage.users.describe(names)) == set(names), SOON, "all of them to be shown")
    stage.users.delete([(name, SHA_512) for name in names])


def is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except RightsMissing:
        return True
    return False


def test_without_the_right_nothing_is_shown_and_nothing_written(stage: Stage, user: str) -> None:
    # Brokers forget the ACLs of the test before a moment after they were deleted.
    wait_for(lambda: is_refused(stage.restricted.describe), SOON, "DESCRIBE to be missing")
    for attempt in (
        lambda: stage.restricted.describe(),
        lambda: stage.restricted.describe([user]),
        lambda: stage.restricted.upsert([Upsertion(user, SHA_512, 4096, "p")]),
        lambda: stage.restricted.delete([(user, SHA_512)]),
    ):
        with pytest.raises(RightsMissing):
            attempt()
    stage.shows(user, {})


@pytest.mark.kafka
def test_a_login_that_fails_says_why_and_shows_no_password(clusters: Clusters, user: str) -> None:
    said = can_log_in(admin_of("b", clusters.b.client_properties(ADMIN)), user, "geheim-1", SHA_512)
    assert said is not None
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in said
    assert "geheim-1" not in said


def test_where_nobody_logs_in_that_is_the_reason() -> None:
    said = can_log_in(admin_of("b", {"bootstrap.servers": "127.0.0.1:1"}), "alice", "geheim", SHA_512)
    assert said is not None
    assert "b.security.protocol=PLAINTEXT" in said


def test_a_cluster_that_does_not_answer_is_a_reason_within_the_time_given() -> None:
    properties = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "default.api.timeout.ms": "1000",
    }
    said = can_log_in(admin_of("b", properties), "alice", "geheim", SHA_512)
    assert said is not None
    assert "no answer: cluster b: 127.0.0.1:1: refuses connections" in said


def test_a_cluster_in_memory_that_is_down_answers_nothing() -> None:
    with pytest.raises(ClusterUnreachable):
        MemoryUsers("b", reachable=False).describe()
