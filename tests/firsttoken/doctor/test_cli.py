"""The command: what it refuses, how it ends, and where its flags may come from."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from firsttoken.__main__ import main as firsttoken
from firsttoken.doctor.cli import main
from tests.firsttoken.doctor.front import Front, front
from tests.firsttoken.doctor.healthy import COLLECTOR_TEXT, SLO_YAML, sidecar_text, status_body

COLLECTOR = {
    "/metrics": COLLECTOR_TEXT.encode(),
    "/readyz": b"ready\n",
    "/api/v1/status": json.dumps(status_body()).encode(),
}

REFUSED = {
    "nothing to look at": ([], "nothing to look at: name it by --server, --sidecar,"),
    "no URL": (["--sidecar", "localhost:9464"], "--sidecar localhost:9464 is no URL: write http://HOST:PORT"),
    "a password": (["--prometheus", "http://me:pw@h"], "a password must not stand on a command line"),
    "a probe of nobody": (["--collector", "http://h", "--probe"], "--probe sends a request to a server: name it by"),
    "a wait that is none": (["--collector", "http://h", "--wait", "soon"], "--wait soon is not a duration"),
    "an authority that is not there": (["--sidecar", "http://h", "--tls-ca", "none"], "--tls-ca none holds no certif"),
    "a token that is not there": (
        ["--sidecar", "http://h", "--token-file", "none"],
        "--token-file none cannot be read",
    ),
    "a spec that is not there": (["--sidecar", "http://h", "--slo", "none.yaml"], "none.yaml:1:1: cannot be read"),
}


@pytest.mark.parametrize(("flags", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_usage_is_one_line_and_exit_2(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(flags)
    told = capsys.readouterr()
    assert (code, told.out, len(told.err.splitlines())) == (2, "", 1)
    assert says in told.err


def test_an_empty_token_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_text(" \n")
    assert main(["--sidecar", "http://h", "--token-file", str(tmp_path / "token")]) == 2
    assert "holds no token" in capsys.readouterr().err


def test_healthy_is_exit_0_in_a_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "slo.yaml").write_text(SLO_YAML)
    with (
        front(Front({"/metrics": sidecar_text().encode(), "/readyz": b"ready"})) as one,
        front(Front(COLLECTOR)) as other,
    ):
        code = main(["--sidecar", f"{one.url}/metrics", "--collector", other.url, "--slo", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert (code, len(lines)) == (0, 5)
    assert lines[-1].startswith("nothing wrong: ")


def test_ctrl_c_ends_it_at_once_whoever_is_still_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        command = [sys.executable, "-m", "firsttoken", "doctor", "--collector", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            asking, _ = mute.accept()
            with asking:
                process.send_signal(signal.SIGINT)
                told, _ = process.communicate(timeout=60)
    assert (process.returncode, told) == (-signal.SIGINT, b"")


def test_a_server_may_be_named_as_its_clients_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    with front(Front({})) as server:
        main(["--server", f"{server.url}/v1/", "--json"])
    assert json.loads(capsys.readouterr().out)["looked_at"][0]["url"] == server.url
    assert "/v1/models" in {path for path, _ in server.asked}


def test_something_wrong_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    with front(Front(COLLECTOR | {"/readyz": b""})) as gone:
        url = gone.url
    assert firsttoken(["doctor", "--collector", url]) == 1
    assert "error: unreachable" in capsys.readouterr().out


def test_the_environment_stands_in_for_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with front(Front(COLLECTOR)) as one, front(Front(COLLECTOR)) as other:
        hidden = other.url.replace("http://", "http://me:secret@")
        monkeypatch.setenv("FIRSTTOKEN_COLLECTOR", f"{one.url} {hidden}")
        assert main(["--json"]) == 0
        told = capsys.readouterr().out
        assert main(["--collector", one.url, "--json"]) == 0  # a flag replaces the variable
        assert other.url not in capsys.readouterr().out
    assert [place["url"] for place in json.loads(told)["looked_at"]] == [one.url, other.url]
    assert "secret" not in told
    assert {headers["Authorization"] for _, headers in other.asked} == {"Basic bWU6c2VjcmV0"}


def test_the_spec_that_lies_here_counts_where_it_is_of_what_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    slo = tmp_path / "slo.yaml"
    with front(Front(COLLECTOR)) as one:
        slo.write_text(SLO_YAML.replace("service: chat", "service: other"))
        assert main(["--collector", one.url, "--json"]) == 0
        slo.write_text(SLO_YAML.replace("500ms", "400ms"))
        assert main(["--collector", one.url, "--json"]) == 1
        assert main(["--collector", one.url, "--json", "--slo", str(slo)]) == 1
    assert capsys.readouterr().out.count('"code": "spec-differs"') == 2
