"""The command itself: how it ends, what it says, and what it costs to start."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sidecar.process import environment

ROOT = Path(__file__).parents[2]
UP = ["--upstream", "http://127.0.0.1:8000"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds a slo.yaml by chance."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *argv],
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_ends_with_2_and_one_line(elsewhere: Path) -> None:
    ended = run("--upstream", "nonsense", cwd=elsewhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("firsttoken sidecar: --upstream: nonsense is no URL")


@pytest.mark.parametrize("flag", ["--listen", "--admin"])
def test_a_port_in_use_is_named_with_its_flag(flag: str, elsewhere: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = "--admin" if flag == "--listen" else "--listen"
        ended = run(*UP, flag, address, free, "127.0.0.1:0", cwd=elsewhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"firsttoken sidecar: cannot listen on {address} ({flag}): address already in use")


def test_help_and_version(elsewhere: Path) -> None:
    assert "--upstream URL" in run("--help", cwd=elsewhere).stdout
    assert run("--version", cwd=elsewhere).stdout.startswith("firsttoken ")


def test_the_command_line_is_light() -> None:
    heavy = ("torch", "sqlalchemy", "fastapi", "uvloop", "prometheus_client", "opentelemetry", "grpc", "pydantic")
    code = f"import sidecar.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    best_s = float("inf")
    for _ in range(3):
        began_s = time.monotonic()
        ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        best_s = min(best_s, time.monotonic() - began_s)
    assert ended.stdout.strip() == "[]"
    assert best_s < 5  # 0.1 s on an idle machine


def test_the_process_loads_nothing_of_the_collectors_or_the_demos() -> None:
    heavy = ("torch", "sqlalchemy", "fastapi", "grpc", "grafanalib", "collector", "demo_server", "numpy")
    code = f"import sidecar.serving.service, sys; print([m for m in {heavy!r} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
