"""The tether: a child does not outlive its parent, however the parent went."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsttoken import tether

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, sys.argv[1], str(os.getpid()), "sleep", "600"])
print(child.pid, flush=True)
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    """Wait for a process's end; fails when it does not come in half a minute."""
    until = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_a_killed_parent_takes_its_child_along() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, tether.__file__], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child_pid = int(parent.stdout.readline())
    until = time.monotonic() + 30
    while "sleep" not in Path(f"/proc/{child_pid}/cmdline").read_text() and time.monotonic() < until:
        time.sleep(0.02)
    assert is_running(child_pid)
    parent.kill()
    parent.communicate()
    wait_until_gone(child_pid)


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tether.__file__, *args], capture_output=True, text=True, timeout=60)


def test_the_program_takes_the_tethers_place() -> None:
    done = run(str(os.getpid()), sys.executable, "-c", "import sys; print(sys.argv[1]); sys.exit(7)", "hello")
    assert (done.returncode, done.stdout) == (7, "hello\n")


def test_a_child_whose_parent_is_already_gone_does_not_begin() -> None:
    done = run(str(os.getpid() + 1), sys.executable, "-c", "print('began')")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_program_that_is_not_there_is_named() -> None:
    done = run(str(os.getpid()), "/no/such/program")
    assert (done.returncode, done.stderr) == (127, "/no/such/program cannot be started: No such file or directory\n")


def test_signals_reach_the_program() -> None:
    child = subprocess.Popen([sys.executable, tether.__file__, str(os.getpid()), "sleep", "600"])
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60) == -signal.SIGTERM
