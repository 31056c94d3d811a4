"""Files that commands leave behind: whole, never through a link, and for their owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.private_files import replace_file


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "report.md", b"text")
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o600


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / "report.md"
    theirs.write_text("theirs")
    link.symlink_to(theirs)
    replace_file(link, b"ours")
    assert (theirs.read_text(), link.read_text(), link.is_symlink()) == ("theirs", "ours", False)


def test_what_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "report.md", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
