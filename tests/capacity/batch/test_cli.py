"""`firsttoken capacity batch`, run as a process against a real server, and on a real database."""

import json
import signal
from pathlib import Path

import pytest

from tests.capacity.batch.batch_server import Batching
from tests.capacity.batch.test_recorded import recorded
from tests.capacity.sse_server import serve
from tests.capacity.test_cli import capacity, start

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 80, threshold: 2s}
  - {name: tpot, signal: tpot, percentile: 80, threshold: 55ms}
"""
QUICK = ("--workload", "10-30:3", "--most-requests", "20", "--least-seconds", "0", "--most-batch", "8")


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC)
    return str(path)


@pytest.mark.anyio
async def test_a_batch_is_chosen_and_the_server_is_as_before(slo: str, tmp_path: Path) -> None:
    report, page = tmp_path / "result.json", tmp_path / "result.html"
    batching = Batching(0.010, max_batch=7)
    async with serve(batching) as server:
        args = ("batch", "--target", server.url, "--slo", slo, "--batch-url", f"{server.url}/admin/batch", *QUICK)
        code, out, err = await capacity(*args, "--rate", "15", "--json", str(report), "--html", str(page))
    made = json.loads(report.read_text())
    assert code == {"chosen": 0, "none": 1}[made["verdict"]], err
    assert made["says"] in out
    assert "the server's batch is 7 again" in out
    assert batching.max_batch == 7
    assert made["says"] in page.read_text()
    held = [probe for probe in made["probes"] if probe["kind"] == "held"]
    kept = max((probe["batch"] for probe in held if probe["is_kept"]), default=None)
    assert made["feasible_max"] == kept
    assert (kept or 0) < 8, "a step of 80 ms is over 55 whatever the machine does"
    assert set(batching.turned) >= {1, 2, 7}
    assert made["settings"]["batch_before"] == 7


@pytest.mark.anyio
async def test_an_interrupted_search_leaves_its_runs_and_the_server_as_it_was(slo: str, tmp_path: Path) -> None:
    report = tmp_path / "result.json"
    batching = Batching(0.010, max_batch=7)
    async with serve(batching) as server:
        knob = ("--batch-url", f"{server.url}/admin/batch")
        process = await start(
            "batch", "--target", server.url, "--slo", slo, *knob, "--workload", "9:3", "--json", str(report)
        )
        await server.until(lambda _: 2 in batching.turned)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 130, err
    assert b"interrupted after" in out
    made = json.loads(report.read_text())
    assert (made["verdict"], made["chosen_batch"]) == ("interrupted", None)
    assert made["runs"]
    assert batching.turned[-1] == 7


@pytest.mark.anyio
async def test_a_knob_that_is_stuck_is_one_line_and_exit_2(slo: str, tmp_path: Path) -> None:
    async with serve(Batching(0.001)) as server:
        args = ("--slo", slo, "--restart", "false {batch}", "--json", str(tmp_path / "r.json"), "--quiet")
        code, _, err = await capacity("batch", "--target", server.url, *args)
    assert code == 2
    assert err == "firsttoken capacity: --restart with a batch of 1 failed with exit code 1: run it by hand\n"


def test_records_choose_a_batch_or_say_why_not(
    database: str, slo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity.cli import main

    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    windows = range(1, 31)
    gauges = [{"instance": "a", "start_s": 300 * n, "mean": float(n)} for n in windows]
    percentiles = [{"at_s": 300 * n + 300, "p90": 0.010 + 0.002 * n} for n in windows]
    recorded(database, gauges, percentiles)
    report, page = tmp_path / "result.json", tmp_path / "result.html"
    args = ["batch", "--database", database, "--slo", slo, "--hours", "1e6", "--json", str(report)]
    assert main([*args, "--html", str(page)]) == 0
    assert "a batch of 22 keeps the promise, by 30 recorded windows" in capsys.readouterr().out
    made = json.loads(report.read_text())
    assert (made["chosen_batch"], made["settings"]["objective"]) == (22, "tpot")
    assert "a batch of 22" in page.read_text()
    assert main([*args, "--model", "strange"]) == 1
    assert "the records choose no batch: only 0 windows" in capsys.readouterr().out


def test_neither_target_nor_database_is_one_line(
    slo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity.cli import main

    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    monkeypatch.delenv("FIRSTTOKEN_DATABASE", raising=False)
    assert main(["batch", "--slo", slo, "--json", str(tmp_path / "r.json")]) == 2
    assert "--target is missing: write --target http://HOST:PORT, or --database" in capsys.readouterr().err
