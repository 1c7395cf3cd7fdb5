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
TWO = """
service: chat
objectives:
  - {name: usual, signal: tpot, percentile: 50, threshold: 20ms}
  - {name: rare, signal: tpot, percentile: 99, threshold: 25ms}
  - {name: other, signal: tpot, percentile: 99, threshold: 5ms, match: {model: "llama-[ab]*"}}
"""
QUICK = ("--workload", "10-30:3", "--most-requests", "20", "--least-seconds", "0", "--most-batch", "8")


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC)
    return str(path)


@pytest.fixture
def slo_of_steps(tmp_path: Path) -> str:
    path = tmp_path / "steps.yaml"
    path.write_text("\n".join(line for line in SPEC.splitlines() if "ttft" not in line))
    return str(path)


@pytest.mark.anyio
async def test_a_batch_is_chosen_and_the_server_is_as_before(slo: str, tmp_path: Path) -> None:
    report, page = tmp_path / "result.json", tmp_path / "result.html"
    batching = Batching(0.010, max_batch=7)
    async with serve(batching) as server:
        args = ("batch", "--target", server.url, "--slo", slo, "--batch-url", f"{server.url}/admin/batch", *QUICK)
        code, out, err = await capacity(*args, "--rate", "10", "--json", str(report), "--html", str(page))
    made = json.loads(report.read_text())
    assert (code, made["verdict"]) == (0, "chosen"), (out, err)
    assert made["says"] in out
    assert "the server's batch is 7 again" in out
    assert batching.max_batch == 7
    assert made["says"] in page.read_text()
    held = [probe for probe in made["probes"] if probe["kind"] == "held"]
    kept = max(probe["batch"] for probe in held if probe["is_kept"])
    assert made["feasible_max"] == kept
    assert made["chosen_batch"] in range(1, 8)
    assert kept < 8, "a step of 80 ms is over 55 whatever the machine does"
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
    assert "a batch of 22 keeps tpot, by 30 recorded windows" in capsys.readouterr().out
    made = json.loads(report.read_text())
    assert (made["chosen_batch"], made["settings"]["objective"]) == (22, "tpot")
    assert "a batch of 22" in page.read_text()
    assert main([*args, "--model", "strange"]) == 1
    assert "the records choose no batch for tpot: only 0 windows" in capsys.readouterr().out


@pytest.mark.anyio
async def test_a_server_that_is_not_put_back_costs_no_result(slo_of_steps: str, tmp_path: Path) -> None:
    report, page = tmp_path / "result.json", tmp_path / "result.html"
    batching = Batching(0.010, max_batch=70)  # what it is set to, it does not take
    async with serve(batching) as server:
        args = (
            "batch",
            "--target",
            server.url,
            "--slo",
            slo_of_steps,
            "--batch-url",
            f"{server.url}/admin/batch",
            *QUICK,
        )
        few = ("--most-batch", "2", "--json", str(report), "--html", str(page))
        code, out, err = await capacity(*args, *few)
    made = json.loads(report.read_text())
    assert (code, made["verdict"]) == (2, "chosen"), err
    assert made["says"] in out
    assert made["says"] in page.read_text()
    last = err.splitlines()[-1]
    assert last.startswith(f"firsttoken capacity: the result is in {report}, but the server's batch is not put back: ")
    assert "answers 400 to a batch of 70" in last
    assert "again" not in out


@pytest.mark.anyio
async def test_a_full_disk_is_one_line_and_the_server_is_as_before(slo: str) -> None:
    batching = Batching(0.001, max_batch=7)
    async with serve(batching) as server:
        args = ("batch", "--target", server.url, "--slo", slo, "--batch-url", f"{server.url}/admin/batch", *QUICK)
        code, _, err = await capacity(*args, "--json", "/dev/full", "--quiet")
    assert (code, err) == (
        2,
        "firsttoken capacity: --json /dev/full cannot be written: No space left on device\n",
    )
    assert batching.max_batch == 7


def test_records_are_judged_by_every_promise_and_names_stand_as_they_are(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity.cli import main

    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    windows = range(1, 31)
    gauges = [{"instance": "a", "start_s": 300 * n, "mean": float(n)} for n in windows]
    # The median stays under 20 ms up to 20 at once, p99 under 25 ms only up to 10.
    percentiles = [
        {"at_s": 300 * n + 300, "p50": 0.010 + 0.0005 * n - 1e-6, "p99": 0.005 + 0.002 * n - 1e-6} for n in windows
    ]
    recorded(database, gauges, percentiles)
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    args = ["batch", "--database", database, "--slo", str(path), "--hours", "1e6", "--json", str(tmp_path / "r.json")]
    assert main(args) == 0
    out = capsys.readouterr().out
    assert "a batch of 10 keeps usual and rare, by 30 recorded windows" in out
    assert "left out: other: speaks of model llama-[ab]*" in out
    made = json.loads((tmp_path / "r.json").read_text())
    assert (made["binding"], made["judged"], made["settings"]["objective"]) == ("rare", ["usual", "rare"], "rare")
    for knob in (("--restart", "serve {batch}"), ("--batch-url", "http://127.0.0.1:1/b")):
        assert main([*args, *knob]) == 2
        assert "--target is missing" in capsys.readouterr().err
    assert main([*args, "--hours", "nan"]) == 2
    assert "--hours nan: must be above 0" in capsys.readouterr().err


def test_neither_target_nor_database_is_one_line(
    slo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity.cli import main

    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    monkeypatch.delenv("FIRSTTOKEN_DATABASE", raising=False)
    assert main(["batch", "--slo", slo, "--json", str(tmp_path / "r.json")]) == 2
    assert "--target is missing: write --target http://HOST:PORT, or --database" in capsys.readouterr().err
