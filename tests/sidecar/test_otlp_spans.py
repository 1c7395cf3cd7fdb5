import dataclasses
from collections.abc import Iterable

from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from sidecar.dialects import read_ask, recognise
from sidecar.exchange import Exchange
from sidecar.otlp_spans import encode, kept
from sidecar.trace_context import SpanContext
from sidecar.watch import EndedRequest
from tests.sidecar.receiver import attributes
from tests.sidecar.rig import CHAT, STOP, delta

S = 1_000_000_000
CONTEXT = SpanContext(bytes(range(16)), bytes(range(8)), bytes(range(8, 16)))
USAGE = b'data: {"model":"m-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'


def ended(reads: Iterable[bytes] = (delta("a"), delta("b"), USAGE, STOP), status: int = 200) -> EndedRequest:
    """A chat request whose answer came one read a second."""
    dialect = recognise("POST", CHAT)
    assert dialect is not None
    exchange = Exchange(read_ask(dialect, b'{"model":"m","stream":true,"messages":[]}'), 5 * S)
    exchange.response_started(status, "text/event-stream", at_ns=5 * S)
    at_ns = 5 * S
    for read in reads:
        at_ns += S
        exchange.feed(read, at_ns)
    exchange.response_ended(at_ns)
    return EndedRequest(exchange.record(), CONTEXT, 1_700_000_000 * S, None, None, None, None, violated=False)


def span(request: EndedRequest) -> Span:
    found: list[Span] = list(ScopeSpans.FromString(encode(request)).spans)
    assert len(found) == 1
    return found[0]


def test_a_span_says_what_the_design_lists() -> None:
    full = dataclasses.replace(ended(), request_class="batch", request_id="r-1", kv_at_arrival=0.25, kv_max=0.5)
    found = span(full)
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
    found = attributes(span(ended(reads=(), status=500)).attributes)
    assert "gen_ai.latency.time_to_first_token" not in found
    assert "firsttoken.request_id" not in found
    assert found["error.type"] == "500"
    assert span(ended(reads=(), status=500)).status.code == Status.STATUS_CODE_ERROR


def test_a_root_span_has_no_parent_and_a_long_model_is_cut() -> None:
    root = dataclasses.replace(ended(), context=dataclasses.replace(CONTEXT, parent_id=None))
    assert span(root).parent_span_id == b""
    record = dataclasses.replace(ended().record, request_model="m" * 1000)
    assert len(span(dataclasses.replace(ended(), record=record)).name) == len("chat ") + 200


def test_no_word_of_prompt_or_completion_is_in_a_span() -> None:
    assert b"secret" not in encode(ended(reads=(delta("secret"), STOP)))


def test_violators_are_always_kept_and_the_rest_by_their_trace() -> None:
    request = ended()
    assert kept(request, ratio=1)
    assert not kept(request, ratio=0)
    assert kept(dataclasses.replace(request, violated=True), ratio=0)
    share = 0
    for number in range(1000):
        trace_id = (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).to_bytes(16, "big")
        share += kept(dataclasses.replace(request, context=dataclasses.replace(CONTEXT, trace_id=trace_id)), ratio=0.3)
    assert 250 < share < 350
