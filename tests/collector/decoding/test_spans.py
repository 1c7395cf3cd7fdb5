"""Spans of one shape are read as each of them is alone."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.decoding.otlp import decode_traces
from collector.decoding.spans import MAX_COLUMNS, OTHER_SPAN, SpanReading, SteppedError, latencies
from collector.values.measurement import RejectedError, Resource
from slo import signals
from tests.collector import messages
from tests.collector.messages import T0, Value
from tests.collector.sent import vllm_attributes, vllm_spans

WHO = Resource("", "chat", "i9", "otel")


def alike(count: int, **more: Value) -> list[bytes]:
    """Spans of one shape."""
    return [
        messages.span({**vllm_attributes(0.1 + number / 100), **more}).SerializeToString() for number in range(count)
    ]


def alone(spans: list[bytes]) -> Counter[tuple[object, ...]]:
    """All that is read of spans one by one."""
    found: Counter[tuple[object, ...]] = Counter()
    for span in spans:
        try:
            read = latencies(span)
        except SteppedError as error:
            found["ignored", str(error)] += 1
        except RejectedError as error:
            found["rejected", str(error)] += 1
        else:
            found.update((one.model, one.signal, one.end_ns, one.value_s) for one in read)
            found["ignored", OTHER_SPAN] += not read
    return +found


def together(spans: list[bytes]) -> Counter[tuple[object, ...]]:
    """All that is read of the same spans at once."""
    reading = SpanReading(WHO)
    reading.read(spans)
    found: Counter[tuple[object, ...]] = Counter()
    for column in reading.columns():
        pairs = zip(column.ends_ns.tolist(), column.values_s.tolist(), strict=True)
        found.update((column.model, column.signal, end_ns, value_s) for end_ns, value_s in pairs)
    found.update({("rejected", tally.reason): tally.count for tally in reading.rejected.tallies()})
    found.update({("ignored", tally.reason): tally.count for tally in reading.ignored.tallies()})
    return found


def test_spans_of_one_shape_are_learned_from_one_and_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = alike(50)
    expected = alone(spans)
    monkeypatch.setattr("collector.decoding.spans.latencies", lambda span: pytest.fail("one was read alone"))
    assert together(spans) == expected


def test_what_an_sdk_writes_has_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    body = vllm_spans([0.1] * 60)
    read_alone: list[bytes] = []
    monkeypatch.setattr("collector.decoding.spans.latencies", lambda span: read_alone.append(span) or [])
    batch = decode_traces(body, json=False)
    assert batch.span_latencies == 3 * (60 - len(read_alone))
    assert len(read_alone) < 12, "those whose numbers of tokens are as long as few others' are"


def spoilt(**changes: Value) -> bytes:
    return messages.span({**vllm_attributes(0.1), **changes}).SerializeToString()


def with_pair(pair: KeyValue) -> bytes:
    span = messages.span(vllm_attributes(0.1))
    span.attributes.append(pair)
    return span.SerializeToString()


TWICE = KeyValue(key=signals.LATENCY_TTFT, value=AnyValue(double_value=9.0))
HIDDEN = KeyValue(key="x", value=AnyValue(bytes_value=TWICE.SerializeToString()))
OTHERS = {
    "a value that is no double": spoilt(**{signals.LATENCY_E2E: 2}),
    "a value that is no number": spoilt(**{signals.LATENCY_E2E: "2"}),
    "a value that is no latency": spoilt(**{signals.LATENCY_E2E: -2.0}),
    "NaN": spoilt(**{signals.LATENCY_TTFT: math.nan}),
    "another model": spoilt(**{signals.REQUEST_MODEL: "n"}),
    "no end": messages.span(vllm_attributes(0.1), end_s=0).SerializeToString(),
    "an end beyond 63 bits": messages.span(vllm_attributes(0.1), end_s=2**63 // 10**9 + 1).SerializeToString(),
    "a clock that was set": messages.span(vllm_attributes(0.1), end_s=T0 - 5).SerializeToString(),
    "a latency twice": with_pair(TWICE),
    "a latency in a latency's clothes": with_pair(HIDDEN),
    "a list": with_pair(KeyValue(key="x", value=AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)])))),
    "a key without a value": with_pair(KeyValue(key="x")),
    "no bytes of a span": b"\x0a\xff gen_ai.latency.",
    "nothing for us": messages.span({"http.route": "/"}).SerializeToString(),
    "a mere mention": messages.span({"http.route": "gen_ai.latency.e2e"}).SerializeToString(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_unlike_is_read_alone(name: str) -> None:
    other = OTHERS[name]
    for spans in ([other] * 6, [*alike(6), other, *alike(3)], [other, *alike(6), other]):
        assert together(spans) == alone(spans)


def test_a_value_before_its_key_is_read() -> None:
    pair = KeyValue(key=signals.LATENCY_TTFT, value=AnyValue(double_value=0.5))
    key, value = KeyValue(key=pair.key).SerializeToString(), KeyValue(value=pair.value).SerializeToString()
    head = Span(start_time_unix_nano=1, end_time_unix_nano=2).SerializeToString()
    span = head + b"\x4a" + bytes((len(key) + len(value),)) + value + key
    assert together([span] * 8) == alone([span] * 8) != Counter()


def test_a_second_key_in_one_attribute_is_read_as_protobuf_reads_it() -> None:
    """Of two keys in one attribute the last one counts."""
    first, second = KeyValue(key="x", value=AnyValue(int_value=1)), KeyValue(key=signals.LATENCY_E2E)
    pair = first.SerializeToString() + second.SerializeToString()
    span = messages.span(vllm_attributes(0.1)).SerializeToString() + b"\x4a" + bytes((len(pair),)) + pair
    assert together([span] * 8) == alone([span] * 8)


@given(st.data())
def test_broken_bytes_are_read_alike_or_as_what_a_shape_does_not_look_at(data: st.DataObject) -> None:
    """Whatever byte of whatever span is another: all latencies are as when each is read alone. What is not looked at
    (a name, an id, another attribute's text) need not even be text; alone, such a span is rejected."""
    spans = [bytearray(span) for span in alike(8)]
    for _ in range(data.draw(st.integers(1, 4))):
        span = data.draw(st.sampled_from(spans))
        span[data.draw(st.integers(0, len(span) - 1))] = data.draw(st.integers(0, 255))
    broken = [bytes(span) for span in spans]
    one, other = together(broken), alone(broken)
    unread = other.pop(("rejected", "a span that cannot be read"), 0) - one.pop(
        ("rejected", "a span that cannot be read"), 0
    )
    assert not other - one, "nothing is lost"
    assert unread >= 0
    assert sum((one - other).values()) <= 3 * unread


@given(st.lists(st.floats(0, 1e17), min_size=1, max_size=30), st.integers(0, 400))
def test_any_numbers_and_lengths_are_read_alike(values: list[float], step: int) -> None:
    spans = [
        messages.span(vllm_attributes(value, number * step)).SerializeToString() for number, value in enumerate(values)
    ]
    assert together(spans) == alone(spans)


def test_models_beyond_the_limit_go_to_other() -> None:
    spans = [
        messages.span({signals.LATENCY_TTFT: 0.1, signals.REQUEST_MODEL: f"m{number}"}).SerializeToString()
        for number in range(MAX_COLUMNS + 20)
    ]
    reading = SpanReading(WHO)
    reading.read(spans)
    columns = list(reading.columns())
    assert len(columns) == MAX_COLUMNS + 1
    assert sum(column.values_s.size for column in columns) == MAX_COLUMNS + 20
    assert np.isclose(columns[-1].values_s, 0.1).all()
    assert columns[-1].model == signals.OTHER_MODEL
