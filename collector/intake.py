"""OTLP over HTTP: one request's body read, decoded, counted and answered.

A fault of the sender is a 4xx with a google.rpc.Status in the sender's own encoding; a database that cannot commit is
a 503 with Retry-After: the same bytes may come again, and count once. Points that cannot be used are a partial success
that says how many and why. The digest is that of the unpacked bytes, so that a body packed anew is the same body.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from collector import reply
from collector.body import JSON, PROTOBUF, Form, Unpacking, form
from collector.errors import CollectorError, PayloadError, RefusedError, UnavailableError
from collector.measurement import Batch
from collector.otlp import decode_metrics, decode_traces
from collector.reply import Kind, Reply
from collector.store import Store

BODY_TIMEOUT_S = 30
DRAIN_BYTES = 64 << 20
_DECODE: dict[Kind, Callable[..., Batch]] = {"traces": decode_traces, "metrics": decode_metrics}
_OUR_FAULT = "the collector could not store this body: see its log"

log = logging.getLogger(__name__)


async def taken(kind: Kind, request: Request, store: Store, refused: Counter[int]) -> Response:
    """The answer to one export request; errors are counted in `refused` by status."""
    spoken: Form = JSON if request.headers.get("content-type", "").startswith(JSON) else PROTOBUF
    headers: dict[str, str] = {}
    try:
        answer = await _count(kind, request, store)
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


async def _count(kind: Kind, request: Request, store: Store) -> Reply:
    async with asyncio.timeout(BODY_TIMEOUT_S):
        body = await _body(request)
    spoken = form(request.headers.get("content-type"))
    batch = _DECODE[kind](body, json=spoken == JSON)
    digest = hashlib.sha256(f"{kind} {spoken}\n".encode() + body).digest()
    counted = await store.count(digest, batch)
    return reply.accepted(kind, spoken, rejected=counted.rejected, why=counted.why)


async def _body(request: Request) -> bytes:
    """The unpacked body. One that is refused is let in all the same, within reason: a sender whose connection is cut
    in mid-body never reads why, and sends it again for ever."""
    unpacking = Unpacking(request.headers.get("content-encoding", ""))
    unpacking.expect(request.headers.get("content-length"))
    drained = 0
    async for chunk in request.stream():
        drained += 0 if unpacking.feed(chunk) else len(chunk)
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
