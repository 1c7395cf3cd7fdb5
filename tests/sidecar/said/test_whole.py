"""The straight path of a whole answer says what the exchange says, or leaves the answer to it."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.http.http_head import Headers, ResponseHead
from sidecar.said.dialects import (
    ANTHROPIC,
    CHAT,
    COMPLETIONS,
    OLLAMA_CHAT,
    RESPONSES,
    SGLANG,
    TGI,
    Ask,
    Dialect,
    read_ask,
)
from sidecar.said.exchange import Exchange
from sidecar.said.record import Record
from sidecar.said.sse import MAX_BODY_BYTES
from sidecar.said.whole import is_plain, record_of

T0_NS, HEAD_NS, AT_NS = 1_000_000_000, 1_200_000_000, 1_500_000_000
DIALECTS = (CHAT, COMPLETIONS, RESPONSES, ANTHROPIC, TGI, SGLANG, OLLAMA_CHAT)


def by_the_exchange(ask: Ask, body: bytes, *, status: int = 200) -> Record:
    exchange = Exchange(ask, T0_NS)
    exchange.response_started(status, "application/json", at_ns=HEAD_NS)
    if body:
        exchange.feed(body, AT_NS)
    exchange.response_ended(AT_NS)
    return exchange.record()


def straight(ask: Ask, body: bytes, *, status: int = 200) -> Record | None:
    return record_of(ask, T0_NS, status=status, body=body, at_ns=AT_NS)


def asked(dialect: Dialect = CHAT, **members: Any) -> Ask:
    return read_ask(dialect, orjson.dumps({"model": "m", "messages": []} | members))


def choice(content: str | None = "hi", *, index: int = 0, **message: Any) -> dict[str, Any]:
    return {"index": index, "message": {"role": "assistant", "content": content} | message, "finish_reason": "stop"}


COUNTS = {"prompt_tokens": 18, "completion_tokens": 24}
USUAL: dict[str, dict[str, Any]] = {
    "an answer": {"model": "m-1", "choices": [choice()], "usage": COUNTS},
    "an answer without counts": {"choices": [choice()]},
    "reasoning that was counted": {
        "choices": [choice(reasoning_content="hm")],
        "usage": COUNTS | {"completion_tokens_details": {"reasoning_tokens": 9}},
    },
    "no token": {"choices": [choice("")], "usage": COUNTS},
    "no token and no count": {"choices": [choice(None)]},
    "counts alone": {"choices": [], "usage": COUNTS},
    "a prompt's count alone": {"choices": [choice()], "usage": {"prompt_tokens": 3}},
    "llama.cpp's own counts": {"choices": [choice()], "timings": {"prompt_n": 3, "cache_n": 2, "predicted_n": 5}},
}


@pytest.mark.parametrize("case", USUAL)
def test_a_usual_answer_goes_straight(case: str) -> None:
    body = orjson.dumps(USUAL[case])
    for ask in (asked(), asked(stream=True), asked(model=None)):
        assert straight(ask, body) == by_the_exchange(ask, body)
        assert straight(ask, b"\n " + body + b"\r\n", status=201) == by_the_exchange(ask, body, status=201)


LONG_WAY: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"<html>",
    "no object": b"[1]",
    "half of an answer": b'{"choices":[{',
    "an error with a good status": b'{"error":{"message":"no","type":"overloaded"}}',
    "a choice that failed": orjson.dumps({"choices": [choice() | {"finish_reason": "error"}]}),
    "several choices": orjson.dumps({"choices": [choice(), choice(index=1)], "usage": COUNTS}),
    "an unknown form": b'{"result":"ok"}',
    "too long to be read": orjson.dumps({"choices": [choice("x" * MAX_BODY_BYTES)]}),
}


@pytest.mark.parametrize("case", LONG_WAY)
def test_what_is_unusual_goes_the_long_way(case: str) -> None:
    assert straight(asked(), LONG_WAY[case]) is None


PARTS = {
    "model": st.sampled_from(("m-1", "", 5, None)),
    "choices": st.lists(
        st.builds(choice, st.sampled_from(("hi", "", None)), index=st.sampled_from((0, 1))), max_size=2
    ),
    "usage": st.sampled_from(
        (COUNTS, {}, None, {"completion_tokens": 0}, {"input_tokens": 4, "output_tokens": 2}, "x")
    ),
    "content": st.sampled_from(([{"type": "text", "text": "hi"}], [], "hi", None)),
    "stop_reason": st.sampled_from(("end_turn", None)),
    "status": st.sampled_from(("completed", "failed", None)),
    "output": st.sampled_from(([{"content": [{"text": "hi"}]}], [], None)),
    "text": st.sampled_from(("hi", "")),
    "meta_info": st.just({"completion_tokens": 3, "finish_reason": {"type": "stop"}}),
    "generated_text": st.sampled_from(("hi", "")),
    "message": st.sampled_from(({"content": "hi"}, {"content": ""})),
    "done": st.booleans(),
    "error": st.sampled_from((None, "bad", {"type": "overloaded_error"})),
}


@given(
    dialect=st.sampled_from(DIALECTS),
    answer=st.fixed_dictionaries({}, optional=PARTS),
    stream=st.booleans(),
    choices=st.sampled_from((None, 2)),
)
def test_whatever_goes_straight_says_what_the_exchange_says(
    dialect: Dialect, answer: dict[str, Any], *, stream: bool, choices: int | None
) -> None:
    ask, body = asked(dialect, stream=stream, n=choices), orjson.dumps(answer)
    record = straight(ask, body)
    assert record is None or record == by_the_exchange(ask, body)


PLAIN: dict[str, tuple[Headers, bool]] = {
    "JSON": (((b"Content-Type", b"application/json"),), True),
    "JSON with a charset": (((b"content-type", b"Application/JSON ; charset=utf-8"),), True),
    "packed JSON": (((b"Content-Type", b"application/json"), (b"Content-Encoding", b"gzip")), False),
    "a stream": (((b"Content-Type", b"text/event-stream"),), False),
    "another JSON": (((b"Content-Type", b"application/problem+json"),), False),
    "no type": ((), False),
}


@pytest.mark.parametrize("case", PLAIN)
def test_what_is_plain_json(case: str) -> None:
    headers, expected = PLAIN[case]
    assert is_plain(ResponseHead(200, b"OK", headers, keep_alive=True, framing="length")) is expected
