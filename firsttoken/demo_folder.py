"""The one folder that a demo writes to: claimed with a marker file, cleaned of the demo's own files and no others."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from firsttoken.errors import FolderError

MARKER = ".firsttoken-demo"
MARKER_TEXT = "This folder belongs to `firsttoken demo`, which clears its own files here at each start.\n"
OWN_FILES = ("slo.yaml", "firsttoken.db", "firsttoken.db-wal", "firsttoken.db-shm", "load.json", "load-more.json")
OWN_FOLDERS = ("rules", "logs", "prometheus", "alertmanager")


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """The folder, absolute, empty of an earlier demo's files, and locked against a second demo.

    Raises FolderError for a folder that holds anything else, is in use by another demo or can't be written.
    """
    folder = folder.absolute()
    try:
        lock = _claim(folder)
    except FileExistsError:
        raise FolderError(f"--dir {folder} is a file: name a folder") from None
    except OSError as error:
        raise FolderError(f"--dir {folder} cannot be used: {error.strerror}") from None
    with lock:
        yield folder


def _claim(folder: Path) -> TextIO:
    """Take the folder; the open marker holds the lock for as long as it is open."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / MARKER
    if not marker.exists() and any(folder.iterdir()):
        raise FolderError(f"--dir {folder} is not empty and not a demo's folder: name an empty or a new one")
    lock = marker.open("a+")
    try:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        marker.write_text(MARKER_TEXT)
        _clear(folder)
        for name in OWN_FOLDERS:
            (folder / name).mkdir()
    except BlockingIOError:
        lock.close()
        raise FolderError(f"--dir {folder} is in use by another demo: end that one, or name another folder") from None
    except OSError:
        lock.close()
        raise
    return lock


def _clear(folder: Path) -> None:
    """Remove what a demo writes. A link is removed, never followed."""
    for name in (*OWN_FILES, *OWN_FOLDERS):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
