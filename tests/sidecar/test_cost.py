"""What a request costs, in lines of the sidecar that run for it: a figure that a busy machine does not move.

`bench/proxy.py` tells what they take. Here it is held that none creep in, nor tokens leave the fast path: each limit is
a tenth over what was needed when it was set.
"""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sidecar
from tests.sidecar.rig import (
    SSE_HEAD,
    STOP,
    Received,
    chat,
    chunk,
    delta,
    on_a_loop,
    proxied,
    raw,
    read_message,
    sized,
    spec,
)

OURS = str(Path(sidecar.__file__).parent)
MOST_OF_A_CHAT, MOST_OF_A_TOKEN = 790, 17
REQUESTS, TOKENS = 40, 100
WARM = 5
SPEC = spec(
    "{name: ttft, signal: ttft, percentile: 95, threshold: 5s}",
    "{name: tpot, signal: tpot, percentile: 99, threshold: 5s}",
    "{name: answered, signal: availability, target: 99.9%}",
    "{name: whole, signal: e2e, percentile: 95, threshold: 30s}",
)
ANSWER = (
    b'{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"four"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}'
)


async def lines_of(work: Callable[[], Awaitable[None]]) -> Counter[CodeType]:
    """How many lines of the sidecar ran on this thread meanwhile, by function."""
    ran = Counter[CodeType]()

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            ran[frame.f_code] += 1
        return local

    def entered(frame: FrameType, _event: str, _arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(OURS) else None

    before = sys.gettrace()
    gc.disable()  # a collection runs what others left behind
    sys.settrace(entered)
    try:
        await work()
    finally:
        sys.settrace(before)
        gc.enable()
    return ran


def told(ran: Counter[CodeType], times: int) -> str:
    most = ", ".join(f"{code.co_qualname} {lines / times:.1f}" for code, lines in ran.most_common(8))
    return f"{ran.total() / times:.0f} lines each: {most}"


@on_a_loop
async def test_a_whole_chat_request_costs_few_lines() -> None:
    async with (
        proxied(raw(sized(ANSWER)), objectives=SPEC, traced=True) as rig,
        rig.client() as (reader, writer),
    ):

        async def ask(times: int) -> None:
            for _ in range(times):
                writer.write(chat(stream=False, pad=300))
                await read_message(reader)
            rig.eye.catch_up()

        await ask(WARM)
        ran = await lines_of(lambda: ask(REQUESTS))
        assert len(rig.ended) == WARM + REQUESTS
        assert ran.total() / REQUESTS <= MOST_OF_A_CHAT, told(ran, REQUESTS)


@on_a_loop
async def test_a_further_token_costs_hardly_any() -> None:
    # The server sends a token when the client has had the one before, so that none come joined.
    had = asyncio.Event()

    async def stream(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD)
        for number in range(WARM + TOKENS):
            writer.write(chunk(delta(f"t{number}")))
            await had.wait()
            had.clear()
        writer.write(chunk(STOP) + b"0\r\n\r\n")

    async with proxied(stream, objectives=SPEC) as rig, rig.client() as (reader, writer):

        async def take(times: int) -> None:
            for _ in range(times):
                await reader.readuntil(b"null}]}\n\n\r\n")
                had.set()

        writer.write(chat())
        await reader.readuntil(b"\r\n\r\n")
        await take(WARM)
        ran = await lines_of(lambda: take(TOKENS))
        assert ran.total() / TOKENS <= MOST_OF_A_TOKEN, told(ran, TOKENS)
        assert b"[DONE]" in await reader.readuntil(b"0\r\n\r\n")
        rig.eye.catch_up()
        assert rig.ended[0].record.token_events == WARM + TOKENS
