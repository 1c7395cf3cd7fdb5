"""Files that are there whole or as they were."""

import errno
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slo.output import put, unlisted


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_for_everybody_to_read_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "rules.yaml"
    assert put(path, "größe\n") == path
    assert path.read_text(encoding="utf-8") == "größe\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert names(path.parent) == ["rules.yaml"]


def test_who_reads_while_it_is_replaced_sees_the_old_or_the_new_and_never_half(tmp_path: Path) -> None:
    path, texts, seen = tmp_path / "rules.yaml", ("a" * 200_000, "b" * 200_000), set()
    put(path, texts[0])
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(path.read_text(encoding="utf-8"))

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(100):
        put(path, texts[turn % 2])
    done.set()
    reader.join()
    assert seen <= set(texts)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The kernel refuses longer files to this process: as a full disk would, in the middle of a write."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    put(path, "old")
    with files_of_at_most(1000), pytest.raises(OSError, match="File too large") as raised:
        put(path, "x" * 5000)
    assert raised.value.errno == errno.EFBIG
    assert raised.value.filename == str(path)
    assert (names(tmp_path), path.read_text()) == (["rules.yaml"], "old")


def test_what_stands_in_the_way_is_named_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.mkdir()
    with pytest.raises(IsADirectoryError, match=r"rules\.yaml"):
        put(path, "x")
    assert names(tmp_path) == ["rules.yaml"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    put(tmp_path / "real.yaml", "old")
    link = tmp_path / "link.yaml"
    link.symlink_to("real.yaml")
    assert put(link, "new") == link
    assert (link.is_symlink(), (tmp_path / "real.yaml").read_text()) == (True, "new")
    assert names(tmp_path) == ["link.yaml", "real.yaml"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    put(pipe, "rules")
    reader.join()
    assert heard == ["rules"]
    assert (pipe.is_fifo(), names(tmp_path)) == (True, ["pipe"])


def test_a_device_that_is_full_is_named_and_stays_a_device(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # by a link, so that nothing can happen to the device of this machine
    with pytest.raises(OSError, match="No space left") as raised:
        put(full, "rules")
    assert raised.value.filename == str(full)
    assert full.is_char_device()


def test_a_folder_that_takes_no_files_is_named_by_the_file_that_was_wanted() -> None:
    with pytest.raises(OSError, match=r"'/proc/rules\.yaml'"):
        put(Path("/proc/rules.yaml"), "x")


def test_a_folder_that_holds_nothing_is_told_from_what_cannot_be_looked_into(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (file := tmp_path / "file").touch()
    found = [unlisted(path) for path in (tmp_path / "empty", file, tmp_path / "none")]
    assert found == ["", "Not a directory", "No such file or directory"]
