"""When files of the configuration have changed: the ways in which they do, on a real file system."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.spec_watch import Change, sight, watch, watched
from tests.sidecar.rig import on_a_loop, until


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


def test_a_change_between_the_reading_and_the_first_look_is_not_missed(tmp_path: Path) -> None:
    plain(tmp_path, "a")
    files = watched([tmp_path / "slo.yaml"])
    replaced(tmp_path, "b")

    @on_a_loop
    async def run() -> None:
        acts: list[Callable[[], None]] = []
        looking = asyncio.create_task(watch(files, lambda: acts.append(run), every_s=0.01))
        await until(lambda: len(acts) == 1)
        replaced(tmp_path, "c")
        await until(lambda: len(acts) == 2)
        await asyncio.sleep(0.1)
        assert len(acts) == 2
        looking.cancel()

    run()
