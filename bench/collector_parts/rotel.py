"""The yardstick of intake: `rotel`, an OpenTelemetry collector in Rust, from PyPI, which reads and drops what it gets.

It lies in a virtual environment of its own (`.venv-rotel`, which git ignores), made when it is first asked for.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rig.arms import ROOT, Arm, await_port, environment, free_port, running

VERSION = "0.0.1a15"
PLACE = ROOT / ".venv-rotel"
INSTALL_S = 180


def agent() -> Path | None:
    """The program, installed if need be; None where it cannot be had."""
    if not _found():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([sys.executable, "-m", "venv", PLACE], check=True, capture_output=True, timeout=INSTALL_S)
            pip = [PLACE / "bin" / "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
            subprocess.run([*pip, f"rotel=={VERSION}"], check=True, capture_output=True, timeout=INSTALL_S)
    return _found()


def _found() -> Path | None:
    return next(PLACE.glob("lib/*/site-packages/rotel/rotel-agent"), None)


@contextlib.contextmanager
def running_agent() -> Iterator[Arm]:
    """It listens by HTTP on a free port until the block ends."""
    program, http, grpc = agent(), free_port(), free_port()
    assert program is not None
    places = [f"--otlp-http-endpoint=127.0.0.1:{http}", f"--otlp-grpc-endpoint=127.0.0.1:{grpc}"]
    kept = {name: value for name, value in environment().items() if not name.startswith("ROTEL_")}
    with running([str(program), "start", "--exporter=blackhole", *places], env=kept) as process:
        await_port(process, http, "rotel")
        yield Arm("rotel", http, process.pid)
