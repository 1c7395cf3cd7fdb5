"""Replies, read whole, byte by byte, and broken in every way a server can break them."""

import itertools
import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.reply import MAX_LINE_BYTES, Reply, carries_token
from tests.capacity.sse_server import DONE, END, HEAD, chunk, event, refusal, usage

WHOLE = HEAD + event(role="assistant", content="") + event(content="a") + event(content="b") + usage(9, 5) + DONE + END

TOKENS = {
    "content": {"delta": {"content": "x"}},
    "reasoning as vLLM names it": {"delta": {"reasoning": "x"}},
    "reasoning as DeepSeek names it": {"delta": {"reasoning_content": "x"}},
    "refusal": {"delta": {"refusal": "no"}},
    "audio": {"delta": {"audio": {"data": "AAAA"}}},
    "a tool call's name": {"delta": {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}},
    "a tool call's arguments": {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}},
    "completions text": {"text": "x"},
}
NO_TOKENS = {
    "a role": {"delta": {"role": "assistant"}},
    "a role with empty content": {"delta": {"role": "assistant", "content": ""}},
    "a finish reason": {"delta": {}, "finish_reason": "stop"},
    "null content": {"delta": {"content": None}},
    "an empty tool call": {"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": ""}}]}},
    "empty completions text": {"text": ""},
}


@pytest.mark.parametrize("choice", TOKENS.values(), ids=TOKENS.keys())
def test_generated_payload_is_a_token_event(choice: dict[str, object]) -> None:
    assert carries_token({"choices": [choice]})


@pytest.mark.parametrize("choice", NO_TOKENS.values(), ids=NO_TOKENS.keys())
def test_anything_else_is_none(choice: dict[str, object]) -> None:
    assert not carries_token({"choices": [choice]})


@pytest.mark.parametrize("event", [{}, {"choices": None}, {"choices": []}, {"choices": ["x"]}, {"usage": {}}])
def test_an_event_without_choices_is_no_token(event: dict[str, object]) -> None:
    assert not carries_token(event)


def test_a_whole_reply_gives_its_timeline() -> None:
    reply = Reply()
    at_s = 0.0
    for part in (HEAD, event(role="assistant"), event(content="a"), event(content="b"), usage(9, 5), DONE + END):
        at_s += 1.0
        reply.feed(part, at_s)
    assert (reply.status, reply.is_complete, reply.error) == (200, True, "")
    assert (reply.first_token_s, reply.last_token_s, reply.events) == (3.0, 4.0, 2)
    assert (reply.input_tokens, reply.output_tokens) == (9, 5)
    assert reply.can_keep_alive


@given(cuts=st.lists(st.integers(1, len(WHOLE) - 1), max_size=12))
def test_any_split_of_the_bytes_reads_the_same(cuts: list[int]) -> None:
    reply = Reply()
    edges = [0, *sorted(cuts), len(WHOLE)]
    for low, high in itertools.pairwise(edges):
        reply.feed(WHOLE[low:high], 1.0)
    assert (reply.is_complete, reply.error, reply.events, reply.output_tokens) == (True, "", 2, 5)


def test_a_token_counts_when_its_event_is_complete_not_when_it_begins() -> None:
    reply = Reply()
    reply.feed(HEAD + event(content="a")[:-5], 1.0)
    assert reply.first_token_s is None
    reply.feed(event(content="a")[-5:], 2.0)
    assert reply.first_token_s == 2.0


def test_lines_may_end_in_crlf_and_data_may_span_lines() -> None:
    reply = Reply()
    reply.feed(HEAD + chunk(b': ping\r\ndata: {"choices":\r\ndata:[{"text": "x"}]}\r\n\r\n') + END, 1.0)
    assert (reply.events, reply.error) == (1, "")


def test_an_error_inside_a_stream_is_kept() -> None:
    reply = Reply()
    reply.feed(HEAD + event(content="a") + chunk(b'data: {"error": {"message": "out of memory"}}\n\n') + END, 1.0)
    assert "out of memory" in reply.error
    assert reply.events == 1


def test_a_refusal_keeps_status_and_what_was_said() -> None:
    reply = Reply()
    reply.feed(refusal(503, b'{"error": "full"}'), 1.0)
    assert (reply.status, reply.is_complete) == (503, True)
    assert "full" in reply.error


def test_a_body_that_is_no_stream_is_a_fault() -> None:
    reply = Reply()
    reply.feed(refusal(200, b"{}"), 1.0)
    assert reply.error == "the reply is no event stream"


@pytest.mark.parametrize("tokens", [-1, True, 10**18, 1.5, None, "5"])
def test_what_is_no_count_of_tokens_is_not_taken_for_one(tokens: object) -> None:
    said = b"data: " + orjson.dumps({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": tokens}})
    reply = Reply()
    reply.feed(HEAD + event(content="a") + chunk(said + b"\n\n") + END, 1.0)
    assert (reply.input_tokens, reply.output_tokens, reply.error) == (None, 1, "")


BROKEN = {
    "an event that is not JSON": chunk(b"data: {oops\n\n"),
    "an event that is no object": chunk(b"data: 7\n\n"),
    "a line without end": chunk(b"data: " + b"x" * (MAX_LINE_BYTES + 1)),
}


@pytest.mark.parametrize("part", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_stream_is_a_fault_that_never_raises(part: bytes) -> None:
    reply = Reply()
    reply.feed(HEAD + part, 1.0)
    assert reply.has_failed


def test_bytes_that_are_no_http_are_a_fault() -> None:
    reply = Reply()
    reply.feed(b"SSH-2.0-OpenSSH\r\n", 1.0)
    assert "not HTTP/1.1" in reply.error


def test_a_connection_that_closes_early_is_a_fault_and_one_that_ends_a_lengthless_reply_is_not() -> None:
    early, lengthless = Reply(), Reply()
    early.feed(WHOLE[:-5], 1.0)
    early.end()
    body = b"data: " + json.dumps({"choices": [{"text": "x"}]}).encode() + b"\n\n"
    lengthless.feed(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body, 1.0)
    assert not lengthless.is_complete
    lengthless.end()
    assert early.error == "the connection closed before the end of the reply"
    assert (lengthless.is_complete, lengthless.error, lengthless.events) == (True, "", 1)
    assert not lengthless.can_keep_alive
