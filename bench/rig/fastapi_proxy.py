"""The proxy that one writes in ten minutes: FastAPI in front, httpx behind, on uvicorn.

Arguments: the source's port, a listening descriptor, uvicorn's event loop and HTTP parser: `asyncio h11` is what
`pip install fastapi uvicorn httpx` gives, `uvloop httptools` what uvicorn's extra `standard` adds. (httpx reads with
h11 in either.) One choice is in its favour: httpx's stock limit of 100 connections is lifted, without which it would
queue.
"""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

NOT_PASSED_ON = {"host", "content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"}


def app_before(upstream: str) -> FastAPI:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    client = httpx.AsyncClient(base_url=upstream, timeout=600, limits=limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with client:
            yield

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def forward(request: Request, path: str) -> StreamingResponse:
        headers = [(name, value) for name, value in request.headers.items() if name not in NOT_PASSED_ON]
        asked = client.build_request(request.method, f"/{path}", headers=headers, content=await request.body())
        answer = await client.send(asked, stream=True)
        kept = {n: v for n, v in answer.headers.items() if n not in NOT_PASSED_ON or n == "content-length"}
        return StreamingResponse(
            answer.aiter_bytes(), status_code=answer.status_code, headers=kept, background=BackgroundTask(answer.aclose)
        )

    return app


if __name__ == "__main__":
    port, descriptor, loop, parser = sys.argv[1:]
    config = uvicorn.Config(
        app_before(f"http://127.0.0.1:{port}"),
        log_level="error",
        access_log=False,
        loop=loop,
        http=parser,
        timeout_keep_alive=3600,
    )
    # Not by uvicorn's own `fd`, which takes the socket for a Unix one and so leaves Nagle's algorithm on.
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(descriptor))])
