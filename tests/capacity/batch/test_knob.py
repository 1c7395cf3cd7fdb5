"""The knob on real sockets, and by real commands."""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from capacity.batch.knob import Restart, Route, knob
from capacity.client import target
from capacity.errors import TargetError, UnreachableError
from tests.capacity.batch.batch_server import Batching
from tests.capacity.sse_server import refusal, serve

TO = target("http://127.0.0.1:9")
SERVER = """
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": []}')
    def log_message(self, *_): pass
pathlib.Path(sys.argv[2]).open("a").write(sys.argv[1] + "\\n")
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[3])), Handler)
server.serve_forever()
"""


@pytest.mark.anyio
async def test_a_route_says_what_it_is_set_to_and_is_turned() -> None:
    batching = Batching(0.001, max_batch=6)
    async with serve(batching) as server:
        route = Route(f"{server.url}/admin/batch?of=m")
        assert await route.now() == 6
        await route.turn(9)
        assert batching.turned == [9]
        assert server.heads[0].startswith("GET /admin/batch?of=m HTTP/1.1")
        with pytest.raises(TargetError, match="answers 400 to a batch of 65: at most 64"):
            await route.turn(65)


@pytest.mark.anyio
async def test_a_route_that_does_not_say_is_none_and_one_that_is_gone_is_said() -> None:
    async with serve(lambda _body, _index: [refusal(405, b"no")]) as server:
        assert await Route(server.url).now() is None
    gone = Route("http://127.0.0.1:9/x")
    assert await gone.now() is None
    with pytest.raises(UnreachableError, match=r"--batch-url .* does not answer"):
        await gone.turn(1)


@pytest.mark.anyio
async def test_a_command_that_is_the_server_is_ended_before_the_next(tmp_path: Path, unused_port: int) -> None:
    script, told = tmp_path / "server.py", tmp_path / "told"
    script.write_text(SERVER)
    to = target(f"http://127.0.0.1:{unused_port}")
    restart = Restart(f"{sys.executable} {script} {{batch}} {told} {unused_port}", to)
    try:
        await restart.turn(4)
        first = restart._process
        assert first is not None
        await restart.turn(7)
        assert first.poll() == -signal.SIGTERM
        assert told.read_text().split() == ["4", "7"]
        assert restart._process is not None
        assert restart._process.poll() is None, "the last one is left running"
        assert os.getsid(restart._process.pid) != os.getsid(0)
    finally:
        await asyncio.to_thread(restart._end)
    assert await restart.now() is None


@pytest.mark.anyio
async def test_a_command_that_ends_is_waited_for_and_one_that_fails_is_said(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with serve(Batching(0.001)) as server:
        restart = Restart(f"sh -c 'echo {{batch}} >> {told}'", target(server.url))
        await restart.turn(3)
        assert told.read_text() == "3\n"
        with pytest.raises(TargetError, match="--restart with a batch of 3 failed with exit code 5"):
            await Restart("sh -c 'exit 5 # {batch}'", target(server.url)).turn(3)
        with pytest.raises(TargetError, match="--restart /no/such cannot be run"):
            await Restart("/no/such {batch}", target(server.url)).turn(3)


@pytest.mark.parametrize(
    ("batch_url", "restart", "says"),
    [
        ("http://h:99999/x", None, "--batch-url http://h:99999/x: Port out of range"),
        ("http://[::1/x", None, "Invalid IPv6 URL; write http://HOST:PORT/admin/batch"),
        ("http://h:0/x", None, "is no address"),
        ("http://h/é", None, "is no address"),
        ("http://h..x/b", None, "cannot be a host"),
        (None, None, "--batch-url is missing; write"),
        ("http://h/b", "x {batch}", "--batch-url and --restart are both given: use one"),
        ("h/b", None, "--batch-url h/b is no address"),
        (None, "serve --max 4", "write {batch} where the batch size belongs"),
        (None, "serve '{batch}", "cannot be read"),
    ],
)
def test_what_is_no_knob_is_said(batch_url: str | None, restart: str | None, says: str) -> None:
    with pytest.raises(TargetError, match=says.replace("{", r"\{")):
        knob(batch_url, restart, TO)


@pytest.mark.parametrize("port", ["1", "99999"])
def test_a_password_is_neither_sent_nor_said(port: str) -> None:
    with pytest.raises(TargetError, match="holds a user or password") as refused:
        knob(f"http://me:secret@h:{port}/admin/batch", None, TO)
    assert "secret" not in str(refused.value)


@pytest.mark.anyio
async def test_a_turn_that_is_cancelled_is_over_only_when_nothing_of_it_can_come_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, may_end, landed = threading.Event(), threading.Event(), list[bytes | None]()

    def slow(_url: object, _method: str, body: bytes | None) -> tuple[int, bytes]:
        began.set()
        assert may_end.wait(30)
        landed.append(body)
        return 200, b""

    monkeypatch.setattr("capacity.batch.knob.exchange", slow)
    turning = asyncio.create_task(Route("http://h/b").turn(9))
    await asyncio.to_thread(began.wait)
    for _ in range(2):
        turning.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    assert not turning.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await turning
    assert landed == [b'{"max_batch": 9}']


@pytest.mark.anyio
async def test_a_server_that_still_answers_while_it_drains_is_not_taken_for_the_next(
    tmp_path: Path, unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.batch.knob.STEADY_S", 0.2)
    script, over, told = tmp_path / "server.py", tmp_path / "over.py", tmp_path / "told"
    script.write_text(SERVER)
    over.write_text(f"import os, sys, time\ntime.sleep(1)\nos.kill(int(sys.argv[4]), 15)\ntime.sleep(1)\n{SERVER}")
    to = target(f"http://127.0.0.1:{unused_port}")
    before = Restart(f"{sys.executable} {script} {{batch}} {told} {unused_port}", to)
    try:
        await before.turn(4)
        old = before._process
        assert old is not None
        restart = Restart(f"{sys.executable} {over} {{batch}} {told} {unused_port} {old.pid}", to)
        try:
            await restart.turn(7)
            assert old.poll() == -signal.SIGTERM
            assert told.read_text().split() == ["4", "7"]
        finally:
            await asyncio.to_thread(restart._end)
    finally:
        await asyncio.to_thread(before._end)


@pytest.mark.anyio
async def test_a_server_before_that_never_ends_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.batch.knob.GONE_WITHIN_S", 0.2)
    async with serve(Batching(0.001)) as server:
        restart = Restart("sh -c 'sleep 60 # {batch}'", target(server.url))
        try:
            with pytest.raises(
                UnreachableError, match=r"--restart goes on, and .* did not stop answering within 0.2 s"
            ):
                await restart.turn(3)
        finally:
            await asyncio.to_thread(restart._end)


def test_the_flags_name_the_knob() -> None:
    assert knob("http://h/b", None, TO) == Route("http://h/b")
    assert isinstance(knob(None, "x {batch}", TO), Restart)
