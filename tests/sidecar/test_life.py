import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.admin import AdminDoor, Answer
from sidecar.life import ListenError, OneAtATime, announce, chore, every, listen, read_again
from sidecar.settings import Address
from slo import objective
from tests.sidecar.rig import on_a_loop, until

ROOT = Path(__file__).parents[2]
SPEC = "service: chat\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}]\n"


def door() -> AdminDoor:
    return AdminDoor({b"/": lambda: Answer(200, b"")})


@on_a_loop
async def test_a_listener_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    server = await listen(door(), Address("127.0.0.1", 0), flag="--admin")
    announce("admin", server)
    port = server.sockets[0].getsockname()[1]
    assert capsys.readouterr().out == f"admin: http://127.0.0.1:{port}\n"
    server.close()


@on_a_loop
async def test_an_address_that_is_taken_is_named_with_its_flag() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = Address("127.0.0.1", held.getsockname()[1])
        with pytest.raises(ListenError, match=rf"cannot listen on {address} \(--admin\): address already in use"):
            await listen(door(), address, flag="--admin")


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nowhere.invalid"])
@on_a_loop
async def test_a_name_that_leads_nowhere_is_named_with_its_flag(host: str) -> None:
    with pytest.raises(ListenError, match=rf"cannot listen on {host}:0 \(--listen\): .*: choose another address"):
        await listen(door(), Address(host, 0), flag="--listen")


LIMITED = """
import resource, logging
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from sidecar.life import raise_file_limit
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
