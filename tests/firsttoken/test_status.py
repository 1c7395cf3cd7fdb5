"""`firsttoken status` against a real socket; what its exit code says."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from firsttoken.status import STATUS_PATH, ask, main
from tests.firsttoken.json_server import serve
from tests.firsttoken.status_sample import objective, status


def answers(*objectives: dict[str, Any]) -> dict[str, tuple[int, str]]:
    return {STATUS_PATH: (200, json.dumps(status(*objectives)))}


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("no_data", 0), ("burning", 1), ("exhausted", 1)])
def test_the_exit_code_says_whether_anything_burns(state: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answers(objective(state=state))) as (url, _):
        assert main([url]) == code
    assert state.replace("_", " ") in capsys.readouterr().out


def test_the_url_may_hold_the_path_or_a_slash() -> None:
    with serve(answers(objective())) as (url, _):
        assert ask(url) == ask(f"{url}/") == ask(url + STATUS_PATH)


def test_the_environment_may_name_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answers(objective())) as (url, _):
        monkeypatch.setenv("FIRSTTOKEN_URL", url)
        assert main([]) == 0


NO_COLLECTOR = {"not found": (404, "no"), "another service": (200, "{}"), "a web page": (200, "<html>")}


@pytest.mark.parametrize("answer", NO_COLLECTOR.values(), ids=NO_COLLECTOR.keys())
def test_no_collector_is_one_line_and_exit_2(answer: tuple[int, str], capsys: pytest.CaptureFixture[str]) -> None:
    with serve({STATUS_PATH: answer}) as (url, _):
        assert main([url]) == 2
    err = capsys.readouterr().err
    assert err.startswith("firsttoken status: ")
    assert len(err.splitlines()) == 1


def test_an_interval_that_is_none_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--watch", "--interval", "2"], ["--interval", "2"]):
        assert main(words) == 2
        assert "--interval 2 is not a duration" in capsys.readouterr().err


def test_watch_shows_until_ctrl_c_and_ends_with_what_it_found_last() -> None:
    class Counted(dict[str, tuple[int, str]]):
        """Answers that are counted as they are asked for."""

        asked = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.asked += 1
            return super().get(key, default)

    counted = Counted(answers(objective(state="burning")))
    with serve(counted) as (url, _):
        process = subprocess.Popen(
            [sys.executable, "-m", "firsttoken", "status", "--watch", "--interval", "100ms", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while counted.asked < 3 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "")
    assert "burning" in out
