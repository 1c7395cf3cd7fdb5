"""`firsttoken capacity certify`, run as a process against a real server."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from collector.storage.database import database_url, open_database
from tests.capacity.certify.queue_server import queue
from tests.capacity.report.test_html import assert_is_whole
from tests.capacity.sse_server import Step, serve
from tests.capacity.test_cli import capacity, start

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 80, threshold: 400ms}
  - {name: answered, signal: availability, target: 99%}
  - {name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}
"""
PLACES, WORK_S = 4, 0.01


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC)
    return str(path)


@pytest.mark.anyio
async def test_a_server_is_certified_and_the_result_repeats_without_a_load(slo: str, tmp_path: Path) -> None:
    report = tmp_path / "result.json"
    flags = (
        "--slo",
        slo,
        "--workload",
        "10-30:2",
        "--minutes",
        "0.6",
        "--most-requests",
        "100",
        "--tolerance",
        "20",
        "--max-in-flight",
        "32",
    )
    await (await open_database(database_url(str(tmp_path / "firsttoken.db")))).dispose()
    async with serve(queue(PLACES, WORK_S)) as server:
        kept = ("--database", str(tmp_path / "firsttoken.db"), "--html", str(tmp_path / "result.html"))
        args = ("certify", "--target", server.url, *flags, *kept, "--peak", "5", "--json", str(report))
        code, out, err = await capacity(*args)
        asked = len(server.requests)
        again, out_again, _ = await capacity(*args, "--resume")
        assert len(server.requests) == asked + 1  # the list of models
    made = json.loads(report.read_text())
    assert code == again == {"certified": 0, "not_certifiable": 1}[made["verdict"]], err
    assert out == out_again
    assert made["says"] in out
    assert "left out: kv: kv_occupancy is not a property of a request" in out
    assert made["settings"]["tokens"] == {"fixed": 5, "each": 2}
    assert (made["certified_rps"] or 0) <= 1.1 * PLACES / WORK_S
    assert made["heard"]["runs"]
    assert made["heard"]["alone"]["facts"]["summary"]["ttft"]["p50"] > 0
    assert_is_whole((tmp_path / "result.html").read_text())
    with closing(sqlite3.connect(tmp_path / "firsttoken.db")) as database:
        rows = database.execute("SELECT kind, service, model, target, verdict, certified_rps FROM capacity_result")
        assert set(rows) == {("certify", "chat", "m", server.url, made["verdict"], made["certified_rps"])}


@pytest.mark.anyio
async def test_an_interrupted_search_leaves_its_result_and_other_settings_do_not_resume_it(
    slo: str, tmp_path: Path
) -> None:
    report = tmp_path / "result.json"
    flags = ("--slo", slo, "--workload", "10:2", "--json", str(report))
    async with serve(queue(PLACES, 0.05)) as server:
        process = await start("certify", "--target", server.url, *flags)
        await server.until(lambda server: len(server.requests) > 8)
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        assert process.returncode == 130
        assert b"--resume goes on from there" in out
        assert json.loads(report.read_text())["verdict"] == "interrupted"
        code, _, err = await capacity("certify", "--target", server.url, *flags, "--seed", "5", "--resume")
    assert code == 2
    assert "was made with seed 0, not 5: begin anew" in err
    assert len(err.splitlines()) == 1


def unused(_body: dict[str, object], _index: int) -> list[Step]:
    raise AssertionError


USAGE = {
    "no target": ((), "--target is missing"),
    "no workload": (("--target", "http://h"), "--workload is missing: write IN:OUT tokens"),
    "a workload that is none": (("--target", "http://h", "--workload", "x:y"), "neither lengths nor a file"),
    "no time": (("--target", "http://h", "--workload", "1:1", "--minutes", "0"), "--minutes 0: must be at least 0.1"),
    "no spec": (
        ("--target", "http://h", "--workload", "1:1", "--model", "m", "--slo", "/no/such.yaml"),
        "/no/such.yaml:1:1: cannot be read",
    ),
    "a result that can't be written": (("--json", "/no/such/folder/x"), "--json /no/such/folder/x cannot be written"),
    "nothing to resume": (
        ("--target", "http://h", "--workload", "1:1", "--model", "m", "--resume"),
        "holds no result to go on with",
    ),
    "a service that is not there": (
        ("--target", "http://h", "--workload", "1:1", "--model", "m", "--service", "x"),
        "--service x: the spec describes chat; name one of them",
    ),
}


@pytest.mark.parametrize(("args", "says"), USAGE.values(), ids=USAGE.keys())
def test_bad_input_is_one_line_and_exit_2(
    args: tuple[str, ...],
    says: str,
    slo: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from capacity.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    assert main(["certify", *args]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
    assert (tmp_path / "slo.yaml").exists()


def test_a_result_that_is_there_is_not_written_over_by_default(
    slo: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from capacity.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "capacity-certify.json").write_text("{}")
    assert main(["certify", "--target", "http://h", "--workload", "1:1"]) == 2
    assert "is already there: go on with it by --resume" in capsys.readouterr().err
    assert slo
