"""When files of the configuration have changed: the ways in which they do, on a real file system."""

import os
from pathlib import Path

import pytest

from slo.sight import Change, sight


def configmap(folder: Path, text: str) -> None:
    """As the kubelet writes one: a new folder, and a link that is swapped at once."""
    fresh = folder / f"..{len(list(folder.iterdir()))}"
    fresh.mkdir()
    (fresh / "slo.yaml").write_text(text)
    (folder / "..data.new").symlink_to(fresh.name)
    (folder / "..data.new").replace(folder / "..data")
    if not (folder / "slo.yaml").is_symlink():
        (folder / "slo.yaml").symlink_to("..data/slo.yaml")


def plain(folder: Path, text: str) -> None:
    (folder / "slo.yaml").write_text(text)


def replaced(folder: Path, text: str) -> None:
    """As editors do it."""
    (folder / "new").write_text(text)
    (folder / "new").replace(folder / "slo.yaml")


def in_place(folder: Path, text: str) -> None:
    """Same inode, same size; only the time of the write differs."""
    plain(folder, text)
    times = (folder / "slo.yaml").stat()
    os.utime(folder / "slo.yaml", ns=(times.st_atime_ns, times.st_mtime_ns + 1_000_000_000))


def removed(folder: Path, _: str) -> None:
    (folder / "slo.yaml").unlink()


CHANGES = {
    "a file is written over": (plain, plain, "longer text"),
    "a file is written over by one of its size": (plain, in_place, "b"),
    "a file is replaced": (plain, replaced, "b"),
    "a ConfigMap changes": (configmap, configmap, "b"),
    "a file is removed": (plain, removed, ""),
}


@pytest.mark.parametrize("of_folder", [False, True])
@pytest.mark.parametrize("case", CHANGES)
def test_it_is_seen_when(case: str, of_folder: bool, tmp_path: Path) -> None:
    before, after, text = CHANGES[case]
    before(tmp_path, "a")
    paths = [tmp_path if of_folder else tmp_path / "slo.yaml"]
    seen = sight(paths)
    assert sight(paths) == seen
    after(tmp_path, text)
    assert sight(paths) != seen


def test_a_new_file_in_a_folder_is_seen(tmp_path: Path) -> None:
    plain(tmp_path, "a")
    seen = sight([tmp_path])
    (tmp_path / "more.yaml").touch()
    assert sight([tmp_path]) != seen


def test_a_file_that_comes_later_is_seen(tmp_path: Path) -> None:
    seen = sight([tmp_path / "slo.yaml"])
    assert seen == ((str(tmp_path / "slo.yaml"), None),)
    plain(tmp_path, "a")
    assert sight([tmp_path / "slo.yaml"]) != seen


A, B, C = ((("f", (0, 0, 0, n)),) for n in range(3))
LOOKS = {
    "nothing changes": ([A, A, A], []),
    "it changes once": ([A, B, B, B], [2]),
    "it is still being written at the second look": ([B, C, C, C], [2]),
    "it changes twice": ([B, B, C, C], [1, 3]),
    "it changes back": ([B, A, A], []),
    "it changes back after it was acted on": ([B, B, A, A], [1, 3]),
    "it never comes to rest": ([B, C, B, C, B], []),
}


@pytest.mark.parametrize("case", LOOKS)
def test_a_change_counts_once_it_has_settled(case: str) -> None:
    looks, acts = LOOKS[case]
    change = Change(A)
    assert [number for number, look in enumerate(looks) if change.settled(look)] == acts


def test_every_way_to_change_a_file_shows(tmp_path: Path) -> None:
    file, folder = tmp_path / "slo.yaml", tmp_path / "specs"
    folder.mkdir()
    seen = [sight((file, folder))]

    def look() -> None:
        seen.append(sight((file, folder)))

    file.write_text("one")
    look()
    file.write_text("more")
    look()
    (tmp_path / "new").write_text("same")
    (tmp_path / "new").replace(file)
    look()
    os.utime(file, ns=(1, 1))
    look()
    (folder / "a.yaml").write_text("a")
    look()
    (tmp_path / "link").symlink_to(folder / "a.yaml")
    file.unlink()
    (tmp_path / "link").rename(file)
    look()
    assert len(set(seen)) == len(seen)
    assert sight((file, folder)) == seen[-1]


def test_a_change_is_told_once_and_only_at_rest() -> None:
    old, half, new = (("f", (1, 1, size, 1)) for size in (1, 2, 3))
    change = Change((old,))
    looks = [(old,), (half,), (new,), (new,), (new,), (old,), (old,)]
    assert [change.settled(look) for look in looks] == [False, False, False, True, False, False, True]


def test_what_came_back_to_what_was_read_is_no_change() -> None:
    old, new = (("f", (1, 1, size, 1)) for size in (1, 2))
    change = Change((old,))
    assert not any(change.settled((look,)) for look in (new, old, old, old))
