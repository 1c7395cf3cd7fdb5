"""`firsttoken demo` as a process: what it refuses, how it ends, and (marked `demo`) the real story of each kind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firsttoken.demo import Lines, main
from firsttoken.demo_folder import MARKER, claimed
from firsttoken.demo_view import Frame, Phase
from firsttoken.pager import Notification
from firsttoken.status_reply import Status
from tests.firsttoken.test_tether import wait_until_gone

START_TIMEOUT_S = 120
SQL = "SELECT count(*) FROM {}"
TABLES = ("percentile", "burn_rate", "budget", "gauge", "alert_event")


def command(folder: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "firsttoken", "demo", "--dir", str(folder), *flags]


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A demo that has set its stage, and the processes it has started."""
    process = subprocess.Popen(
        command(folder, *flags), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "the story takes" in line:
                break
        yield process, children(process.pid)
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    """Process ids of the direct children."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


REFUSED = {
    "a length of nothing": (["--seconds", "3"], "--seconds 3: use from 30 to 900"),
    "a length that is no number": (["--seconds", "long"], "invalid int value: 'long'"),
    "an incident that is none": (["--incident", "fire"], "invalid choice: 'fire'"),
}


@pytest.mark.parametrize(("flags", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_usage_is_exit_2_and_nothing_is_written(flags: list[str], says: str, tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path / "d", *flags), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "d").exists()


def test_somebody_elses_folder_is_exit_2_and_untouched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").write_text("x")
    assert main(["--dir", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("firsttoken demo: --dir ")
    assert len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_environment_stands_in_for_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTTOKEN_DIR", str(tmp_path))
    monkeypatch.setenv("FIRSTTOKEN_INCIDENT", "")  # an empty variable counts as not set
    monkeypatch.setenv("FIRSTTOKEN_SECONDS", "7")
    assert main([]) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed by /proc")
def test_ctrl_c_ends_the_demo_and_every_process_it_started(tmp_path: Path) -> None:
    with running(tmp_path, "--no-prometheus") as (process, pids):
        assert len(pids) >= 3
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert err == "firsttoken demo: interrupted before the story was over; every process is ended\n"
        for pid in pids:
            assert not Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties children to their parent")
def test_a_demo_that_is_killed_leaves_no_process_and_its_folder_is_free(tmp_path: Path) -> None:
    with running(tmp_path, "--no-prometheus") as (process, pids):
        assert len(pids) >= 3
        process.kill()
        process.communicate()
        for pid in pids:
            wait_until_gone(pid)
    with claimed(tmp_path):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed by /proc")
def test_a_process_that_dies_is_named_with_exit_1_and_takes_the_rest_along(tmp_path: Path) -> None:
    with running(tmp_path, "--no-prometheus") as (process, pids):
        sidecar = next(pid for pid in pids if b"sidecar" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(sidecar, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert err.startswith("firsttoken demo: sidecar ended early (signal SIGKILL): ")
        assert len(err.splitlines()) == 1
        for pid in pids:
            wait_until_gone(pid)


def test_a_line_is_said_when_a_while_has_passed_or_something_has_happened() -> None:
    said: list[str] = []
    lines = Lines(said.append)
    healthy, incident = Phase("healthy", "", 0.0, 9.0), Phase("incident", "", 3.0, 9.0)
    rang = (3.5, Notification(0.0, "page", "firing", ()))

    def frame(at_s: float, phase: Phase, *told: tuple[float, Notification]) -> Frame:
        return Frame(at_s, phase, Status(None, ()), None, None, told)

    for at_s, phase, told in ((0, healthy, ()), (1, healthy, ()), (3, incident, ()), (4, incident, (rang,))):
        lines(frame(at_s, phase, *told))
    for at_s in (5, 8.9, 9.0):
        lines(frame(at_s, incident, rang))
    heads = ["[   0 s] healthy", "[   3 s] incident", "[   4 s] incident", "[   9 s] incident"]
    assert [line.partition("  TTFT")[0].rstrip() for line in said] == heads


def tell(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *flags), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=START_TIMEOUT_S + 300
    )


def rows(database: Path, table: str) -> int:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute(SQL.format(table)).fetchone()
        assert isinstance(count, int)
        return count


@pytest.mark.demo
@pytest.mark.timeout(600)
@pytest.mark.parametrize("incident", ["slow", "hang"])
def test_the_page_fires_and_resolves(incident: str, tmp_path: Path) -> None:
    began_s = time.monotonic()
    done = tell(tmp_path, "--incident", incident, "--seconds", "30", "--no-prometheus")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^incident {incident} began at \d+ s$", done.stdout, re.MULTILINE)
    assert re.search(r"^page fired at \d+ s, \d+ s into the incident: LLM\w+BudgetBurn", done.stdout, re.MULTILINE)
    assert re.search(r"^page resolved at \d+ s, \d+ s after the incident ended$", done.stdout, re.MULTILINE)
    compared = re.findall(r"^TTFT p95, .*$", done.stdout, re.MULTILINE)
    assert len(compared) == 2
    assert all("they agree" in line for line in compared), compared
    assert time.monotonic() - began_s < 180
    assert {path.name for path in tmp_path.iterdir()} >= {
        MARKER,
        "slo.yaml",
        "firsttoken.db",
        "rules",
        "logs",
        "load.json",
    }
    for table in TABLES:
        assert rows(tmp_path / "firsttoken.db", table) > 0, table


@pytest.mark.demo
@pytest.mark.timeout(600)
def test_without_an_incident_nothing_rings_and_it_says_so(tmp_path: Path) -> None:
    done = tell(tmp_path, "--incident", "none", "--seconds", "30", "--no-prometheus")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no page, as it should be: nothing was wrong" in done.stdout
    assert "they agree" in done.stdout


@pytest.mark.demo
@pytest.mark.tools
@pytest.mark.timeout(600)
def test_with_prometheus_and_alertmanager_they_notify_and_both_verdicts_are_shown(tmp_path: Path) -> None:
    from firsttoken.prometheus import installed

    if installed() is None:
        pytest.skip("prometheus and alertmanager are not on PATH")
    done = tell(tmp_path, "--incident", "slow", "--seconds", "30")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^prometheus: http://127\.0\.0\.1:\d+/alerts$", done.stdout, re.MULTILINE)
    assert re.search(r"firing [\w,-]*ttft[\w,-]* \(Prometheus: [\w,-]*ttft", done.stdout)
