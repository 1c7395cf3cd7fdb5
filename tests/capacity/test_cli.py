"""`firsttoken capacity`, run as a process against a real server."""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.capacity.sse_server import HEAD, Step, answer, event, refusal, serve

LISTED = refusal(200, b'{"data": [{"id": "listed"}]}')


def listing(body: dict[str, object], index: int) -> list[Step]:
    """Answers `/v1/models` first, then chats."""
    return [LISTED] if not body else answer(body, index)


async def start(*args: str, **environ: str) -> asyncio.subprocess.Process:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("FIRSTTOKEN_")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "capacity",
        *args,
        env={**clean, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def capacity(*args: str, **environ: str) -> tuple[int | None, str, str]:
    process = await start(*args, **environ)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.anyio
async def test_a_load_is_run_reported_and_written(tmp_path: Path) -> None:
    report = tmp_path / "load.json"
    async with serve(answer) as server:
        flags = ("--rate", "40", "--seconds", "0.5", "--schedule", "fixed", "--model", "m", "--input", "3-5")
        code, out, err = await capacity("load", "--target", server.url, *flags, "--json", str(report))
    assert (code, err) == (0, "")
    assert "20 of 20 requests sent" in out
    written = json.loads(report.read_text())
    assert written["summary"]["outcomes"] == {"ok": 20}
    assert len(written["records"]) == 20
    assert written["summary"]["ttft"]["count"] == 20
    assert {body["model"] for body in server.requests} == {"m"}


@pytest.mark.anyio
async def test_without_a_model_the_first_that_the_target_lists_is_asked() -> None:
    async with serve(listing) as server:
        code, _, err = await capacity("load", "--target", server.url, "--rate", "20", "--seconds", "0.5", "--quiet")
    assert (code, err) == (0, "")
    assert {body["model"] for body in server.requests if body} == {"listed"}


@pytest.mark.anyio
async def test_the_environment_stands_in_for_flags_and_a_flag_wins() -> None:
    async with serve(answer) as server:
        code, _, _ = await capacity(
            "load", "--seconds", "0.2", FIRSTTOKEN_TARGET=server.url, FIRSTTOKEN_MODEL="env", FIRSTTOKEN_SECONDS="99",
            FIRSTTOKEN_RATE="50", FIRSTTOKEN_CLASS="none",
        )  # fmt: skip
    assert code == 0
    assert {body["model"] for body in server.requests} == {"env"}
    assert "x-firsttoken-class" not in server.heads[0]


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_load_with_what_it_has(number: signal.Signals, tmp_path: Path) -> None:
    report = tmp_path / "load.json"

    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [HEAD + event(content="a"), 60.0]

    async with serve(script) as server, asyncio.timeout(60):
        process = await start(
            "load", "--target", server.url, "--model", "m", "--rate", "50", "--seconds", "600", "--json", str(report)
        )
        await server.until(lambda server: len(server.requests) >= 3)
        process.send_signal(number)
        await process.communicate()
    written = json.loads(report.read_text())
    assert set(written["summary"]["outcomes"]) == {"cancelled"}
    assert len(written["records"]) >= 3


@pytest.mark.anyio
async def test_when_no_request_is_answered_well_the_check_has_failed() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [refusal(503, b"full\n\x1b[2J")]

    async with serve(script) as server:
        code, _, err = await capacity("load", "--target", server.url, "--model", "m", "--rate", "20", "--seconds", "1")
    assert code == 1
    assert err == "firsttoken capacity: no request was answered well: full\\n\\x1b[2J\n"


@pytest.mark.anyio
async def test_a_target_that_does_not_answer_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        code, _, err = await capacity("load", "--target", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert code == 2
    assert "does not answer" in err
    assert len(err.splitlines()) == 1


NOBODY = ["--target", "http://127.0.0.1:1"]
"""Nobody answers there, and nobody is asked before the flags are as they should be."""
USAGE = {
    "no target": ([], "--target is missing"),
    "a target that is none": (["--target", "here"], "write http://HOST:PORT"),
    "a rate of nothing": ([*NOBODY, "--rate", "0"], "--rate 0: must be above 0"),
    "a rate that is no number": ([*NOBODY, "--rate", "nan"], "--rate nan: must be above 0"),
    "a load without an end": ([*NOBODY, "--seconds", "inf"], "--seconds inf: must be above 0"),
    "a gap that is even and a rate that is none": ([*NOBODY, "--schedule", "fixed", "--rate", "-1"], "--rate -1: must"),
    "no room in flight": ([*NOBODY, "--max-in-flight", "0"], "--max-in-flight 0: must be at least 1"),
    "no patience": ([*NOBODY, "--timeout", "nan"], "--timeout nan: must be above 0"),
    "a prompt of nothing": (
        [*NOBODY, "--input", "0"],
        "--input 0 is no length: write N or LOW-HIGH, from 1 to 1000000",
    ),
    "an answer that shrinks": ([*NOBODY, "--output", "5-1"], "--output 5-1 is no length: write N or LOW-HIGH"),
    "a length that is none": (["--target", "http://h", "--model", "m", "--input", "x"], "--input x is no length"),
    "a weight that is none": (["--target", "http://h", "--model", "m=x"], "'x' is no weight"),
    "a report that can't be written": (
        [*NOBODY, "--json", "/no/such/folder/x"],
        "--json /no/such/folder/x cannot be written: there is no folder /no/such/folder",
    ),
}


@pytest.mark.parametrize(("args", "says"), USAGE.values(), ids=USAGE.keys())
def test_bad_input_is_one_line_and_exit_2(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from capacity.cli import main

    monkeypatch.delenv("FIRSTTOKEN_TARGET", raising=False)
    assert main(["load", *args]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
