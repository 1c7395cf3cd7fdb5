"""The proxy that one writes in ten minutes: FastAPI in front, httpx behind, on uvicorn.

Arguments: the source's port, a listening descriptor, uvicorn's event loop and HTTP parser: `asyncio h11` is what
`pip install fastapi uvicorn httpx` gives, `uvloop httptools` what uvicorn's extra `standard` adds. (httpx reads with
h11 in either.) One choice is in its favour: httpx's stock limit of 100 connections is lifted, without which it would
queue.

With a last argument, `reading`, it also does a part of the sidecar's work as one would write that: each line of a
stream is read, the JSON of its events parsed, and the moments of the first and the last kept in a histogram.
"""

import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from prometheus_client import Histogram
from starlette.background import BackgroundTask

NOT_PASSED_ON = {"host", "content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"}


FIRST = Histogram("time_to_first_token_seconds", "From the request to the first event with a token.")
EACH = Histogram("time_per_output_token_seconds", "Between the first token and the last, by token.")


async def read(answer: httpx.Response, asked_s: float) -> AsyncIterator[str]:
    """The lines of a stream as they came, each event parsed."""
    first_s = last_s = 0.0
    tokens = 0
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            choices = json.loads(line[6:]).get("choices")
            if choices and choices[0].get("delta", choices[0]).get("content"):
                last_s = time.perf_counter()
                first_s = first_s or last_s
                tokens += 1
        yield line + "\n"
    if tokens > 1:
        FIRST.observe(first_s - asked_s)
        EACH.observe((last_s - first_s) / (tokens - 1))


def app_before(upstream: str, *, reading: bool) -> FastAPI:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    client = httpx.AsyncClient(base_url=upstream, timeout=600, limits=limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with client:
            yield

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def forward(request: Request, path: str) -> StreamingResponse:
        asked_s = time.perf_counter()
        headers = [(name, value) for name, value in request.headers.items() if name not in NOT_PASSED_ON]
        asked = client.build_request(request.method, f"/{path}", headers=headers, content=await request.body())
        answer = await client.send(asked, stream=True)
        kept = {n: v for n, v in answer.headers.items() if n not in NOT_PASSED_ON or n == "content-length"}
        streams = answer.headers.get("content-type", "").startswith("text/event-stream")
        body = read(answer, asked_s) if reading and streams else answer.aiter_bytes()
        return StreamingResponse(
            body, status_code=answer.status_code, headers=kept, background=BackgroundTask(answer.aclose)
        )

    return app


if __name__ == "__main__":
    port, descriptor, loop, parser, *more = sys.argv[1:]
    config = uvicorn.Config(
        app_before(f"http://127.0.0.1:{port}", reading=more == ["reading"]),
        log_level="error",
        access_log=False,
        loop=loop,
        http=parser,
        timeout_keep_alive=3600,
    )
    # Not by uvicorn's own `fd`, which takes the socket for a Unix one and so leaves Nagle's algorithm on.
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(descriptor))])
