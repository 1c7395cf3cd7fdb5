"""A shape says where the numbers of a span stand, of exactly those spans that are like the one it was learned from."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from collector.decoding.span_shapes import QUEUE_TIME, Shape, doubles, learned, times_ns
from slo import signals
from tests.collector import messages
from tests.collector.messages import NS, T0, Value
from tests.collector.sent import vllm_attributes


def span(value_s: float = 0.25, *, end_s: float = T0 + 9, **more: Value) -> bytes:
    return messages.span(
        {**vllm_attributes(value_s), signals.REQUEST_MODEL: "m", **more}, end_s=end_s
    ).SerializeToString()


def shape() -> Shape:
    found = learned(span())
    assert found is not None
    return found


def rows(*spans: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(spans), np.uint8).reshape(len(spans), -1)


def test_what_is_learned_of_one_is_read_off_another() -> None:
    one, others = shape(), rows(span(0.5, end_s=T0 + 3), span(0.75, end_s=T0 + 4))
    assert one.fits(others).tolist() == [True, True]
    assert one.model == "m"
    assert times_ns(others, one.end_at).tolist() == [(T0 + 3) * NS, (T0 + 4) * NS]
    assert {QUEUE_TIME, signals.TTFT.sql} <= {signal for signal, _ in one.values_at}
    read = {signal: doubles(others, place).tolist() for signal, place in one.values_at}
    assert read[signals.TTFT.sql] == [vllm_attributes(value_s)[signals.LATENCY_TTFT] for value_s in (0.5, 0.75)]


UNLIKE = {
    "another model": span(**{signals.REQUEST_MODEL: "n"}),
    "a latency that is none": span(**{signals.LATENCY_E2E: -2.0}),
    "NaN": span(**{signals.LATENCY_TTFT: math.nan}),
    "an end before the start": span(end_s=T0 - 5),
    "an end beyond 63 bits": span(end_s=2**63 // NS + 1),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_as_long_and_unlike_does_not_fit(name: str) -> None:
    assert shape().fits(rows(span(), UNLIKE[name])).tolist() == [True, False]


def with_attribute(pair: bytes) -> bytes:
    return span() + b"\x4a" + bytes((len(pair),)) + pair


KEY = KeyValue(key=signals.LATENCY_TTFT).SerializeToString()
VALUE = KeyValue(value=AnyValue(double_value=0.5)).SerializeToString()
SHAPELESS = {
    "a value before its key": with_attribute(VALUE + KEY),
    "a latency twice": with_attribute(KEY + VALUE),
    "a second key in one attribute": with_attribute(
        KeyValue(key="x", value=AnyValue(int_value=1)).SerializeToString() + KEY
    ),
    "a value that is no double": span(**{signals.LATENCY_E2E: 2}),
    "no latency": messages.span({"http.route": "/"}).SerializeToString(),
    "no bytes of a span": b"\x0a\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("name", SHAPELESS)
def test_what_could_be_read_two_ways_has_no_shape(name: str) -> None:
    assert learned(SHAPELESS[name]) is None
