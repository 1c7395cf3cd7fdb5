"""One request through an app, message by message: a server of the test's own, so that every order can be had."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sidecar.http.http_head import RequestHead
from sidecar.within.asgi import App, Message, Receive, Scope, Send
from sidecar.within.asgi_relay import MOST, RUN, AsgiRelay
from slo.signals import TELEMETRY_FAULTS
from tests.sidecar.hosting import event, head, on_asyncio, piece
from tests.sidecar.rig import CHAT, Rig, proxied, until

BODY = b'{"model":"m","stream":true,"messages":[]}'
HELD: tuple[Message, ...] = ({"type": "http.request", "body": BODY, "more_body": False},)
GONE: Message = {"type": "http.disconnect"}


@dataclass
class Server:
    """Hands out the messages it was given, then waits; keeps what it is sent."""

    inbox: "asyncio.Queue[Message]" = field(default_factory=asyncio.Queue)
    sent: list[Message] = field(default_factory=list)
    refuses: Exception | None = None

    async def receive(self) -> Message:
        return await self.inbox.get()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and self.refuses is not None:
            raise self.refuses
        self.sent.append(message)


@dataclass
class Way:
    """A relay under test."""

    rig: Rig
    server: Server
    relay: AsgiRelay

    async def run(self, app: App) -> None:
        await self.relay.run(app)

    @property
    def record(self) -> Any:
        (ended,) = self.rig.ended
        return ended.record

    @property
    def faults(self) -> int:
        return sum(int(point.value) for point in self.rig.tally.totals() if point.metric is TELEMETRY_FAULTS)


@contextlib.asynccontextmanager
async def way(*messages: Message, path: str = CHAT) -> AsyncIterator[Way]:
    async with proxied(None) as rig:
        asked = RequestHead(b"POST", path.encode(), 1, (), keep_alive=True)
        watch = rig.eye.admit(asked, trusted=False)
        assert watch is not None
        server = Server()
        for message in messages or HELD:
            server.inbox.put_nowait(message)
        scope: Scope = {"type": "http"}
        yield Way(rig, server, AsgiRelay(watch, rig.eye.look, scope=scope, receive=server.receive, send=server.send))


Then = Callable[[Send], Awaitable[None]]


def streaming(count: int, then: Then | None = None, *, of: Callable[[bytes], Any] = bytes) -> App:
    """An app that reads the request, sends so many tokens, and does something else."""

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send(head())
        for number in range(count):
            await send({"type": "http.response.body", "body": of(event(f"{number}").encode()), "more_body": True})
        if then is not None:
            await then(send)

    return app


async def finish(send: Send) -> None:
    await send(piece(b"data: [DONE]\n\n", more=False))


@on_asyncio
async def test_the_server_gets_each_message_as_it_is() -> None:
    async with way() as on:
        sent: list[Message] = [head(), *(piece(event(f"{n}").encode()) for n in range(5)), piece(b"", more=False)]

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            assert await receive() is HELD[0]
            for message in sent:
                await send(message)

        await on.run(app)
        assert [one is other for one, other in zip(on.server.sent, sent, strict=True)] == [True] * 7
        assert (on.record.outcome, on.record.token_events) == ("ok", 5)


@pytest.mark.parametrize("count", [1, 2, RUN - 1, RUN, RUN + 1, 5 * MOST])
@pytest.mark.parametrize("of", [bytes, memoryview, bytearray])
@on_asyncio
async def test_every_token_of_a_burst_is_counted_and_few_are_kept(count: int, of: Callable[[bytes], Any]) -> None:
    async with way() as on:
        kept = 0

        def noting(data: bytes) -> Any:
            nonlocal kept
            kept = max(kept, len(on.relay._texts) + len(on.relay._reads))
            return of(data)

        await on.run(streaming(count, finish, of=noting))
        assert (on.record.outcome, on.record.token_events, on.record.unparsed_events) == ("ok", count, 0)
        assert kept <= MOST
        assert on.faults == 0
        assert b"".join(bytes(m.get("body", b"")) for m in on.server.sent).count(b'"content"') == count


@on_asyncio
async def test_a_request_is_held_when_its_last_piece_was_received() -> None:
    pieces = [{"type": "http.request", "body": BODY[n : n + 8], "more_body": True} for n in range(0, len(BODY), 8)]
    async with way(*pieces, {"type": "http.request"}) as on:

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            for _ in pieces:
                await receive()
                assert not on.rig.eye._in_flight
            await receive()
            assert len(on.rig.eye._in_flight) == 1
            await streaming(0, finish)({}, Server(_full()).receive, send)

        await on.run(app)
        assert (on.record.request_model, on.record.stream, on.record.outcome) == ("m", True, "no_output")


def _full() -> "asyncio.Queue[Message]":
    inbox = asyncio.Queue[Message]()
    inbox.put_nowait({"type": "http.request"})
    return inbox


@on_asyncio
async def test_fields_may_be_left_out() -> None:
    async def short(send: Send) -> None:
        await send({"type": "http.response.body", "more_body": True})
        await send(piece(event("more").encode()))
        await send({"type": "http.response.body"})

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200})
        await send(piece(event("a").encode()))
        await short(send)

    async with way() as on:
        await on.run(app)
        assert (on.record.outcome, on.record.token_events, on.faults) == ("ok", 2, 0)
    async with way() as on:
        await on.run(streaming(20, short))
        assert (on.record.outcome, on.record.token_events, on.faults) == ("ok", 21, 0)


@on_asyncio
async def test_a_file_sent_by_its_path_is_an_end() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(head("application/json"))
        await send({"type": "http.response.pathsend", "path": "/nowhere"})

    async with way() as on:
        await on.run(app)
        assert on.record.outcome == "no_output"


@on_asyncio
async def test_what_the_app_does_after_its_answer_is_not_the_answers() -> None:
    async def break_later(send: Send) -> None:
        await finish(send)
        await asyncio.sleep(0)
        assert on.record.outcome == "ok"
        raise ValueError

    async with way() as on:
        with pytest.raises(ValueError, match=r"^$"):
            await on.run(streaming(3, break_later))
        assert on.record.outcome == "ok"


@on_asyncio
async def test_the_client_leaves_while_the_app_listens() -> None:
    async with way() as on:

        async def listening(_: Scope, receive: Receive, send: Send) -> None:
            await streaming(40)(_, receive, send)
            on.server.inbox.put_nowait(GONE)
            assert await receive() is GONE
            assert on.record.outcome == "cancelled"
            await finish(send)

        await on.run(listening)
        assert (on.record.outcome, on.record.token_events) == ("cancelled", 40)


@pytest.mark.parametrize("error", [OSError("gone"), ConnectionResetError()])
@on_asyncio
async def test_a_server_that_refuses_a_message_is_asked_whether_the_client_left(error: Exception) -> None:
    for left in (True, False):
        async with way() as on:
            on.server.refuses = error
            if left:
                on.server.inbox.put_nowait(GONE)
            with pytest.raises(type(error)) as raised:
                await on.run(streaming(2))
            assert raised.value is error
            expected = ("cancelled", None) if left else ("error", type(error).__name__)
            assert (on.record.outcome, on.record.error_type) == expected


@pytest.mark.parametrize("gone", [False, True])
@on_asyncio
async def test_an_app_that_returns_too_early(gone: bool) -> None:
    async with way(*HELD, *([GONE] if gone else [])) as on:
        await on.run(streaming(40))
        assert on.record.outcome == ("cancelled" if gone else "error")
        assert on.record.error_type == (None if gone else "incomplete_response")
        assert on.record.token_events == 40


@on_asyncio
async def test_a_server_that_cannot_be_asked_keeps_the_apps_exception_whole() -> None:
    async with way() as on:
        asked = 0

        async def broken() -> Message:
            nonlocal asked
            asked += 1
            if asked > 1:
                raise RuntimeError("not again")
            return HELD[0]

        on.relay._receive = broken
        with pytest.raises(ZeroDivisionError):
            await on.run(streaming(1, lambda _: 1 // 0))  # type: ignore[arg-type,return-value]
        assert asked == 2
        assert (on.record.outcome, on.record.error_type) == ("error", "ZeroDivisionError")


@pytest.mark.parametrize("tokens", [0, 40])
@on_asyncio
async def test_an_app_that_is_cancelled(tokens: int) -> None:
    async with way() as on:
        running = asyncio.ensure_future(on.run(streaming(tokens, lambda _: asyncio.Event().wait())))  # type: ignore[arg-type,return-value]
        await until(lambda: len(on.server.sent) == tokens + 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (on.record.outcome, on.record.token_events) == ("cancelled", tokens)


@on_asyncio
async def test_an_app_that_never_asked_what_the_request_is() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send(head("application/json", 413))
        await send(piece(b"{}", more=False))

    async with way() as on:
        await on.run(app)
        assert (on.record.outcome, on.record.request_model) == ("client_error", None)


def passages() -> int:
    return sum(type(found) is AsgiRelay for found in gc.get_objects())  # isinstance would ask every lazy module


@on_asyncio
async def test_nothing_is_kept_of_a_request_that_is_over() -> None:
    async with way() as on:
        gc.collect()
        gc.disable()
        try:
            before = passages()
            await on.run(streaming(40, finish))
            on.relay = None  # type: ignore[assignment]
            await asyncio.sleep(0)
            assert passages() == before - 1
        finally:
            gc.enable()


@on_asyncio
async def test_a_message_that_is_none_is_the_servers_to_refuse() -> None:
    async with way() as on:

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send("nonsense")  # type: ignore[arg-type]

        with pytest.raises(TypeError):
            await on.run(app)
        assert on.faults > 0
        assert on.record.outcome == "error"
