"""The stream without its usage chunk: what is hidden, what passes, and that the cuts of the reads change nothing."""

import json
import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.engine.engines import ENGINES, UsageChunk
from sidecar.limits import USAGE_EVENT_BYTES
from sidecar.usage.usage_hide import UsageFilter
from tests.sidecar.streams import captured, cut

PLAIN = UsageChunk()
MOVING = UsageChunk(moves_fingerprint=True, only_there=("metrics",))


def passed(stream: bytes, chunk: UsageChunk = PLAIN, *, places: list[int] | None = None) -> tuple[bytes, int]:
    """What gets through of a stream, and how many events did not."""
    hide = UsageFilter(chunk)
    reads = [stream] if places is None else cut(stream, places)
    return b"".join(map(hide.feed, reads)) + hide.flush(), hide.hidden


ROLE = b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}\n\n'
TOKEN = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}\n\n'
DONE = b"data: [DONE]\n\n"
COMMENT = b": keep-alive\n\n"


def usage(**members: object) -> bytes:
    """A usage chunk with more members."""
    return b"data: " + orjson.dumps({"id": "c", "choices": [], "usage": {"completion_tokens": 1}} | members) + b"\n\n"


def printed(**members: object) -> bytes:
    """A finishing chunk with more members at its end."""
    return FINISH.removesuffix(b"}\n\n") + b"," + orjson.dumps(members)[1:] + b"\n\n"


HIDDEN = {
    "as the last but one": (ROLE + TOKEN + FINISH + USAGE + DONE, ROLE + TOKEN + FINISH + DONE),
    "without an end mark": (TOKEN + FINISH + USAGE, TOKEN + FINISH),
    "with CRLF": ((TOKEN + USAGE + DONE).replace(b"\n", b"\r\n"), (TOKEN + DONE).replace(b"\n", b"\r\n")),
    "LF and CRLF mixed": (TOKEN + USAGE[:-1] + b"\r\n" + DONE, TOKEN + DONE),
    "without a blank behind the colon": (TOKEN + USAGE.replace(b"data: ", b"data:") + DONE, TOKEN + DONE),
    "with blanks in the JSON": (TOKEN + USAGE.replace(b":", b": ") + DONE, TOKEN + DONE),
    "a blank at the end of the line": (TOKEN + USAGE.replace(b"\n\n", b" \n\n") + DONE, TOKEN + DONE),
    "blank lines before it stay": (TOKEN + b"\n" + USAGE + DONE, TOKEN + b"\n" + DONE),
    "comments around it stay": (COMMENT + USAGE + COMMENT + DONE, COMMENT + COMMENT + DONE),
    "nulls beside it are nothing": (TOKEN + usage(sglext=None, service_tier=None) + DONE, TOKEN + DONE),
    "twice": (TOKEN + USAGE + USAGE + DONE, TOKEN + DONE),
    "beside what the event before had": (
        printed(system_fingerprint="f", service_tier="x") + usage(service_tier="x", system_fingerprint="f") + DONE,
        printed(system_fingerprint="f", service_tier="x") + DONE,
    ),
}
VISIBLE = {
    "no usage at all": ROLE + TOKEN + FINISH + DONE,
    "usage null": TOKEN + b'data: {"choices":[],"usage":null}\n\n' + DONE,
    "choices without usage": b'data: {"choices":[],"prompt_filter_results":[]}\n\n' + TOKEN + DONE,
    "usage beside choices": TOKEN + USAGE.replace(b"[]", b'[{"index":0,"delta":{}}]') + DONE,
    "beside an extension": TOKEN + usage(sglext={"output_ids": [[1, 2]]}) + DONE,
    "beside timings": TOKEN + usage(timings={"predicted_n": 3}) + DONE,
    "beside a fingerprint that nothing else has": FINISH + usage(system_fingerprint="f") + DONE,
    "beside a value that differs from the event before": printed(service_tier="x") + usage(service_tier="y") + DONE,
    "of an event with a name": TOKEN + b"event: usage\n" + USAGE + DONE,
    "of an event of two lines": TOKEN + USAGE[:-1] + b"data: \n\n" + DONE,
    "of an event with a comment": TOKEN + b": x\n" + USAGE + DONE,
    "no choices": TOKEN + b'data: {"usage":{"completion_tokens":1}}\n\n' + DONE,
    "usage as text": TOKEN + b'data: {"choices":[],"usage":"1"}\n\n' + DONE,
    "an array": b'data: [{"choices":[],"usage":{}}]\n\n',
    "not JSON": b'data: {"choices":[],"usage":{}\n\n',
    "no events": b'{"choices":[],"usage":{"completion_tokens":1}}',
    "never ended": TOKEN + USAGE[:-1],
    "too long": TOKEN + USAGE.replace(b"}}", b" " * USAGE_EVENT_BYTES + b"}}") + DONE,
    "text that quotes one": TOKEN.replace(b'"a"', json.dumps(USAGE.decode()).encode()) + DONE,
    "nothing": b"",
}


