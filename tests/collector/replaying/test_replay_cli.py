"""`firsttoken slo replay` as people call it: over a running collector's database, and what it says of bad usage."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.errors import UsageError
from collector.replaying.replay_cli import main, moment_s
from tests.collector import exports
from tests.collector.support import SPEC, collector, send


def test_it_replays_beside_a_running_collector_and_says_what_was(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        at_s = int(time.time()) - 5
        for second in range(5):
            assert send(running.url, exports.second(good=50, bad=50, at_s=at_s + second)).status == 200
        (tmp_path / "tighter.yaml").write_text(SPEC.replace("95", "99").replace("500ms", "50ms"))
        command = [sys.executable, "-m", "firsttoken", "slo", "replay", "--database", str(tmp_path / "firsttoken.db")]
        same, tighter = (
            subprocess.run([*command, str(tmp_path / name), "--json"], capture_output=True, text=True, timeout=60)
            for name in ("slo.yaml", "tighter.yaml")
        )
        assert (same.returncode, same.stderr) == (0, "")
        whole = json.loads(same.stdout)["services"][0]["objectives"][0]
        assert (whole["model"], whole["basis"], whole["good"], whole["bad"]) == ("*", "counts", 250, 250)
        other = json.loads(tighter.stdout)["services"][0]["objectives"][0]
        assert (other["basis"], other["good"], other["bad"]) == ("histogram", 0, 500)
        assert running.stop() == 0


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_bad_usage_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, missing = tmp_path / "slo.yaml", tmp_path / "none.db"
    spec.write_text(SPEC)
    assert "cannot be read: unable to open database file: is it the collector's?" in told(
        capsys, str(spec), "--database", str(missing)
    )
    assert not missing.exists()
    assert "cannot be read" in told(capsys, str(tmp_path / "none.yaml"), "--database", str(missing))
    assert "no database" in told(capsys, str(spec), "--database", "mysql://h/d")
    assert "password" in told(capsys, str(spec), "--database", "postgresql://me:secret@127.0.0.1/d")
    missing.write_bytes(b"")
    assert "no table slo_count" in told(capsys, str(spec), "--database", str(missing))


@pytest.mark.parametrize(
    ("text", "moment"), [("1700000000", 1700000000), ("2h", 92_800), ("1970-01-02T00:00:00+00:00", 86400)]
)
def test_moments(text: str, moment: int) -> None:
    assert moment_s("--from", text, now_s=100_000) == moment


@pytest.mark.parametrize("text", ["yesterday", "2026-11-30T08:00:00", "5x"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match=r"--from .* as 7d"):
        moment_s("--from", text, now_s=0)


def test_help_tells_no_password_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRSTTOKEN_DATABASE", "postgresql://me:secret@127.0.0.1/d")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "secret" not in capsys.readouterr().out
