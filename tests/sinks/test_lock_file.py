"""One process at a time holds a lock file, whose content stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sinks.lock_file import locked


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_a_lock_is_not_followed_and_its_target_stays_as_it_was(tmp_path: Path, there: bool) -> None:
    target, lock = tmp_path / "target", tmp_path / "lock"
    if there:
        target.write_text("kept")
    lock.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"), locked(lock):
        pass
    assert (target.read_text() if target.exists() else None) == ("kept" if there else None)


def test_what_a_lock_file_holds_is_kept(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("kept")
    with locked(tmp_path / "lock"):
        pass
    assert (tmp_path / "lock").read_text() == "kept"


def test_who_does_not_wait_is_told_that_another_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock), pytest.raises(BlockingIOError), locked(lock, within=0):
        pass
    with locked(lock, within=0):
        assert lock.exists()


def test_a_lock_that_another_holds_for_ever_is_not_waited_for_so_long(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        locked(lock),
        pytest.raises(BlockingIOError, match=r"another process has held it for 0\.2 s"),
        locked(lock, within=0.2),
    ):
        pass


@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_nobody_but_its_owner_can_open_and_so_hold_it(tmp_path: Path, before: int | None) -> None:
    lock = tmp_path / "lock"
    if before is not None:
        lock.touch()
        lock.chmod(before)
    with locked(lock):
        assert lock.stat().st_mode & 0o777 == 0o600