@pytest.mark.parametrize(("stream", "rest"), HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("chunk", [PLAIN, MOVING])
def test_a_usage_chunk_is_hidden(stream: bytes, rest: bytes, chunk: UsageChunk) -> None:
    seen, hidden = passed(stream, chunk)
    assert (seen, hidden >= 1) == (rest, True)


@pytest.mark.parametrize("stream", VISIBLE.values(), ids=VISIBLE)
def test_what_is_more_or_less_than_a_usage_chunk_passes(stream: bytes) -> None:
    assert passed(stream) == (stream, 0)


MOVED = {
    "it goes back into the chunk that finishes the answer": (
        TOKEN + FINISH + usage(system_fingerprint="f") + DONE,
        TOKEN + printed(system_fingerprint="f") + DONE,
    ),
    "with what comes only beside usage": (
        FINISH + usage(system_fingerprint="f", metrics={"mean_itl_ms": 1.5}) + DONE,
        printed(system_fingerprint="f") + DONE,
    ),
    "any text": (FINISH + usage(system_fingerprint='é"}') + DONE, printed(system_fingerprint='é"}') + DONE),
    "none to move": (FINISH + usage(metrics={"x": 1}) + DONE, FINISH + DONE),
    "with CRLF": (
        (FINISH + usage(system_fingerprint="f") + DONE).replace(b"\n", b"\r\n"),
        (printed(system_fingerprint="f") + DONE).replace(b"\n", b"\r\n"),
    ),
}
NOT_MOVED = {
    "no chunk finished the answer": TOKEN + usage(system_fingerprint="f") + DONE,
    "something stands between": FINISH + COMMENT + usage(system_fingerprint="f") + DONE,
    "it has another already": printed(system_fingerprint="e") + usage(system_fingerprint="f") + DONE,
    "more is lost than that": FINISH + usage(system_fingerprint="f", service_tier="x") + DONE,
    "the chunk is no JSON": FINISH.replace(b"}\n", b"]\n") + usage(system_fingerprint="f") + DONE,
    "no usage follows": TOKEN + FINISH + DONE,
    "nothing follows": TOKEN + FINISH,
    "an error follows": TOKEN + FINISH + b'data: {"error":{"message":"x"}}\n\n' + DONE,
}


@pytest.mark.parametrize(("stream", "rest"), MOVED.values(), ids=MOVED)
def test_a_moved_fingerprint_is_put_back(stream: bytes, rest: bytes) -> None:
    assert passed(stream, MOVING) == (rest, 1)


@pytest.mark.parametrize("stream", NOT_MOVED.values(), ids=NOT_MOVED)
def test_a_fingerprint_that_cannot_go_back_is_not_lost(stream: bytes) -> None:
    assert passed(stream, MOVING) == (stream, 0)


def test_an_event_that_is_whole_passes_at_once_but_for_the_one_that_finishes() -> None:
    for chunk in (PLAIN, MOVING):
        hide = UsageFilter(chunk)
        for event in (ROLE, TOKEN, COMMENT, TOKEN):
            assert hide.feed(event) == event
        assert hide.holds_finish is False
        assert hide.feed(FINISH) == (b"" if chunk is MOVING else FINISH)
        assert hide.holds_finish is (chunk is MOVING)
        assert hide.held == (FINISH if chunk is MOVING else b"")
        assert hide.feed(DONE) == (FINISH + DONE if chunk is MOVING else DONE)


def test_a_finish_that_was_let_go_keeps_its_usage_chunk_visible_if_more_would_be_lost() -> None:
    hide = UsageFilter(MOVING)
    assert (hide.feed(FINISH), hide.release()) == (b"", FINISH)
    last = usage(system_fingerprint="f")
    assert hide.feed(last + DONE) == last + DONE
    hide = UsageFilter(MOVING)
    hide.feed(FINISH)
    hide.release()
    assert hide.feed(USAGE + DONE) == DONE


def test_a_filter_that_gave_up_passes_everything() -> None:
    hide = UsageFilter(MOVING)
    assert hide.feed(FINISH + USAGE[:30]) == b""
    assert hide.give_up() == FINISH + USAGE[:30]
    assert hide.feed(USAGE[30:] + DONE) == USAGE[30:] + DONE


def test_a_long_event_passes_as_it_comes_and_is_forgotten() -> None:
    hide, seen = UsageFilter(PLAIN), b""
    stream = b"data: " + b"x" * (3 * USAGE_EVENT_BYTES) + b"\r\n\r\n"
    for start in range(0, len(stream), 1000):
        seen += hide.feed(stream[start : start + 1000])
        assert len(hide.held) <= USAGE_EVENT_BYTES
    assert seen == stream
    assert hide.feed(USAGE + TOKEN) == TOKEN


LONG = printed(system_fingerprint="f", logprobs="x" * USAGE_EVENT_BYTES)
EVENTS = [
    ROLE, TOKEN, FINISH, USAGE, DONE, COMMENT, b"\n", b"\r\n", b"\r", usage(system_fingerprint="f"), usage(x=1),
    printed(system_fingerprint="f"), USAGE.replace(b"\n", b"\r\n"), TOKEN.replace(b"\n", b"\r\n"), USAGE[:-1],
    LONG, b"data: x\ndata: []\n\n", b"[]", b"data: " + b"[]" * (USAGE_EVENT_BYTES // 2) + b"\n\n",
]  # fmt: skip
streams = st.lists(st.sampled_from(EVENTS), max_size=8).map(b"".join)


@given(stream=streams, places=st.lists(st.integers(0, 1 << 16), max_size=30), chunk=st.sampled_from([PLAIN, MOVING]))
@example(stream=TOKEN + USAGE + DONE, places=list(range(400)), chunk=PLAIN)
@example(stream=LONG + usage(system_fingerprint="f"), places=[100], chunk=MOVING)
@example(stream=FINISH + usage(system_fingerprint="f") + DONE, places=list(range(400)), chunk=MOVING)
def test_any_split_passes_the_same_bytes(stream: bytes, places: list[int], chunk: UsageChunk) -> None:
    assert passed(stream, chunk, places=places) == passed(stream, chunk)


clean = st.lists(st.sampled_from([ROLE, TOKEN, FINISH, DONE, COMMENT, b"\n"]), max_size=8)


@given(events=clean, at=st.integers(0, 8), places=st.lists(st.integers(0, 1 << 12), max_size=20))
def test_the_rest_is_the_stream_without_the_chunk(events: list[bytes], at: int, places: list[int]) -> None:
    stream = b"".join((*events[:at], USAGE, *events[at:]))
    assert passed(stream, places=places) == (b"".join(events), 1)


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_bytes_that_are_no_stream_pass_whole(reads: list[bytes]) -> None:
    hide = UsageFilter(MOVING)
    assert b"".join(map(hide.feed, reads)) + hide.flush() == b"".join(reads)


def body(name: str) -> bytes:
    return b"".join(data for _, data in captured(name, "/v1/chat/completions").reads)


def test_a_recorded_stream_of_vllm_becomes_what_it_sends_without_the_ask() -> None:
    """vLLM 0.32 stamps the fingerprint on the last message: the usage chunk, or the finishing one without the ask."""
    chunk = ENGINES["vllm"].usage_chunk
    assert chunk is not None
    asked, unasked = body("vllm_chat_usage"), body("vllm_chat")
    got, hidden = passed(asked, chunk)
    assert hidden == 1
    assert b"usage" not in got

    def shapes(stream: bytes) -> list[list[str]]:
        """The members of each event in their order: all but ids, times and texts."""
        return [re.findall(r'"([a-z_]+)":', event.decode()) for event in stream.split(b"\n\n")]

    assert shapes(got)[-4:] == shapes(unasked)[-4:]
    assert shapes(got)[:3] == shapes(unasked)[:3]
    for step in (1, 7, 100):
        assert passed(asked, chunk, places=list(range(0, len(asked), step))) == (got, 1)


@pytest.mark.parametrize("name", ["litellm_chat_usage", "llamasrv_chat_usage", "hf_chat", "vllm_chat", "vllm_compl"])
def test_recorded_streams_without_a_chunk_to_hide_pass_whole(name: str) -> None:
    """LiteLLM's usage stands beside choices, llama.cpp's beside timings, transformers' in the finishing chunk."""
    stream = body(name)
    assert passed(stream) == passed(stream, MOVING) == (stream, 0)
