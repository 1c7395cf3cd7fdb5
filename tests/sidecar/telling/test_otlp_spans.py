from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from sidecar.http.trace_context import SpanContext
from sidecar.said.dialects import read_ask, recognise
from sidecar.said.exchange import Exchange
from sidecar.said.record import EndedRequest, Record
from sidecar.telling.otlp_spans import MAX_COMBINATIONS, encode, kept
from tests.sidecar.receiver import attributes
from tests.sidecar.rig import CHAT, STOP, delta

S = 1_000_000_000
CONTEXT = SpanContext(bytes(range(16)), bytes(range(8)), bytes(range(8, 16)))
USAGE = b'data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'


def record(reads: Iterable[bytes] = (delta("a"), delta("b"), USAGE, STOP), status: int = 200) -> Record:
    """Of a chat request whose answer came one read a second."""
    dialect = recognise(CHAT.encode())
    assert dialect is not None
    exchange = Exchange(read_ask(dialect, b'{"model":"m","stream":true,"messages":[]}'), 5 * S)
    exchange.response_started(status, "text/event-stream", at_ns=5 * S)
    at_ns = 5 * S
    for read in reads:
        at_ns += S
        exchange.feed(read, at_ns)
    exchange.response_ended(at_ns)
    return exchange.record()


def ended(of: Record | None = None, **more: Any) -> EndedRequest:
    request: dict[str, Any] = {
        "record": of or record(),
        "context": CONTEXT,
        "start_unix_ns": 1_700_000_000 * S,
        "request_class": None,
        "request_id": None,
        "kv_at_arrival": None,
        "kv_max": None,
        "violated": False,
    }
    return EndedRequest(**(request | more))


def span(request: EndedRequest) -> Span:
    found: list[Span] = list(ScopeSpans.FromString(encode(request)).spans)
    assert len(found) == 1
    return found[0]


def test_a_span_says_what_the_design_lists() -> None:
    found = span(ended(request_class="batch", request_id="r-1", kv_at_arrival=0.25, kv_max=0.5))
    assert found.name == "chat m"
    assert found.kind == Span.SPAN_KIND_SERVER
    assert (found.trace_id, found.span_id, found.parent_span_id) == (
        CONTEXT.trace_id,
        CONTEXT.span_id,
        CONTEXT.parent_id,
    )
    assert found.end_time_unix_nano - found.start_time_unix_nano == 4 * S
    assert attributes(found.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.latency.time_to_first_token": 1.0,
        "gen_ai.latency.time_per_output_token": 0.5,
        "gen_ai.latency.e2e": 4.0,
        "firsttoken.outcome": "ok",
        "firsttoken.stream": True,
        "firsttoken.time_to_first_answer": 1.0,
        "firsttoken.class": "batch",
        "firsttoken.token_count_source": "usage",
        "firsttoken.longest_gap": 1.0,
        "firsttoken.dialect": "openai.chat",
        "firsttoken.kv_cache.occupancy": 0.25,
        "firsttoken.kv_cache.occupancy.max": 0.5,
        "firsttoken.request_id": "r-1",
    }
    assert found.status.code == Status.STATUS_CODE_UNSET


def test_what_is_unknown_is_absent() -> None:
    failed = span(ended(record(reads=(), status=500)))
    found = attributes(failed.attributes)
    assert "gen_ai.latency.time_to_first_token" not in found
    assert "gen_ai.response.finish_reasons" not in found
    assert "firsttoken.request_id" not in found
    assert found["error.type"] == "500"
    assert failed.status.code == Status.STATUS_CODE_ERROR


def test_a_root_span_has_no_parent_and_a_long_model_is_cut() -> None:
    assert span(ended(context=CONTEXT._replace(parent_id=None))).parent_span_id == b""
    found = span(ended(record()._replace(request_model="m" * 1000)))
    assert found.name == "chat " + "m" * 200
    assert attributes(found.attributes)["gen_ai.request.model"] == "m" * 200


