"""A thread that nobody waits for: its answer, its error, and an end of the process that it cannot hold up."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from sidecar.daemon_thread import on_daemon_thread
from tests.sidecar.process import engine, sidecar
from tests.sidecar.rig import completion, on_a_loop, until


@on_a_loop
async def test_what_the_thread_gives_comes_back() -> None:
    name = await on_daemon_thread(lambda word: (word, threading.current_thread().daemon), "a")
    assert name == ("a", True)


@on_a_loop
async def test_an_error_comes_back_too() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await on_daemon_thread(int, "x")


@on_a_loop
async def test_it_is_waited_for_no_longer_than_said_and_its_late_answer_is_dropped() -> None:
    gate = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        await on_daemon_thread(gate.wait, within_s=0.05)
    gate.set()
    await until(lambda: all(thread.name != "daemon read" for thread in threading.enumerate()))


def test_a_thread_that_outlives_its_loop_is_quiet() -> None:
    gate = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await on_daemon_thread(gate.wait, within_s=0.01)

    asyncio.run(give_up())
    gate.set()
    for thread in threading.enumerate():
        if thread.name == "daemon read":
            thread.join()


SPEC = "service: chat\nobjectives:\n  - {name: up, signal: availability, target: 99%}\n"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_system_that_does_not_answer_holds_up_no_request_and_no_end(workers: str, tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text(SPEC)
    with engine(completion("a")) as url, sidecar(url, "--workers", workers, cwd=tmp_path) as process:
        file.unlink()
        os.mkfifo(file)  # whoever opens it waits until somebody writes there
        process.popen.send_signal(signal.SIGHUP)
        assert process.ask()[0] == 200
        assert process.stop() == 0
