"""Files that commands leave behind: whole, never through a link, and for their owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.private_files import make_new_folder, replace_file
from streaming.errors import WrongUsage


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


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}"])
def test_a_new_folder_and_an_empty_one_are_for_their_owner_alone(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "outer" / "records"
    for _ in range(2):
        make_new_folder(form.format(folder), "--export")
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}"])
def test_a_folder_is_not_made_through_a_link_nor_where_anything_is(tmp_path: Path, form: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("theirs")
    for name in ("link", "dangling"):
        with pytest.raises(WrongUsage, match="symbolic link"):
            make_new_folder(form.format(tmp_path / name), "--export")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(WrongUsage, match="not an empty folder"):
            make_new_folder(form.format(path), "--export")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file", "link", "theirs"]


def test_a_folder_that_cannot_be_made_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("theirs")
    with pytest.raises(WrongUsage, match=r"--export .*: Not a directory"):
        make_new_folder(str(tmp_path / "file" / "records"), "--export")


def test_a_folder_of_another_file_system_is_left_to_who_writes_there() -> None:
    make_new_folder("hdfs://namenode/records", "--export")
