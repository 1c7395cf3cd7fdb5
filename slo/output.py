"""Generated files, put where they belong in one move each: who reads a folder meanwhile never sees half a file."""

import os
import tempfile
from pathlib import Path

from slo.words import reason

MODE = 0o644
"""Prometheus, Alertmanager and Grafana run as users of their own and must be able to read what is generated."""


def put(path: Path, content: str | bytes) -> Path:
    """Write `content` as the file at `path`, which is then there whole or as it was before; gives `path` back.

    Makes the folder where there is none. A link stays and what it leads to is written; a pipe or a device, as
    `/dev/stdout`, is written to and never replaced by a file. Raises OSError, which names the place that cannot be
    written to.
    """
    real = Path(os.path.realpath(path))
    written = content.encode() if isinstance(content, str) else content
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        if is_stream(path):
            path.write_bytes(written)
        else:
            _replace(real, written)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return path


def is_stream(path: Path) -> bool:
    """Whether there is something that takes bytes and keeps no file: a pipe, a terminal, a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def unwritable(path: Path, error: OSError) -> str:
    """What to say of a file that could not be put into the folder of `--out`."""
    return f"{path}: {error.strerror}: give --out a folder that can be written to"


def unlisted(folder: Path) -> str:
    """Why a folder in which nothing was found cannot be looked into, as one that is none; '' where it can."""
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        return reason(error)
    return ""


def _replace(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        new = Path(file.name)
    try:
        new.write_bytes(content)
        new.chmod(MODE)
        new.replace(path)
    except OSError:
        new.unlink()
        raise
