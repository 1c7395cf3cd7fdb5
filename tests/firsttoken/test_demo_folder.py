"""The demo's folder: whose it is, what is cleared in it, and what never is."""

import os
from pathlib import Path

import pytest

from firsttoken.demo_folder import MARKER, OWN_FILES, OWN_FOLDERS, claimed
from firsttoken.errors import FolderError


def test_a_new_folder_is_made_with_a_marker_and_rooms(tmp_path: Path) -> None:
    with claimed(tmp_path / "a" / "demo") as folder:
        assert folder.is_absolute()
        assert {path.name for path in folder.iterdir()} == {MARKER, *OWN_FOLDERS}


def test_a_second_start_clears_the_demos_own_files_and_no_others(tmp_path: Path) -> None:
    with claimed(tmp_path) as folder:
        for name in OWN_FILES:
            (folder / name).write_text("old")
        (folder / "rules" / "old.yml").write_text("old")
        (folder / "my-notes.txt").write_text("mine")
        (folder / "mine").mkdir()
    with claimed(tmp_path) as folder:
        assert {path.name for path in folder.iterdir()} == {MARKER, "my-notes.txt", "mine", *OWN_FOLDERS}
        assert not any((folder / "rules").iterdir())


def test_a_link_in_the_place_of_an_own_folder_is_removed_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    demo = tmp_path / "demo"
    with claimed(demo) as folder:
        (folder / "rules").rmdir()
        (folder / "rules").symlink_to(elsewhere)
        (folder / "slo.yaml").symlink_to(elsewhere / "precious")
    with claimed(demo) as folder:
        assert not (folder / "rules").is_symlink()
    assert (elsewhere / "precious").read_text() == "x"


def test_a_folder_with_somebody_elses_files_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text("mine")
    with pytest.raises(FolderError, match="not empty and not a demo's folder"), claimed(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["slo.yaml"]


def test_a_folder_in_use_is_refused_and_left_to_its_demo(tmp_path: Path) -> None:
    with claimed(tmp_path) as folder:
        (folder / "slo.yaml").write_text("running")
        with pytest.raises(FolderError, match="in use by another demo"), claimed(tmp_path):
            pass
        assert (folder / "slo.yaml").read_text() == "running"
    with claimed(tmp_path):
        pass


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(FolderError, match="is a file"), claimed(tmp_path / "x"):
        pass


@pytest.mark.parametrize("name", ["x/y", "n" * 300])
def test_a_folder_that_cant_be_made_says_why(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("")
    said = r"cannot be used: (Not a directory|File name too long)"
    with pytest.raises(FolderError, match=said), claimed(tmp_path / name):
        pass


def test_a_fault_inside_is_not_taken_for_one_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError), claimed(tmp_path):
        os.mkdir(tmp_path)  # noqa: PTH102
