import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.serving.lifecycle import Ending, OneAtATime, chore, every, on_hangup, read_again, tell_loop_faults
from slo import objective
from tests.sidecar.rig import on_a_loop, until

ROOT = Path(__file__).parents[3]
SPEC = "service: chat\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}]\n"


LIMITED = """
import resource, logging
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from sidecar.serving.lifecycle import raise_file_limit
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("soft", "hard", "told"), [(100, 200, True), (64, 5000, False), (4500, 4500, False)])
def test_the_process_may_open_as_many_files_as_the_system_lets_it(soft: int, hard: int, told: bool) -> None:
    code = LIMITED.format(soft=soft, hard=hard)
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == f"{hard}\n"
    assert ("200 files may be open here" in run.stderr) == told


@on_a_loop
async def test_a_chore_is_done_again_and_again_whatever_happens_in_it() -> None:
    done, faults = list[int](), list[Exception]()
    enough = asyncio.Event()

    def act() -> None:
        done.append(len(done))
        if len(done) == 2:
            raise ValueError
        if len(done) == 4:
            enough.set()

    def look(act_: object) -> None:
        try:
            act_()  # type: ignore[operator]
        except ValueError as error:
            faults.append(error)

    chore = asyncio.create_task(every(0.001, act, look=look))
    await enough.wait()
    chore.cancel()
    assert len(faults) == 1


@on_a_loop
async def test_a_chore_that_ends_by_a_fault_does_not_end_unsaid() -> None:
    faults = list[BaseException]()

    def look(act: Callable[[BaseException], None], error: BaseException) -> None:
        with pytest.raises(ZeroDivisionError):
            act(error)
        faults.append(error)

    async def broken() -> None:
        raise ZeroDivisionError

    task, lasting = chore(broken(), look=look), chore(asyncio.sleep(1000), look=look)
    await asyncio.wait([task])
    lasting.cancel()
    await asyncio.wait([lasting])
    assert len(faults) == 1


@on_a_loop
async def test_of_many_wishes_the_last_is_the_last_done() -> None:
    """Two reloads at once could end in the wrong order, and leave the older spec in force."""
    wishes, began, ended = list[int](), list[int](), list[int]()
    gate = asyncio.Event()

    async def act() -> None:
        mine = len(wishes)
        began.append(mine)
        await gate.wait()
        ended.append(mine)

    again = OneAtATime(act)
    for number in range(5):
        wishes.append(number)
        again()
        await asyncio.sleep(0)
    assert began == [1]
    gate.set()
    await until(lambda: ended == [1, 5])
    again()
    await until(lambda: ended == [1, 5, 5])


def test_a_fault_in_reading_is_no_spec(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: object) -> None:
        raise ZeroDivisionError("what was read")

    monkeypatch.setattr(objective, "load", load)

    @on_a_loop
    async def run() -> None:
        assert await read_again([Path("slo.yaml")], "chat") is None

    run()
    assert "ZeroDivisionError" in caplog.text
    assert "what was read" not in caplog.text


def test_a_spec_that_does_not_come_is_none_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.limits.READ_S", 0.05)
    file = tmp_path / "slo.yaml"
    os.mkfifo(file)

    @on_a_loop
    async def run() -> None:
        assert await read_again([file], "chat") is None

    run()
    assert "cannot be read: no answer within 0.05 s" in caplog.text
    file.write_text(SPEC)  # lets the thread go


@on_a_loop
async def test_a_spec_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text(SPEC)
    spec = await read_again([file], "chat")
    assert spec is not None
    assert spec.objectives[0].name == "ttft"


@pytest.mark.parametrize(("text", "words"), [("service: chat\n", "objectives"), (SPEC, "no spec of service code")])
def test_a_bad_spec_is_none_and_said(text: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text(text)

    @on_a_loop
    async def run() -> None:
        assert await read_again([file], "chat" if text != SPEC else "code") is None

    with caplog.at_level(logging.ERROR):
        run()
    assert words in caplog.text


@on_a_loop
async def test_the_end_is_asked_for_once_and_hurried_after() -> None:
    hurried = list[int]()
    ending = Ending(hurry=lambda: hurried.append(1))
    waiting = asyncio.create_task(ending.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    os.kill(os.getpid(), signal.SIGTERM)
    await waiting
    assert not hurried
    os.kill(os.getpid(), signal.SIGINT)
    await until(lambda: hurried == [1])


@on_a_loop
async def test_only_the_signals_named_ask_for_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    ending = Ending(numbers=(signal.SIGTERM,))
    assert signal.getsignal(signal.SIGINT) is before
    ending.ask()
    ending.ask()
    await ending.wait()


@on_a_loop
async def test_a_hangup_is_a_wish_and_so_is_a_call() -> None:
    done = list[int]()

    async def act() -> None:
        done.append(1)

    again = on_hangup(act)
    os.kill(os.getpid(), signal.SIGHUP)
    await until(lambda: len(done) == 1)
    again()
    await until(lambda: len(done) == 2)


def test_a_fault_within_the_loop_is_told_in_one_line_once_and_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(prompt: bytes) -> None:
        raise ValueError(prompt)

    @on_a_loop
    async def run() -> None:
        tell_loop_faults()
        for _ in range(3):
            asyncio.get_running_loop().call_soon(fail, b"a prompt")
        asyncio.get_running_loop().call_exception_handler({"message": "a task was destroyed"})
        await asyncio.sleep(0.01)

    run()
    (other, fault) = [record.getMessage() for record in caplog.records]
    assert fault.startswith("event loop: ValueError at ")
    assert "fail" in fault
    assert other == "event loop: a task was destroyed"
    assert "prompt" not in caplog.text
