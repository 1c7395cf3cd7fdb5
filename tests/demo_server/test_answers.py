"""The ASGI callable, spoken to directly: which messages it sends, and when it lets go."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message

from demo_server.answers import Answer
from demo_server.blocks import BlockPool
from demo_server.engine import Limits
from demo_server.handover import Handover
from demo_server.intake import Served, read_chat
from demo_server.replies import Stamp
from tests.demo_server.support import PATIENCE_S, Script, chunks, eventually, scripted_engine

# A client that left at once has these seconds, LONG * STEP_S, to be noticed before its request would end by itself.
LONG = 170
STEP_S = 0.02
STAMP = Stamp("chatcmpl-1", 0, "demo")


class Client:
    """The other side of an ASGI call; leaves once it has seen `leave_after` bodies, if told to."""

    def __init__(self, leave_after: int | None = None) -> None:
        self.sent: list[Message] = []
        self._leave_after = leave_after
        self._left = asyncio.Event()
        if leave_after == 0:
            self._left.set()

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if self._leave_after is not None and len(self.sent) > self._leave_after:
            self._left.set()


def answer(
    script: Script, *, stream: bool, leave_after: int | None = None, max_tokens: int = 4, break_after: int | None = None
) -> tuple[list[Message], BlockPool]:
    engine, pool, _ = scripted_engine(script, limits=Limits(step_floor_s=STEP_S))
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens, "stream": stream}
    asked = read_chat(json.dumps(body).encode(), Served(("demo",), 200))

    async def scene() -> list[Message]:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        client = Client(leave_after)
        generation = asked.generation if break_after is None else asked.generation.breaking_after(break_after)
        async with asyncio.timeout(PATIENCE_S):
            await Answer(handover, handover.open(generation), asked=asked, stamp=STAMP)({}, client.receive, client.send)
        return client.sent

    sent = asyncio.run(scene())
    eventually(lambda: pool.free == pool.total or engine.failure is not None, "the blocks came back")
    assert engine.stop(PATIENCE_S)
    return sent, pool


def head(sent: list[Message]) -> tuple[int, dict[bytes, bytes]]:
    assert sent[0]["type"] == "http.response.start"
    return sent[0]["status"], dict(sent[0]["headers"])


def body(sent: list[Message]) -> str:
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(sent) - 2) + [False]
    return b"".join(message["body"] for message in sent[1:]).decode()


def contents(made: list[dict[str, Any]]) -> list[str]:
    return [chunk["choices"][0]["delta"]["content"] for chunk in made]


def test_a_stream_starts_with_its_first_token_and_sends_each_on_its_own() -> None:
    sent, _ = answer(Script(), stream=True)
    assert head(sent) == (200, {b"content-type": b"text/event-stream; charset=utf-8"})
    assert contents(chunks(body(sent))) == ["", "a", "b", "c", "d"]
    assert b'"role"' in sent[1]["body"]
    assert b'"content":"a"' in sent[1]["body"], "the role comes together with the first output"


def test_a_whole_answer_has_a_length() -> None:
    sent, _ = answer(Script(), stream=False)
    status, headers = head(sent)
    assert (status, headers[b"content-type"]) == (200, b"application/json")
    assert int(headers[b"content-length"]) == len(sent[1]["body"])
    assert json.loads(body(sent))["choices"][0]["message"]["content"] == "abcd"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_before_the_first_token_is_sent_nothing(stream: bool) -> None:
    script = Script()
    sent, _ = answer(script, stream=stream, leave_after=0, max_tokens=LONG)
    assert sent == []
    assert len(script.steps) < LONG, "the request was cancelled, it did not run to its end"


def test_a_client_that_leaves_in_the_middle_is_sent_no_end() -> None:
    script = Script()
    sent, _ = answer(script, stream=True, leave_after=3, max_tokens=LONG)
    assert len(sent) < LONG
    assert all(message["more_body"] for message in sent[1:])
    assert len(script.steps) < LONG


def test_a_request_that_breaks_at_its_first_token_gets_a_true_500() -> None:
    for stream in (True, False):
        sent, _ = answer(Script(), stream=stream, break_after=1)
        assert head(sent)[0] == 500
        assert json.loads(body(sent))["error"]["type"] == "InternalServerError"


def test_a_stream_that_breaks_later_ends_with_an_error_event() -> None:
    sent, _ = answer(Script(), stream=True, break_after=3)
    *made, error = chunks(body(sent))
    assert head(sent)[0] == 200
    assert contents(made) == ["", "a", "b"]
    assert set(error) == {"error"}


def test_a_whole_answer_that_breaks_later_is_a_500() -> None:
    sent, _ = answer(Script(), stream=False, break_after=3)
    assert head(sent)[0] == 500


def test_a_dead_engine_ends_what_it_had_begun() -> None:
    sent, _ = answer(Script(fail_at_step=1), stream=True)
    assert head(sent)[0] == 500
    sent, _ = answer(Script(fail_at_step=3), stream=True)
    *made, error = chunks(body(sent))
    assert (contents(made), set(error)) == (["", "a", "b"], {"error"})
