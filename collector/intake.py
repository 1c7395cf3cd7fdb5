"""OTLP over HTTP: one request's body read, decoded, counted and answered.

A fault of the sender is a 4xx with a google.rpc.Status in the sender's own encoding; a database that cannot commit is
a 503 with Retry-After: the same bytes may come again, and count once. Points that cannot be used are a partial success
that says how many and why. The digest is that of the unpacked bytes, so that a body packed anew is the same body.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from collector import reply
from collector.body import JSON, MAX_JSON_BYTES, MAX_UNPACKED_BYTES, PROTOBUF, Form, Unpacking, form
from collector.errors import CollectorError, PayloadError, RefusedError, UnavailableError
from collector.measurement import Batch
from collector.otlp import decode_metrics, decode_traces
from collector.reply import Kind, Reply
from collector.store import Store

BODY_TIMEOUT_S = 30
DRAIN_BYTES = 64 << 20
ROOM_BYTES = 64 << 20
INLINE_BYTES = 256 << 10
_DECODE: dict[Kind, Callable[..., Batch]] = {"traces": decode_traces, "metrics": decode_metrics}
_OUR_FAULT = "the collector could not store this body: see its log"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Room:
    """The unpacked bytes in hand at once, of all requests, from their first byte until they are committed; `slow` lets
    one long body be read at a time."""

    limit: int = ROOM_BYTES
    used: int = 0
    slow: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """A place for one body, given back at the end."""
        place = Place(self)
        try:
            yield place
        finally:
            self.used -= place.size


@dataclass(slots=True)
class Place:
    """What one body takes of the room."""

    room: Room
    size: int = 0

    def grow(self, size: int) -> None:
        """Take as much as `size` in all. Raises `UnavailableError` when there is no room: others are in hand."""
        more = max(size - self.size, 0)
        if self.room.used + more > self.room.limit:
            raise UnavailableError("more is being read than there is room for: send again later")
        self.room.used += more
        self.size += more


async def taken(kind: Kind, request: Request, store: Store, *, refused: Counter[int], room: Room) -> Response:
    """The answer to one export request; errors are counted in `refused` by status."""
    spoken: Form = JSON if request.headers.get("content-type", "").startswith(JSON) else PROTOBUF
    headers: dict[str, str] = {}
    try:
        with room.place() as place:
            answer = await _count(kind, request, store, place)
    except (CollectorError, TimeoutError) as error:
        answer, headers = _error(error, spoken)
    except ClientDisconnect:
        answer = reply.refused(400, "the sender left before the body was whole", spoken)
    except Exception:
        log.exception("an export request failed")
        answer = reply.refused(500, _OUR_FAULT, spoken)
    if answer.status != 200:
        refused[answer.status] += 1
    return Response(answer.content, answer.status, headers, media_type=answer.form)


async def _count(kind: Kind, request: Request, store: Store, place: Place) -> Reply:
    async with asyncio.timeout(BODY_TIMEOUT_S):
        body = await _body(request, place)
    spoken = form(request.headers.get("content-type"))
    batch = await _decoded(kind, body, spoken, place.room)
    digest = hashlib.sha256(f"{kind} {spoken}\n".encode() + body).digest()
    counted = await store.count(digest, batch)
    return reply.accepted(kind, spoken, rejected=counted.rejected, why=counted.why)


async def _decoded(kind: Kind, body: bytes, spoken: Form, room: Room) -> Batch:
    """The body, read; a long one beside the loop, so that nobody else waits for it."""
    if len(body) <= INLINE_BYTES:
        return _DECODE[kind](body, json=spoken == JSON)
    async with room.slow:
        return await asyncio.to_thread(_DECODE[kind], body, json=spoken == JSON)


async def _body(request: Request, place: Place) -> bytes:
    """The unpacked body. One that is refused is let in all the same, within reason: a sender whose connection is cut
    in mid-body never reads why, and sends it again for ever."""
    is_json = request.headers.get("content-type", "").startswith(JSON)
    longest = MAX_JSON_BYTES if is_json else MAX_UNPACKED_BYTES
    unpacking = Unpacking(request.headers.get("content-encoding", ""), max_unpacked=longest)
    unpacking.expect(request.headers.get("content-length"))
    drained = 0
    async for chunk in request.stream():
        if unpacking.feed(chunk):
            try:
                place.grow(unpacking.size)
            except UnavailableError as error:
                unpacking.refuse(error)
        else:
            drained += len(chunk)
        if drained > DRAIN_BYTES:
            break
    return unpacking.finish()


def _error(error: CollectorError | TimeoutError, spoken: Form) -> tuple[Reply, dict[str, str]]:
    if isinstance(error, UnavailableError):
        return reply.refused(503, str(error), spoken), {"retry-after": str(error.retry_after_s)}
    if isinstance(error, RefusedError):
        return reply.refused(error.status, str(error), spoken), {}
    if isinstance(error, PayloadError):
        return reply.refused(400, str(error), spoken), {}
    if isinstance(error, TimeoutError):
        return reply.refused(408, f"the body did not come within {BODY_TIMEOUT_S} s", spoken), {}
    return reply.refused(500, _OUR_FAULT, spoken), {}
