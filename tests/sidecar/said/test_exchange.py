"""One request's timeline: every recorded stream, every way to end, and that neither splits nor junk bytes matter."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.said import sse
from sidecar.said.dialects import read_ask, recognise
from sidecar.said.exchange import Exchange, OrderError
from sidecar.said.record import Record
from tests.sidecar.streams import MS, Reads, Stream, byte_by_byte, captured, cut, play, written

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

CAPTURED: dict[str, tuple[Stream, dict[str, Any]]] = {
    stream.id: (stream, expect)
    for stream, expect in (
        (captured("hf_chat", CHAT), {"ttft_s": 0.0345, "tpot_s": 0.020787, "output_tokens": 16, "input_tokens": 18}),
        (captured("hf_compl", COMPLETIONS), {"ttft_s": 0.0385, "tpot_s": 0.01962, "output_tokens": 16}),
        (captured("litellm_chat_usage", CHAT), {"ttft_s": 0.0285, "tpot_s": 0.012233, "output_tokens": 16}),
        (captured("llamasrv_chat_usage", CHAT), {"ttft_s": 0.0161, "tpot_s": 0.013687, "output_tokens": 24}),
        (captured("llamasrv_compl", COMPLETIONS), {"ttft_s": 0.0244, "tpot_s": 0.012796, "output_tokens": 24}),
        (
            captured("llamasrv_native", "/completion"),
            {"ttft_s": 0.0134, "tpot_s": 0.01235, "output_tokens": 24, "input_tokens": 3, "response_model": "tiny"},
        ),
        (
            captured("vllm_chat", CHAT),
            {"ttft_s": 0.0811, "tpot_s": 0.000614, "output_tokens": 22, "token_count_source": "chunks"},
        ),
        (captured("vllm_chat_usage", CHAT), {"ttft_s": 0.0141, "tpot_s": 0.002348, "output_tokens": 24}),
        (captured("vllm_compl", COMPLETIONS), {"ttft_s": 0.0934, "tpot_s": 0.0, "output_tokens": 24}),
        (captured("vllm_messages", "/v1/messages"), {"ttft_s": 0.0167, "tpot_s": 0.003357, "output_tokens": 8}),
        (captured("vllm_responses", "/v1/responses"), {"ttft_s": 0.0534, "tpot_s": 0.000814, "output_tokens": 8}),
    )
}
STREAMS = {stream.id: stream for stream in (*written(), *(stream for stream, _ in CAPTURED.values()))}


def check(record: Record, expect: dict[str, Any]) -> None:
    for key, expected in expect.items():
        found = getattr(record, key)
        if isinstance(expected, float):
            assert found == pytest.approx(expected, abs=1e-4), key
        else:
            assert found == (tuple(expected) if isinstance(expected, list) else expected), key


@pytest.mark.parametrize("stream", written(), ids=str)
def test_written_streams(stream: Stream) -> None:
    record = play(stream)
    check(record, stream.expect)
    assert record.duration_s == stream.end_ns / 1e9


@pytest.mark.parametrize("name", CAPTURED)
def test_recorded_streams(name: str) -> None:
    stream, expect = CAPTURED[name]
    record = play(stream)
    check(record, {"outcome": "ok", "unparsed_events": 0, "streamed": True, "status": 200, **expect})


@pytest.mark.parametrize("stream", [captured("vllm_err_len", CHAT)], ids=["C-vllm_err_len"])
def test_a_recorded_refusal(stream: Stream) -> None:
    check(
        play(stream),
        {"outcome": "client_error", "error_type": "BadRequestError", "status": 400, "ttft_s": None, "e2e_s": None},
    )


# Any split of any recorded stream gives the same events.


@pytest.mark.parametrize("name", STREAMS)
def test_byte_by_byte(name: str) -> None:
    stream = STREAMS[name]
    assert play(stream, byte_by_byte(stream.reads)) == play(stream)


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=25)
@given(places=st.lists(st.lists(st.integers(0, 5000), max_size=6), min_size=1, max_size=5))
def test_any_split_gives_the_same_record(name: str, places: list[list[int]]) -> None:
    stream = STREAMS[name]
    split = [
        (at_ns, piece)
        for index, (at_ns, data) in enumerate(stream.reads)
        for piece in cut(data, places[index % len(places)])
    ]
    assert play(stream, split) == play(stream)


@pytest.mark.parametrize("name", STREAMS)
def test_all_in_one_read(name: str) -> None:
    """The same facts; only the times are those of the one read."""
    stream = STREAMS[name]
    one, many = play(stream, [(stream.end_ns, b"".join(data for _, data in stream.reads))]), play(stream)
    for key in ("outcome", "output_tokens", "token_events", "finish_reasons", "error_type", "unparsed_events"):
        assert getattr(one, key) == getattr(many, key)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_packed_body_that_is_read_whole(coding: str) -> None:
    from tests.sidecar.http.test_encoding import PACKED

    pack = next(pack for name, pack in PACKED.values() if name == coding)
    stream = next(stream for stream in written() if stream.id == "A08")
    (at_ns, body), *_ = stream.reads
    exchange = Exchange(stream.ask, 0)
    exchange.response_started(200, "application/json", content_encoding=coding, at_ns=1)
    exchange.feed(pack(body), at_ns)
    exchange.response_ended(at_ns)
    check(exchange.record(), stream.expect)


# The ways to end, told as scripts of the wire.


def ask(**fields: Any) -> Any:
    dialect = recognise(CHAT.encode())
    assert dialect is not None
    return read_ask(dialect, json.dumps({"model": "m", "stream": True, **fields}).encode())


ROLE = b'data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
ANSWER = b'{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"completion_tokens":5}}'

Step = tuple[Any, ...]


def head(status: int = 200, content_type: str = "text/event-stream", **more: Any) -> Step:
    return ("head", status, content_type, more)


def run(steps: list[Step], exchange: Exchange | None = None) -> Record:
    """Steps a tenth of a second apart."""
    exchange = exchange or Exchange(ask(), 0)
    for number, (name, *rest) in enumerate(steps, 1):
        at_ns = number * 100 * MS
        if name == "head":
            status, content_type, more = rest
            exchange.response_started(status, content_type, at_ns=at_ns, **more)
        elif name == "bytes":
            exchange.feed(rest[0], at_ns)
        elif name == "end":
            exchange.response_ended(at_ns, **(rest[0] if rest else {}))
        elif name == "lost":
            exchange.upstream_lost(at_ns, rest[0])
        elif name == "left":
            exchange.client_left(at_ns)
        else:
            exchange.timed_out(at_ns)
    return exchange.record()


def sent(data: bytes) -> Step:
    return ("bytes", data)


END, LEFT, TIMED_OUT, LOST = ("end",), ("left",), ("timed out",), ("lost", "upstream_reset")
UNFRAMED_END = ("end", {"framed": False})
JSON_HEAD = head(200, "application/json")

ENDS: dict[str, tuple[list[Step], dict[str, Any]]] = {
    "A11 the client leaves before anything came": (
        [LEFT],
        {"outcome": "cancelled", "ttft_s": None, "tpot_s": None, "e2e_s": None, "status": None, "duration_s": 0.1},
    ),
    "A11 the client leaves amid tokens: what came still counts": (
        [head(), sent(ROLE), sent(TOKEN), sent(TOKEN), sent(TOKEN), LEFT],
        {"outcome": "cancelled", "ttft_s": 0.3, "tpot_s": 0.1, "output_tokens": 3, "e2e_s": None, "error_type": None},
    ),
    "a client that leaves after the end mark has had it all": (
        [head(), sent(TOKEN), sent(FINISH + DONE), LEFT],
        {"outcome": "ok", "e2e_s": 0.3, "duration_s": 0.4},
    ),
    "a client that leaves after the finish reason too": (
        [head(), sent(TOKEN), sent(FINISH), LEFT],
        {"outcome": "ok", "e2e_s": 0.3},
    ),
    "a server lost after the end mark has said it all": ([head(), sent(TOKEN), sent(DONE), LOST], {"outcome": "ok"}),
    "an event that the body ends in came when its bytes came": (
        [head(), sent(TOKEN[:-2]), END],
        {"outcome": "ok", "ttft_s": 0.2, "duration_s": 0.3},
    ),
    "the server refuses the connection": (
        [("lost", "connect_refused")],
        {"outcome": "error", "error_type": "connect_refused", "status": None},
    ),
    "the server is lost amid tokens: the first token stands": (
        [head(), sent(TOKEN), sent(TOKEN), LOST],
        {"outcome": "error", "error_type": "upstream_reset", "ttft_s": 0.2, "tpot_s": None, "e2e_s": None},
    ),
    "the server is lost after its head": ([head(), LOST], {"outcome": "error", "status": 200, "ttft_s": None}),
    "a stream closed short of its end mark was cut": (
        [head(), sent(TOKEN), UNFRAMED_END],
        {"outcome": "error", "error_type": "upstream_closed"},
    ),
    "a stream closed after its end mark was not": ([head(), sent(TOKEN + DONE), UNFRAMED_END], {"outcome": "ok"}),
    "a framed stream without any end mark is whole": ([head(), sent(TOKEN), END], {"outcome": "ok"}),
    "a JSON body ended by the close is whole": ([JSON_HEAD, sent(ANSWER), UNFRAMED_END], {"outcome": "ok"}),
    "a stream of comments alone holds no token": ([head(), sent(b": ping\n\n"), END], {"outcome": "no_output"}),
    "junk among events that say there is no token": (
        [head(), sent(ROLE), sent(b"data: junk\n\n"), sent(FINISH), END],
        {"outcome": "no_output", "unparsed_events": 1},
    ),
    "a body of no type that no dialect reads was not cut": (
        [head(200, ""), sent(b"<p>hello</p>"), UNFRAMED_END],
        {"outcome": "ok", "unparsed_events": 1},
    ),
    "a client that leaves an unread body": (
        [head(200, "image/png"), sent(b"\x89PNG"), LEFT],
        {"outcome": "cancelled", "unparsed_events": 1},
    ),
    "our own limit cuts the wait": ([TIMED_OUT], {"outcome": "timeout", "error_type": "timeout", "ttft_s": None}),
    "our own limit cuts the stream": (
        [head(), sent(TOKEN), TIMED_OUT],
        {"outcome": "timeout", "ttft_s": 0.2, "e2e_s": None, "tpot_s": None},
    ),
    "the first end counts, whatever comes after": (
        [head(), sent(TOKEN), LEFT, sent(TOKEN), END, LOST, TIMED_OUT, head(), LEFT],
        {"outcome": "cancelled", "token_events": 1, "duration_s": 0.3},
    ),
    "an error among the events, then the client leaves": (
        [head(), sent(TOKEN), sent(b'data: {"error":{"type":"boom"}}\n\n'), LEFT],
        {"outcome": "error", "error_type": "boom"},
    ),
    "500": ([head(500, "text/plain"), sent(b"Internal Server Error"), END], {"outcome": "error", "error_type": "500"}),
    "502 with a JSON body": (
        [head(502, "application/json"), sent(b'{"error":{"type":"bad_gateway"}}'), END],
        {"outcome": "error", "error_type": "bad_gateway"},
    ),
    "503 is a rejection": ([head(503, ""), END], {"outcome": "rejected", "error_type": "503"}),
    "529 is an error": ([head(529, ""), END], {"outcome": "error", "error_type": "529"}),
    "429 is a quota": ([head(429, "application/json"), sent(b"{}"), END], {"outcome": "quota", "error_type": "429"}),
    "429 whose body says overloaded is a rejection": (
        [head(429, "application/json"), sent(b'{"error":"x","error_type":"overloaded"}'), END],
        {"outcome": "rejected", "error_type": "overloaded"},
    ),
    "400": ([head(400, "application/json"), sent(b"{}"), END], {"outcome": "client_error", "error_type": "400"}),
    "404 with a body that is no JSON": (
        [head(404, "text/html"), sent(b"<h1>no</h1>"), END],
        {"outcome": "client_error", "error_type": "404", "unparsed_events": 0},
    ),
    "an error status stands though its body is lost": ([head(500), LOST], {"outcome": "error", "error_type": "500"}),
    "an error status stands though the client leaves": ([head(400), LEFT], {"outcome": "client_error"}),
    "an error status of a stream's type is no stream": (
        [head(500, "text/event-stream"), sent(TOKEN), END],
        {"outcome": "error", "token_events": 0, "streamed": False},
    ),
    "a redirection holds no token": ([head(307, ""), END], {"outcome": "no_output"}),
    "no content": ([head(204, ""), END], {"outcome": "no_output", "output_tokens": 0}),
    "an empty JSON answer": (
        [JSON_HEAD, sent(b'{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}'), END],
        {"outcome": "no_output", "finish_reasons": ("stop",)},
    ),
    "a JSON answer that says error": (
        [JSON_HEAD, sent(b'{"error":{"type":"oops"}}'), END],
        {"outcome": "error", "error_type": "oops"},
    ),
    "a JSON answer of another shape": ([JSON_HEAD, sent(b'{"hello":1}'), END], {"outcome": "ok", "unparsed_events": 1}),
    "a JSON answer cut short": ([JSON_HEAD, sent(ANSWER[:30]), LOST], {"outcome": "error", "output_tokens": None}),
    "a streamed ask answered whole": (
        [JSON_HEAD, sent(ANSWER), END],
        {"outcome": "ok", "stream": True, "streamed": False, "ttft_s": None, "e2e_s": 0.3, "output_tokens": 5},
    ),
    "a coding nobody knows": (
        [head(200, content_encoding="rot13"), sent(TOKEN), END],
        {"outcome": "ok", "unparsed_events": 1, "ttft_s": None, "e2e_s": 0.3},
    ),
    "a packing that turns out corrupt": (
        [head(200, content_encoding="gzip"), sent(gzip.compress(TOKEN)[:-4] + b"????????"), sent(b"more"), END],
        {"outcome": "ok", "unparsed_events": 1},
    ),
    "a body of an unread type still ends": (
        [head(200, "image/png"), sent(b"\x89PNG"), END],
        {"outcome": "ok", "unparsed_events": 1, "streamed": False},
    ),
    "a problem document is JSON": (
        [head(422, "application/problem+json"), sent(b'{"type":"error","code":"bad_n"}'), END],
        {"outcome": "client_error", "error_type": "bad_n"},
    ),
}


@pytest.mark.parametrize("sentence", ENDS)
def test_ends(sentence: str) -> None:
    steps, expect = ENDS[sentence]
    check(run(steps), expect)


def test_a_dialect_without_an_end_mark_is_whole_when_the_connection_closes() -> None:
    stream = STREAMS["S-triton_generate_stream"]
    exchange = stream.started()
    for at_ns, data in stream.reads:
        exchange.feed(data, at_ns)
    exchange.response_ended(stream.end_ns, framed=False)
    check(exchange.record(), stream.expect)


def test_an_answer_has_finished_when_each_choice_has() -> None:
    steps = [head(), sent(TOKEN), sent(FINISH), LEFT]
    other = FINISH.replace(b'"index":0', b'"index":1')
    assert run(steps, Exchange(ask(n=2), 0)).outcome == "cancelled"
    assert run([*steps[:-1], sent(other), LEFT], Exchange(ask(n=2), 0)).outcome == "ok"


def test_a_server_that_means_overload_by_429() -> None:
    steps = [head(429, "application/json"), sent(b"{}"), END]
    assert run(steps, Exchange(ask(), 0, overload_429=True)).outcome == "rejected"
    tgi = recognise(b"/generate_stream")
    assert tgi is not None
    assert run(steps, Exchange(read_ask(tgi, b"{}"), 0)).outcome == "rejected"


def test_live_facts_follow_the_wire() -> None:
    exchange = Exchange(ask(), 1000)
    seen: list[tuple[Any, ...]] = []

    def look() -> None:
        seen.append(
            (exchange.received_at_ns, exchange.first_token_at_ns, exchange.token_events, exchange.finished_at_ns)
        )

    exchange.response_started(200, "text/event-stream", at_ns=1100)
    exchange.feed(b": ping\n\n", 1200)
    look()
    assert exchange.feed(ROLE, 1300) == 0
    look()
    assert exchange.feed(TOKEN + TOKEN, 1400) == 2
    look()
    assert exchange.feed(TOKEN, 1500) == 1
    exchange.feed(FINISH, 1600)
    look()
    assert not exchange.ended
    exchange.response_ended(1700)
    assert exchange.ended
    assert seen == [
        (None, None, 0, None),
        (1300, None, 0, None),
        (1300, 1400, 2, None),
        (1300, 1400, 3, 1600),
    ]
    assert exchange.last_token_at_ns == 1500
    assert exchange.record().longest_gap_s == pytest.approx(1e-7)


def test_each_fact_has_its_own_place_in_the_record() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8,"completion_tokens_details":%b}}\n\n'
    role = ROLE.replace(b'"model":"m"', b'"model":"m-1"')
    exchange = Exchange(ask(), 50)
    exchange.response_started(206, "text/event-stream", at_ns=60)
    reads = (
        (100, role),
        (200, b'data: {"choices":[{"index":0,"delta":{"reasoning":"x"}}]}\n\n'),
        (300, TOKEN),
        (450, b"data: {\n\n"),
        (500, TOKEN),
        (600, FINISH + usage % b'{"reasoning_tokens":3}'),
    )
    for at_ns, data in reads:
        exchange.feed(data, at_ns)
    exchange.response_ended(700)
    assert exchange.record()._asdict() == {
        "t0_ns": 50,
        "ended_at_ns": 700,
        "dialect": "openai.chat",
        "operation": "chat",
        "request_model": "m",
        "response_model": "m-1",
        "stream": True,
        "streamed": True,
        "status": 206,
        "outcome": "ok",
        "error_type": None,
        "duration_s": 650e-9,
        "ttft_s": 150e-9,
        "tpot_s": pytest.approx(300e-9 / 7),
        "e2e_s": 650e-9,
        "time_to_first_answer_s": 250e-9,
        "longest_gap_s": 200e-9,
        "input_tokens": 9,
        "output_tokens": 8,
        "streamed_tokens": 8,
        "token_count_source": "usage",
        "finish_reasons": ("stop",),
        "token_events": 3,
        "unparsed_events": 1,
    }


def test_an_event_that_only_the_end_completes_was_received_when_it_was_read() -> None:
    exchange = Exchange(ask(), 0)
    exchange.response_started(200, "text/event-stream", at_ns=1)
    assert exchange.feed(TOKEN[:-2], 5) == 0
    exchange.response_ended(9)
    assert (exchange.received_at_ns, exchange.first_token_at_ns) == (5, 5)


def test_a_byte_of_a_whole_body_is_something_received() -> None:
    exchange = Exchange(ask(stream=False), 0)
    exchange.response_started(200, "application/json", at_ns=1)
    assert exchange.received_at_ns is None
    exchange.feed(b"{", 2)
    assert exchange.received_at_ns == 2


def test_a_stream_of_no_known_kind_is_timed_from_its_first_byte_to_its_end() -> None:
    stream = STREAMS["V-unknown"]
    exchange = stream.started()
    for at_ns, data in stream.reads:
        exchange.feed(data, at_ns)
    exchange.response_ended(stream.end_ns)
    assert exchange.received_at_ns == 40 * MS
    assert exchange.record().e2e_s == 0.12


WRONG: dict[str, Callable[[Exchange], object]] = {
    "bytes before the head": lambda exchange: exchange.feed(b"x", 1),
    "an end before the head": lambda exchange: exchange.response_ended(1),
    "a record before the end": lambda exchange: exchange.record(),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_calls_out_of_order_are_the_shells_fault_and_change_nothing(sentence: str) -> None:
    exchange = Exchange(ask(), 0)
    with pytest.raises(OrderError):
        WRONG[sentence](exchange)
    check(run([head(), sent(TOKEN), END], exchange), {"outcome": "ok", "ttft_s": 0.2})


def test_a_second_head_is_out_of_order() -> None:
    exchange = Exchange(ask(), 0)
    exchange.response_started(200, "text/event-stream", at_ns=1)
    with pytest.raises(OrderError, match="a response has one"):
        exchange.response_started(200, "application/json", at_ns=2)
    assert exchange.feed(TOKEN, 3) == 1


# Limits.


def test_an_event_over_the_limit_is_skipped_and_the_stream_goes_on() -> None:
    huge = b'data: {"choices":[{"delta":{"content":"' + b"x" * sse.MAX_EVENT_BYTES + b'"}}]}\n\n'
    check(
        run([head(), sent(TOKEN), sent(huge), sent(TOKEN), END]),
        {"outcome": "ok", "token_events": 2, "unparsed_events": 1},
    )


def test_a_body_over_the_limit_is_not_read() -> None:
    huge = b'{"choices":[{"message":{"content":"' + b"x" * sse.MAX_BODY_BYTES + b'"}}]}'
    check(run([JSON_HEAD, sent(huge), END]), {"outcome": "ok", "unparsed_events": 1, "output_tokens": None})


def test_no_more_finish_reasons_than_choices_can_be() -> None:
    steps = [head()]
    steps += [
        sent(b'data: {"choices":[{"index":%d,"delta":{},"finish_reason":"stop"}]}\n\n' % index) for index in range(300)
    ]
    assert len(run([*steps, END]).finish_reasons) == 128


# Fuzz.


@given(
    status=st.sampled_from([200, 201, 302, 400, 429, 503]),
    content_type=st.sampled_from(["text/event-stream", "application/json", "application/x-ndjson", "", "text/html"])
    | st.text(max_size=20),
    coding=st.sampled_from(["", "", "gzip", "deflate", "br", "zstd"]) | st.text(max_size=8),
    reads=st.lists(st.binary(max_size=80) | st.sampled_from([ROLE, TOKEN, FINISH, DONE, b"data: {}\n\n"]), max_size=8),
    path=st.sampled_from(sorted({stream.path for stream in written()})),
)
def test_no_bytes_raise(status: int, content_type: str, coding: str, reads: list[bytes], path: str) -> None:
    dialect = recognise(path.encode())
    assert dialect is not None
    exchange = Exchange(read_ask(dialect, b'{"stream":true}'), 0)
    exchange.response_started(status, content_type, content_encoding=coding, at_ns=0)
    told = [exchange.feed(data, at_ns) for at_ns, data in enumerate(reads)]
    exchange.response_ended(len(reads))
    record = exchange.record()
    assert all(count >= 0 for count in told)
    assert sum(told) <= record.token_events <= sum(told) + 1  # the end may complete one that had no terminator
    assert (record.ttft_s is None) == (record.token_events == 0)


KEYS = [
    "choices", "delta", "index", "finish_reason", "content", "reasoning", "tool_calls", "function", "usage", "error",
    "completion_tokens", "type", "message", "text", "token", "done", "response", "meta_info", "content_block", "stop",
    "model", "generated_text", "details", "text_output", "timings",
]  # fmt: skip
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 60) | st.sampled_from(["", "x", "error", "message_start"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=14,
)


@given(shapes=st.lists(SHAPES, max_size=5), path=st.sampled_from(sorted({stream.path for stream in written()})))
def test_no_shape_of_events_raises(shapes: list[Any], path: str) -> None:
    dialect = recognise(path.encode())
    assert dialect is not None
    exchange = Exchange(read_ask(dialect, b'{"stream":true}'), 0)
    exchange.response_started(200, "text/event-stream", at_ns=0)
    reads: Reads = tuple((n, b"event: error\ndata: " * (n % 2) + b"data: " * (1 - n % 2)) for n in range(len(shapes)))
    for (at_ns, start), shape in zip(reads, shapes, strict=True):
        exchange.feed(start + json.dumps(shape).encode() + b"\n\n", at_ns)
    exchange.response_ended(len(shapes))
    record = exchange.record()
    assert record.unparsed_events + record.token_events <= len(shapes)
    assert all(isinstance(reason, str) for reason in record.finish_reasons)
