"""A new password reaches clusters and store together, or goes on where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.credentials.encoder import EncoderSettings
from app.credentials.rotation import RotationInterrupted, UserCluster, Written, rotate
from app.credentials.store import CredentialStore
from sinks.kafka.ports.users import Upsertion
from streaming.errors import LockstepError
from tests.memory.memory_users import MemoryUsers, Stored

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


class Crash(BaseException):
    """The end of the process."""


class Crashing(CredentialStore):
    """Ends before the last step."""

    def promote(self, user: str, version: str) -> None:
        raise Crash


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    made = CredentialStore(tmp_path / "credentials", EncoderSettings("s", iterations=2))
    made.put({"alice": "old"})
    return made


def users(alias: str, mechanisms: Mapping[str, int], name: str = "alice") -> MemoryUsers:
    return MemoryUsers(alias, {(name, one): Stored(iterations, "old") for one, iterations in mechanisms.items()})


@pytest.fixture
def source() -> MemoryUsers:
    return users("a", {SHA_512: 8192})


@pytest.fixture
def target() -> MemoryUsers:
    return users("b", {SHA_512: 8192})


@pytest.fixture
def clusters(source: MemoryUsers, target: MemoryUsers) -> list[UserCluster]:
    return [UserCluster("a", source, "alice", True), UserCluster("b", target, "alice", False)]


def passwords(cluster: MemoryUsers) -> set[str]:
    return {stored.password for stored in cluster.stored.values()}


def in_force(store: CredentialStore) -> str | None:
    found = store.credential("alice")
    return found.password if found else None


def test_both_clusters_and_the_store_have_the_new_password(
    store: CredentialStore, source: MemoryUsers, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    before = store.version("alice")
    written = rotate(store, "alice", "new", clusters)
    assert written == [Written("b", "alice", SHA_512, 8192), Written("a", "alice", SHA_512, 8192)]
    assert passwords(source) == passwords(target) == {"new"}
    assert in_force(store) == "new"
    assert store.version("alice") != before


def test_every_mechanism_is_written_and_the_target_gets_the_sources_iterations(store: CredentialStore) -> None:
    source, target = users("a", {SHA_512: 8192}), users("b", {SHA_512: 4096, SHA_256: 4096})
    rotate(store, "alice", "new", [UserCluster("a", source, "alice", True), UserCluster("b", target, "alice", False)])
    assert source.describe() == {"alice": {SHA_512: 8192}}
    assert target.describe() == {"alice": {SHA_512: 8192, SHA_256: 4096}}
    assert passwords(target) == {"new"}


def test_a_target_that_refuses_leaves_the_source_and_the_store_with_the_old_password(
    store: CredentialStore, source: MemoryUsers, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    target.policy = lambda upsertion: "too short"
    with pytest.raises(RotationInterrupted, match=r"too short.*lockstep credentials rotate alice") as caught:
        rotate(store, "alice", "geheim", clusters)
    assert "geheim" not in str(caught.value)
    assert passwords(source) == passwords(target) == {"old"}
    assert in_force(store) == "old"


def test_a_rotation_that_stopped_between_the_clusters_goes_on_with_the_same_password(
    store: CredentialStore, source: MemoryUsers, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    source.denied.add("alter")
    with pytest.raises(RotationInterrupted):
        rotate(store, "alice", "new", clusters)
    assert (passwords(source), passwords(target), in_force(store)) == ({"old"}, {"new"}, "old")
    source.denied.clear()
    rotate(store, "alice", None, clusters)
    assert (passwords(source), passwords(target), in_force(store)) == ({"new"}, {"new"}, "new")


def test_a_rotation_that_stopped_before_the_store_goes_on(
    store: CredentialStore, source: MemoryUsers, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    with pytest.raises(Crash):
        rotate(Crashing(store.path, EncoderSettings("s", iterations=2)), "alice", "new", clusters)
    assert (passwords(source), passwords(target), in_force(store)) == ({"new"}, {"new"}, "old")
    rotate(store, "alice", None, clusters)
    assert in_force(store) == "new"
    assert store.pending("alice") is None


def test_trouble_that_can_be_seen_before_leaves_nothing_under_way(
    store: CredentialStore, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    target.reachable = False
    with pytest.raises(LockstepError, match="no answer"):
        rotate(store, "alice", "new", clusters)
    assert store.pending("alice") is None


def test_another_password_is_not_taken_while_one_is_under_way_but_anew(
    store: CredentialStore, source: MemoryUsers, clusters: list[UserCluster]
) -> None:
    store.begin("alice", "first")
    with pytest.raises(LockstepError, match="set alice --both"):
        rotate(store, "alice", "second", clusters)
    rotate(store, "alice", "second", clusters, anew=True)
    assert passwords(source) == {"second"}
    assert in_force(store) == "second"


def test_a_user_whom_no_cluster_has_is_made_only_if_it_is_said_how(store: CredentialStore) -> None:
    clusters = [UserCluster("a", MemoryUsers("a"), "alice", True), UserCluster("b", MemoryUsers("b"), "alice", False)]
    with pytest.raises(LockstepError, match="not a SCRAM user of a and b"):
        rotate(store, "alice", "new", clusters)
    assert store.pending("alice") is None
    rotate(store, "alice", "new", clusters, otherwise={SHA_256: 4096})
    assert [end.users.describe() for end in clusters] == [{"alice": {SHA_256: 4096}}] * 2


def test_a_cluster_that_is_not_written_still_says_which_mechanisms_there_are(
    store: CredentialStore, source: MemoryUsers
) -> None:
    target = MemoryUsers("b")
    clusters = [UserCluster("a", source, "alice", True, to_write=False), UserCluster("b", target, "alice", False)]
    rotate(store, "alice", "new", clusters, otherwise={SHA_256: 4096})
    assert target.describe() == {"alice": {SHA_512: 8192}}
    assert passwords(source) == {"old"}


def test_a_user_is_written_by_the_name_that_he_has_on_the_target(store: CredentialStore, source: MemoryUsers) -> None:
    target = MemoryUsers("b")
    rotate(
        store, "alice", "new", [UserCluster("a", source, "alice", True), UserCluster("b", target, "alice-dr", False)]
    )
    assert target.logs_in("alice-dr", "new", SHA_512)


def test_without_a_password_and_with_none_under_way_there_is_nothing_to_do(
    store: CredentialStore, source: MemoryUsers, clusters: list[UserCluster]
) -> None:
    with pytest.raises(LockstepError, match="alice has no pending password"):
        rotate(store, "alice", None, clusters)
    assert source.writes == 0


def test_no_upsertion_shows_its_password() -> None:
    assert "geheim" not in repr(Upsertion("alice", SHA_512, 4096, "geheim"))


def test_each_credential_is_told_of_at_once_also_one_that_was_not_taken(
    store: CredentialStore, source: MemoryUsers, target: MemoryUsers, clusters: list[UserCluster]
) -> None:
    told: list[tuple[str, str | None]] = []
    source.reachable = False
    with pytest.raises(LockstepError):
        rotate(store, "alice", "new", clusters, tell=lambda one, error: told.append((one.cluster, error)))
    assert told == []
    source.reachable = True
    rotate(store, "alice", "new", clusters, tell=lambda one, error: told.append((one.cluster, error)))
    assert told == [("b", None), ("a", None)]
