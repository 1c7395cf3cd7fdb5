"""Generated files, put where they belong in one move each: who reads a folder meanwhile never sees half a file."""

import tempfile
from pathlib import Path

MODE = 0o644
"""Prometheus, Alertmanager and Grafana run as users of their own and must be able to read what is generated."""


def put(path: Path, text: str) -> Path:
    """Write `text` as the file at `path`, which is then there whole or as it was before; gives `path` back.

    Makes the folder where there is none. Raises OSError, which names the place that cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        new = Path(file.name)
    try:
        new.write_text(text, encoding="utf-8")
        new.chmod(MODE)
        new.replace(path)
    except OSError as error:
        new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
    return path
