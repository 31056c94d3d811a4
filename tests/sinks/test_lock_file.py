"""One process at a time holds a lock file, whose content nobody touches."""

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
    with locked(lock), pytest.raises(BlockingIOError), locked(lock, wait=False):
        pass
    with locked(lock, mode=0o600, wait=False):
        assert lock.exists()
