"""The ASGI side of one reply: waits for outputs, writes them, and watches whether the client is still there.

Nothing is sent, not even the status, before the first output: a request that fails before its first token gets a
true 500, and the time to the first byte is the time to the first token. A pure ASGI callable, because a middleware
or an async generator between engine and socket costs more per token than all of this.
"""

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from demo_server.errors import EngineFailedError, RequestError
from demo_server.handover import Flow, Handover
from demo_server.intake import Asked
from demo_server.replies import EventWriter, Stamp, error_body, error_event, whole_body
from demo_server.sequence import Output

BROKEN = "generation ended with an error"


class Answer(Response):
    """Answers one admitted request; closing its flow, come what may, is its last act."""

    def __init__(self, handover: Handover, flow: Flow, *, asked: Asked, stamp: Stamp) -> None:
        super().__init__()
        self._handover = handover
        self._flow = flow
        self._asked = asked
        self._stamp = stamp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the answer, or stop as soon as the client has left."""
        del scope
        watcher = asyncio.create_task(self._watch(receive))
        try:
            await (self._write_stream(send) if self._asked.stream else self._write_whole(send))
        finally:
            watcher.cancel()
            self._handover.close(self._flow)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._flow.leave()

    async def _write_stream(self, send: Send) -> None:
        writer = EventWriter(self._asked, self._stamp)
        outputs = await self._flow.take()
        if outputs and _is_broken(outputs[0]):
            await send_error(send, EngineFailedError(BROKEN))
            return
        opening = writer.opening()
        if outputs:
            await _start(send, 200, b"text/event-stream; charset=utf-8")
        while outputs:
            last = outputs[-1]
            good = outputs[:-1] if _is_broken(last) else outputs
            body = opening + b"".join([writer.piece(output) for output in good])
            opening = b""
            if last.finish is not None:
                end = (
                    error_event(EngineFailedError(BROKEN))
                    if _is_broken(last)
                    else writer.closing(last.completion_tokens)
                )
                await _send_body(send, body + end, more=False)
                return
            if body:
                await _send_body(send, body, more=True)
            outputs = await self._flow.take()

    async def _write_whole(self, send: Send) -> None:
        texts: list[str] = []
        while outputs := await self._flow.take():
            texts += [output.text for output in outputs]
            last = outputs[-1]
            if _is_broken(last):
                await send_error(send, EngineFailedError(BROKEN))
                return
            if last.finish is not None:
                await send_json(send, 200, whole_body(self._asked, self._stamp, text="".join(texts), last=last))
                return


async def send_error(send: Send, error: RequestError) -> None:
    """Send a whole error reply."""
    await send_json(send, error.status, error_body(error))


async def send_json(send: Send, status: int, body: bytes) -> None:
    """Send a whole JSON reply."""
    await _start(send, status, b"application/json", (b"content-length", str(len(body)).encode()))
    await _send_body(send, body, more=False)


def _is_broken(output: Output) -> bool:
    return output.finish == "error"


async def _start(send: Send, status: int, content_type: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", content_type), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _send_body(send: Send, body: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
