"""`firsttoken status` against a real socket; what its exit code says."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from firsttoken.status import STATUS_PATH, ask, main
from firsttoken.status_table import WORDS
from tests.collector.support import collector
from tests.firsttoken.json_server import serve
from tests.firsttoken.status_sample import objective, status
from tests.sidecar.certificates import AUTHORITY, certificate, key


def answers(*objectives: dict[str, Any]) -> dict[str, tuple[int, str]]:
    return {STATUS_PATH: (200, json.dumps(status(*objectives)))}


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("no_data", 0), ("burning", 1), ("exhausted", 1)])
def test_the_exit_code_says_whether_anything_burns(state: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answers(objective(state=state))) as (url, _):
        assert main([url]) == code
    assert WORDS[state] in capsys.readouterr().out


def test_the_url_may_hold_the_path_or_a_slash() -> None:
    with serve(answers(objective())) as (url, _):
        assert ask(url) == ask(f"{url}/") == ask(url + STATUS_PATH)


def test_the_environment_may_name_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answers(objective())) as (url, _):
        monkeypatch.setenv("FIRSTTOKEN_URL", url)
        monkeypatch.setenv("FIRSTTOKEN_INTERVAL", "")  # an empty variable counts as not set
        monkeypatch.setenv("FIRSTTOKEN_SERVICE", "")
        assert main([]) == 0


NO_COLLECTOR = {"not found": (404, "no"), "another service": (200, "{}"), "a web page": (200, "<html>")}


@pytest.mark.parametrize("answer", NO_COLLECTOR.values(), ids=NO_COLLECTOR.keys())
def test_no_collector_is_one_line_and_exit_2(answer: tuple[int, str], capsys: pytest.CaptureFixture[str]) -> None:
    with serve({STATUS_PATH: answer}) as (url, _):
        assert main([url]) == 2
    err = capsys.readouterr().err
    assert err.startswith("firsttoken status: ")
    assert len(err.splitlines()) == 1


def test_filters_are_asked_of_the_collector() -> None:
    with serve({f"{STATUS_PATH}?service=a+b&model=m%2F1": (200, json.dumps(status(objective())))}) as (url, _):
        assert main([url, "--service", "a b", "--model", "m/1"]) == 0
        assert main([url, "--service", "another"]) == 2


def test_a_filter_that_meets_nothing_is_no_kept_promise(capsys: pytest.CaptureFixture[str]) -> None:
    with serve({f"{STATUS_PATH}?objective=ttfd": (200, json.dumps(status()))}) as (url, _):
        assert main([url, "--objective", "ttfd"]) == 2
    assert "--objective ttfd" in capsys.readouterr().err


def test_a_protected_collector_is_asked_with_its_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.write_text("secret-words\n")
    with collector(tmp_path, "--tick", "1s", "--token-file", str(token)) as running:
        assert main([running.url]) == 2
        assert "answers 401: this collector asks for its token" in capsys.readouterr().err
        assert main([running.url, "--token-file", str(token)]) == 0


def test_a_collector_behind_tls_is_asked_with_our_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ("--tls-cert", certificate("server"), "--tls-key", key("server"), "--tls-client-ca", AUTHORITY)
    with collector(tmp_path, "--tick", "1s", *shown) as running:
        assert main([running.url]) == 2
        assert "certificate" in capsys.readouterr().err
        ours = ("--tls-ca", AUTHORITY, "--tls-cert", certificate("client"), "--tls-key", key("client"))
        assert main([running.url, *ours]) == 0


def test_a_token_file_that_holds_none_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_text("\n")
    for name, says in (("none", "cannot be read"), ("empty", "holds no token")):
        assert main(["--token-file", str(tmp_path / name)]) == 2
        assert says in capsys.readouterr().err


def test_an_interval_that_is_none_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--watch", "--interval", "2"], ["--interval", "2"]):
        assert main(words) == 2
        assert "--interval 2 is not a duration" in capsys.readouterr().err


class Asked(dict[str, tuple[int, str]]):
    """Answers that are counted as they are asked for, and may fail for a while."""

    times = 0
    away = False

    def get(self, key: str, default: Any = None) -> Any:
        self.times += 1
        return (503, "starting") if self.away else super().get(key, default)

    def wait_for(self, more: int) -> None:
        """Until it was asked so much more."""
        wanted, until = self.times + more, time.monotonic() + 60
        while self.times < wanted and time.monotonic() < until:
            time.sleep(0.02)


def test_watch_goes_on_through_a_restart_and_ends_with_what_it_found_last() -> None:
    asked = Asked(answers(objective(state="ok")))
    with serve(asked) as (url, _):
        process = subprocess.Popen(
            [sys.executable, "-m", "firsttoken", "status", "--watch", "--interval", "100ms", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            asked.wait_for(2)
            asked.away = True
            asked.wait_for(3)
            asked.update(answers(objective(state="burning")))
            asked.away = False
            asked.wait_for(3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (1, "")
    assert "burning" in out


def test_what_is_no_url_is_told_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["127.0.0.1:4318"]) == 2
    assert capsys.readouterr().err == "firsttoken status: 127.0.0.1:4318 is no URL: write http://HOST:PORT\n"


def test_watch_does_not_wait_for_a_collector_that_never_answered(capsys: pytest.CaptureFixture[str]) -> None:
    with serve({}) as (url, _):
        assert main(["--watch", url]) == 2
    assert "answers 404" in capsys.readouterr().err
