"""OTLP over HTTP: a pure ASGI layer before the application, that answers the two paths of OTLP and hands on the rest.

One POST is one body, protobuf or JSON, plain or packed, read as its chunks come and within limits. A refusal is a 4xx,
or a 503 with Retry-After, with a google.rpc.Status in the sender's own encoding; points that cannot be used are a
partial success that says how many and why. A framework's routing would cost as much again as all of it.
"""

import asyncio
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from collector.doors import intake, reply
from collector.doors.body import JSON, MAX_JSON_BYTES, MAX_UNPACKED_BYTES, PROTOBUF, Form, Unpacking, form
from collector.doors.intake import Place, Reception
from collector.doors.reply import Kind, Refusal, Reply
from collector.errors import RefusedError, UnavailableError
from collector.keeping import store

DRAIN_BYTES = 64 << 20
KINDS: dict[str, Kind] = {"/v1/traces": "traces", "/v1/metrics": "metrics"}

_FORMS = {media: {"schema": {"type": "string", "format": "binary"}} for media in (PROTOBUF, JSON)}
_ANSWERS = {
    "200": "Counted, and committed; a partial success names the points that were not",
    "400": "Not the message that it claims to be",
    "408": "The body took too long to come",
    "413": "The body is too long, as it came or unpacked",
    "415": "A type or an encoding that nobody here speaks",
    "503": "Not committed: send the same bytes again after Retry-After",
}
DESCRIBED = {
    path: {
        "post": {
            "tags": ["OTLP"],
            "summary": f"OTLP {kind}",
            "operationId": f"export_{kind}",
            "requestBody": {"required": True, "content": _FORMS},
            "responses": {status: {"description": said, "content": _FORMS} for status, said in _ANSWERS.items()},
        }
    }
    for path, kind in KINDS.items()
}
"""What an OpenAPI document says of the paths."""


class Post:
    """The application with OTLP before it."""

    def __init__(self, app: ASGIApp, reception: Reception) -> None:
        self._app = app
        self._reception = reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = KINDS.get(scope["path"]) if scope["type"] == "http" else None
        if kind is None:
            await self._app(scope, receive, send)
            return
        head = _Head.of(scope)
        headers: list[tuple[bytes, bytes]] = []
        try:
            answer = await self._answer(kind, head, receive)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  each is answered, in the sender's own form
            # No name of this frame may keep the error: its traceback holds the frame, and the body with it.
            refusal = self._reception.refusal(_fault(error))
            answer = reply.refused(refusal, head.spoken)
            headers = _headers(refusal)
        await _send(answer, headers, send)

    async def _answer(self, kind: Kind, head: "_Head", receive: Receive) -> Reply:
        if head.method != "POST":
            raise RefusedError(405, f"{head.method}: OTLP is sent by POST")
        unpacking = Unpacking(head.encoding, max_unpacked=MAX_JSON_BYTES if head.spoken == JSON else MAX_UNPACKED_BYTES)
        with self._reception.room.place(unpacking.refuse) as place:
            try:
                async with asyncio.timeout(intake.BODY_TIMEOUT_S):
                    body = await _body(unpacking, head, receive, place)
            except TimeoutError:
                raise intake.too_slow() from None
            place.whole()
            spoken = form(head.content_type)
            counted = await self._reception.count(kind, spoken, body)
        return reply.accepted(kind, spoken, rejected=counted.rejected, why=counted.why)


@dataclass(frozen=True, slots=True)
class _Head:
    """What a request says of its body."""

    method: str
    content_type: str
    encoding: str
    length: str

    @classmethod
    def of(cls, scope: Scope) -> "_Head":
        found = {name: value.decode("latin-1") for name, value in scope["headers"]}
        content_type, encoding = found.get(b"content-type", ""), found.get(b"content-encoding", "")
        return cls(scope["method"], content_type, encoding, found.get(b"content-length", ""))

    @property
    def spoken(self) -> Form:
        """What the sender reads, whatever it sent."""
        return JSON if self.content_type.startswith(JSON) else PROTOBUF


async def _body(unpacking: Unpacking, head: _Head, receive: Receive, place: Place) -> bytes:
    """The unpacked body. One that is refused is let in all the same, within reason: a sender whose connection is cut
    in mid-body never reads why, and sends it again for ever."""
    unpacking.expect(head.length)
    drained, is_whole = 0, False
    while not is_whole and drained <= DRAIN_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the sender left before the body was whole")
        chunk = message.get("body", b"")
        is_whole = not message.get("more_body", False)
        if not await _fed(unpacking, chunk, place):
            drained += len(chunk)
    return unpacking.finish()


async def _fed(unpacking: Unpacking, chunk: bytes, place: Place) -> bool:
    """Whether the body is still good with this chunk. Others have their turn between the steps of a packed one."""
    is_good = _stepped(unpacking, chunk, place)
    while unpacking.has_more:
        await asyncio.sleep(0)
        is_good = _stepped(unpacking, b"", place)
    return is_good


def _stepped(unpacking: Unpacking, chunk: bytes, place: Place) -> bool:
    if unpacking.feed(chunk):
        try:
            place.grow(unpacking.size)
        except UnavailableError as error:
            unpacking.refuse(error)
        else:
            return True
    place.release()
    return False


def _fault(error: Exception | asyncio.CancelledError) -> Exception:
    """Cancelled is what has not come or been committed by the time that the end of the process waits for."""
    return UnavailableError(store.STOPPING) if isinstance(error, asyncio.CancelledError) else error


def _headers(refusal: Refusal) -> list[tuple[bytes, bytes]]:
    if refusal.status == 405:
        return [(b"allow", b"POST")]
    return [] if refusal.retry_after_s is None else [(b"retry-after", b"%d" % refusal.retry_after_s)]


async def _send(answer: Reply, headers: list[tuple[bytes, bytes]], send: Send) -> None:
    length = b"%d" % len(answer.content)
    headers = [(b"content-type", answer.form.encode()), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
