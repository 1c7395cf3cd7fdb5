import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from sidecar.telling import otlp_wire as wire
from tests.sidecar.receiver import attributes

UINT64 = st.integers(0, 2**64 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
FINITE = st.floats(allow_nan=False)
TEXT = st.text(max_size=300)


@given(st.lists(UINT64, max_size=50), INT32)
def test_packed_and_zigzag_numbers_read_back(values: list[int], offset: int) -> None:
    data = wire.packed(2, values) + wire.integer(1, wire.zigzag(offset))
    buckets = ExponentialHistogramDataPoint.Buckets.FromString(data)
    assert list(buckets.bucket_counts) == values
    assert buckets.offset == offset


@given(UINT64, INT64, FINITE)
def test_fixed_numbers_read_back(time: int, count: int, value: float) -> None:
    point = NumberDataPoint.FromString(wire.fixed64(3, time) + wire.sfixed64(6, count))
    assert (point.time_unix_nano, point.as_int) == (time, count)
    assert NumberDataPoint.FromString(wire.double(4, value)).as_double == value


@given(TEXT, st.one_of(TEXT, st.booleans(), INT64, FINITE, st.lists(TEXT, max_size=5).map(tuple)))
def test_attributes_read_back(key: str, value: wire.Value) -> None:
    (found,) = Resource.FromString(wire.attribute(1, key, value)).attributes
    expected = list(value) if isinstance(value, tuple) else value
    assert attributes([found]) == {key: expected}
    assert isinstance(found, KeyValue)


@given(st.integers(0, 2**63 - 1), st.floats())
def test_a_key_known_beforehand_is_written_the_same(count: int, seconds: float) -> None:
    assert wire.integer_attribute(9, "key")(count) == wire.attribute(9, "key", count)
    assert wire.before_double(9, "key") + struct.pack("<d", seconds) == wire.attribute(9, "key", seconds)


def test_what_utf8_cannot_hold_is_replaced() -> None:
    scope = InstrumentationScope.FromString(wire.scope("a\ud800b", "1"))
    assert (scope.name, scope.version) == ("a?b", "1")


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**32, 2**64 - 1])
def test_a_varint_reads_back_at_each_length(value: int) -> None:
    assert list(ExponentialHistogramDataPoint.Buckets.FromString(wire.packed(2, [value])).bucket_counts) == [value]


def test_a_request_holds_one_resource_and_one_scope() -> None:
    data = wire.request(wire.resource([("a", "b")]), wire.scope("s", "1"), wire.block(2, wire.text(5, "span")))
    request = ExportTraceServiceRequest.FromString(data)
    (resource_spans,) = request.resource_spans
    (scope_spans,) = resource_spans.scope_spans
    assert attributes(resource_spans.resource.attributes) == {"a": "b"}
    assert (scope_spans.scope.name, scope_spans.spans[0].name) == ("s", "span")


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5), st.lists(FINITE, max_size=5))
def test_counts_between_edges_read_back(counts: list[int], bounds: list[float]) -> None:
    point = HistogramDataPoint.FromString(wire.packed_fixed64(6, counts) + wire.packed_doubles(7, bounds))
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == (counts, bounds)
