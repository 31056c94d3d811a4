"""The encrypted file of passwords."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.credentials.encoder import EncoderSettings
from app.credentials.store import CredentialStore
from streaming.errors import LockstepError

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
SECRET = EncoderSettings("the secret", iterations=2)


class Clock:
    """A second later each time."""

    def __init__(self) -> None:
        self._now = NOON

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def opened(path: Path, settings: EncoderSettings = SECRET) -> CredentialStore:
    return CredentialStore(path, settings)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "credentials"


def password(store: CredentialStore, user: str) -> str | None:
    found = store.credential(user)
    return found.password if found else None


def test_what_was_put_is_found_by_whoever_has_the_secret(path: Path) -> None:
    opened(path).put({"alice": "geheim", "bøb": "naïve€"})
    assert [password(opened(path), user) for user in ("alice", "bøb", "carol")] == ["geheim", "naïve€", None]
    assert [one.user for one in opened(path).users()] == ["alice", "bøb"]


def test_file_is_for_this_user_only_and_holds_no_password(path: Path) -> None:
    opened(path).put({"alice": "geheim"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name("credentials.lock").stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert b"geheim" not in path.read_bytes()
    assert {one.name for one in path.parent.iterdir()} == {"credentials", "credentials.lock"}


def test_another_password_has_another_version_even_in_a_store_made_anew(path: Path) -> None:
    clock, versions = Clock(), set()
    for text in ("one", "two"):
        versions.add(CredentialStore(path, SECRET, clock).put({"alice": text}))
    path.unlink()
    versions.add(CredentialStore(path, SECRET, clock).put({"alice": "three"}))
    assert len(versions) == 3
    assert opened(path).version("alice") in versions


def test_wrong_secret_reads_nothing_writes_nothing_and_says_what_to_mend(path: Path) -> None:
    opened(path).put({"alice": "geheim"})
    before, wrong = path.read_bytes(), opened(path, EncoderSettings("another", iterations=2))
    for attempt in (lambda: wrong.credential("alice"), lambda: wrong.put({"bob": "x"}), lambda: wrong.remove("alice")):
        with pytest.raises(LockstepError, match=r"password\.encoder\.old\.secret") as caught:
            attempt()
        assert "another password.encoder.secret" in str(caught.value)
    assert path.read_bytes() == before
    assert wrong.version("alice") is not None


def test_after_a_change_of_the_secret_the_old_one_reads_and_the_first_write_encodes_all_anew(path: Path) -> None:
    opened(path).put({"alice": "geheim", "bob": "b"})
    opened(path).begin("bob", "new")
    changed = opened(path, EncoderSettings("new secret", "the secret", iterations=2))
    assert password(changed, "alice") == "geheim"
    changed.put({"carol": "c"})
    only_new = opened(path, EncoderSettings("new secret", iterations=2))
    assert [password(only_new, user) for user in ("alice", "bob", "carol")] == ["geheim", "b", "c"]
    assert (pending := only_new.pending("bob")) is not None
    assert pending.password == "new"
    assert only_new.version("alice") == opened(path).version("alice")
    with pytest.raises(LockstepError):
        opened(path).credential("alice")


def test_an_old_secret_that_is_not_needed_is_ignored(path: Path) -> None:
    opened(path).put({"alice": "geheim"})
    assert password(opened(path, EncoderSettings("the secret", "whatever", iterations=2)), "alice") == "geheim"


def test_an_open_store_sees_what_another_process_wrote(path: Path) -> None:
    reader = opened(path)
    assert reader.version("alice") is None
    version = opened(path).put({"alice": "one"})
    assert reader.version("alice") == version
    assert opened(path).remove("alice")
    assert reader.version("alice") is None
    assert not opened(path).remove("alice")


def test_two_writers_lose_nothing_of_each_other(path: Path) -> None:
    def put(number: int) -> None:
        opened(path).put({f"user{number}": f"p{number}"})

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert {password(opened(path), f"user{number}") for number in range(8)} == {f"p{number}" for number in range(8)}


def test_one_bad_password_of_many_leaves_the_store_as_it_was(path: Path) -> None:
    opened(path).put({"alice": "geheim"})
    before = path.read_bytes()
    for bad in ({"bob": "b", "carol": ""}, {"bob": "b", "": "x"}, {"bob": "\udc80geheim"}):
        with pytest.raises(LockstepError) as caught:
            opened(path).put(bad)
        assert "geheim" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format":1}', b'{"format":1,"check":"x","users":{"alice":{"current":{}}}}']
)
def test_damaged_file_is_said_to_be_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    for attempt in (lambda: opened(path).users(), lambda: opened(path).put({"alice": "x"})):
        with pytest.raises(LockstepError, match="is damaged"):
            attempt()
    assert path.read_bytes() == content


def test_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(orjson.dumps({"format": 2}))
    with pytest.raises(LockstepError, match="newer version"):
        opened(path).put({"alice": "x"})


def test_an_interrupted_write_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path).put({"alice": "geheim"})
    before = path.read_bytes()

    def full(descriptor: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.private_files.os.fsync", full)
    with pytest.raises(LockstepError, match="No space left"):
        opened(path).put({"bob": "x"})
    assert path.read_bytes() == before
    assert {one.name for one in path.parent.iterdir()} == {"credentials", "credentials.lock"}


def test_link_is_followed_and_stays(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    opened(link).put({"alice": "geheim"})
    assert link.is_symlink()
    assert password(opened(path), "alice") == "geheim"


def test_password_under_way_is_not_in_force_before_it_is_promoted(path: Path) -> None:
    store = CredentialStore(path, SECRET, Clock())
    first = store.put({"alice": "old"})
    pending = store.begin("alice", "new")
    assert (store.version("alice"), password(store, "alice")) == (first, "old")
    assert [one.pending for one in store.users()] == [pending.version]
    store.promote("alice", pending.version)
    store.promote("alice", pending.version)
    assert (store.version("alice"), password(store, "alice")) == (pending.version, "new")
    assert store.pending("alice") is None


def test_while_a_password_is_under_way_nothing_else_replaces_it_unasked(path: Path) -> None:
    store = CredentialStore(path, SECRET, Clock())
    pending = store.begin("alice", "new")
    for attempt in (
        lambda: store.put({"alice": "x"}),
        lambda: store.begin("alice", "x"),
        lambda: store.remove("alice"),
    ):
        with pytest.raises(LockstepError, match="lockstep credentials rotate alice"):
            attempt()
    store.begin("alice", "newer", anew=True)
    with pytest.raises(LockstepError, match="changed by another command"):
        store.promote("alice", pending.version)
    assert store.remove("alice", force=True)


def test_passwords_of_the_old_format_are_read_and_encoded_again_at_the_next_change(path: Path) -> None:
    old = replace(SECRET, cipher_algorithm="AES/CBC/PKCS5Padding")
    opened(path, old).put({"alice": "geheim"})
    assert b"AES/CBC" in path.read_bytes()
    assert password(opened(path), "alice") == "geheim"
    opened(path).put({"bob": "x"})
    assert b"AES/CBC" not in path.read_bytes()
    assert [password(opened(path), user) for user in ("alice", "bob")] == ["geheim", "x"]


def test_a_password_that_was_put_under_another_users_name_is_not_read(path: Path) -> None:
    opened(path).put({"alice": "geheim", "bob": "x"})
    document = orjson.loads(path.read_bytes())
    document["users"]["bob"] = document["users"]["alice"]
    path.write_bytes(orjson.dumps(document))
    with pytest.raises(LockstepError, match="the password of bob cannot be read"):
        opened(path).credential("bob")