def test_a_span_without_a_model_is_named_by_its_operation() -> None:
    assert span(ended(record()._replace(request_model=None))).name == "chat m-1"
    assert span(ended(record()._replace(request_model=None, response_model=None))).name == "chat"


# Each in turn after a plain one: what requests have in common is written once, and must not outlive a difference.
DIFFERENCES: dict[str, Any] = {
    "gen_ai.operation.name": {"operation": "text_completion"},
    "gen_ai.request.model": {"request_model": "m-2"},
    "gen_ai.response.model": {"response_model": "m-2"},
    "gen_ai.response.finish_reasons": {"finish_reasons": ("length", "stop")},
    "error.type": {"error_type": "upstream_closed"},
    "firsttoken.outcome": {"outcome": "cancelled"},
    "firsttoken.stream": {"stream": False},
    "firsttoken.token_count_source": {"token_count_source": "chunks"},
    "firsttoken.dialect": {"dialect": "tgi"},
    "gen_ai.usage.input_tokens": {"input_tokens": 300},
    "gen_ai.usage.output_tokens": {"output_tokens": 70_000},
    "gen_ai.latency.e2e": {"e2e_s": 0.0},
}


@pytest.mark.parametrize("key", DIFFERENCES)
def test_each_span_says_its_own(key: str) -> None:
    plain = attributes(span(ended()).attributes)
    ((_, value),) = DIFFERENCES[key].items()
    expected = list(value) if isinstance(value, tuple) else value
    for _ in range(2):
        assert attributes(span(ended(record()._replace(**DIFFERENCES[key]))).attributes) == plain | {key: expected}
    assert attributes(span(ended()).attributes) == plain


def test_more_combinations_than_are_kept_are_written_all_the_same() -> None:
    models = [f"m-{number}" for number in range(MAX_COMBINATIONS + 10)]
    assert [span(ended(record()._replace(request_model=model))).name for model in models * 2] == [
        f"chat {model}" for model in models * 2
    ]


@given(
    tokens=st.one_of(st.none(), st.integers(0, 1 << 40)),
    seconds=st.one_of(st.none(), st.floats(0, 1e6)),
    request_id=st.one_of(st.none(), st.text(min_size=1, max_size=128)),
)
def test_any_numbers_read_back(tokens: int | None, seconds: float | None, request_id: str | None) -> None:
    of = record()._replace(input_tokens=tokens, tpot_s=seconds)
    found = attributes(span(ended(of, request_id=request_id)).attributes)
    assert found.get("gen_ai.usage.input_tokens") == tokens
    assert found.get("gen_ai.latency.time_per_output_token") == seconds
    assert found.get("firsttoken.request_id") == request_id


def test_no_word_of_prompt_or_completion_is_in_a_span() -> None:
    assert b"secret" not in encode(ended(record(reads=(delta("secret"), STOP))))


def test_violators_are_always_kept_and_the_rest_by_their_trace() -> None:
    request = ended()
    assert kept(request, ratio=1)
    assert not kept(request, ratio=0)
    assert kept(ended(violated=True), ratio=0)
    share = 0
    for number in range(1000):
        trace_id = (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).to_bytes(16, "big")
        share += kept(ended(request.record, context=CONTEXT._replace(trace_id=trace_id)), ratio=0.3)
    assert 250 < share < 350


def test_a_span_says_what_the_queue_guard_predicted_and_who_would_be_late() -> None:
    known = attributes(span(ended(predicted_ttft_s=1.5, verdict="would_shed")).attributes)
    assert known["firsttoken.queue_guard.predicted_ttft"] == 1.5
    assert known["firsttoken.queue_guard.verdict"] == "would_shed"
    usual = attributes(span(ended(predicted_ttft_s=0.1)).attributes)
    assert "firsttoken.queue_guard.verdict" not in usual
    assert not [key for key in attributes(span(ended()).attributes) if "queue_guard" in key]
