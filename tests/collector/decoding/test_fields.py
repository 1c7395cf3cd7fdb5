"""Fields found in step stand where protobuf says, and what is unlike the type is not taken for whole."""

import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint

from collector.decoding.fields import BYTES, FIXED64, VARINT, Kind, in_step

Buckets = ExponentialHistogramDataPoint.Buckets
KINDS = (
    Kind(1, BYTES, repeated=True),
    Kind(2, FIXED64),
    Kind(3, FIXED64),
    Kind(4, FIXED64),
    Kind(5, FIXED64),
    Kind(6, VARINT),
    Kind(7, FIXED64),
    Kind(8, BYTES),
    Kind(9, BYTES),
    Kind(10, VARINT),
    Kind(12, FIXED64),
    Kind(13, FIXED64),
    Kind(14, FIXED64),
)
INNER = (Kind(1, VARINT), Kind(2, BYTES))


@st.composite
def points(draw: st.DrawFn) -> ExponentialHistogramDataPoint:
    point = ExponentialHistogramDataPoint(
        time_unix_nano=draw(st.integers(0, 2**64 - 1)),
        count=draw(st.integers(0, 2**64 - 1)),
        scale=draw(st.integers(-(2**31), 2**31 - 1)),
        flags=draw(st.integers(0, 2**32 - 1)),
    )
    if draw(st.booleans()):
        point.sum = draw(st.floats(allow_nan=False))
    if draw(st.booleans()):
        point.min, point.max = draw(st.floats(0, 1)), draw(st.floats(2, 3))
    if draw(st.booleans()):
        point.positive.offset = draw(st.integers(-(2**31), 2**31 - 1))
        point.positive.bucket_counts[:] = draw(st.lists(st.integers(0, 2**64 - 1), max_size=200))
    for key in draw(st.lists(st.text(max_size=200), max_size=3)):
        point.attributes.append(KeyValue(key=key, value=AnyValue(string_value="v")))
    return point


@given(st.lists(points(), max_size=6))
def test_every_field_of_every_message_is_found(several: list[ExponentialHistogramDataPoint]) -> None:
    walked = in_step([point.SerializeToString() for point in several], KINDS)
    assert walked.whole.all()
    assert walked.integers(3).astype(np.uint64).tolist() == [point.time_unix_nano for point in several]
    assert walked.integers(4).astype(np.uint64).tolist() == [point.count for point in several]
    assert walked.signed(6).tolist() == [point.scale for point in several]
    assert walked.fields[10].value.tolist() == [point.flags for point in several]
    assert walked.fields[5].has.tolist() == [point.HasField("sum") for point in several]
    assert walked.doubles(5).tolist() == [point.sum for point in several]
    positive = walked.inner(8, INNER)
    assert positive.whole.all()
    assert positive.signed(1).tolist() == [point.positive.offset for point in several]
    packed = [Buckets(bucket_counts=point.positive.bucket_counts).SerializeToString() for point in several]
    sizes = positive.fields[2].size.tolist()
    assert positive.octets(2).tobytes() == b"".join(
        whole[len(whole) - size :] for whole, size in zip(packed, sizes, strict=True)
    )
    for number, point in enumerate(several):
        field = walked.fields[1]
        raw = walked.data[field.at[number] : field.at[number] + field.size[number]].tobytes()
        assert ExponentialHistogramDataPoint.FromString(raw).attributes == point.attributes


@given(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(1, 2**64 - 1))
def test_fields_of_eight_bytes_that_all_have_next_are_found_as_those_of_one(tails: list[int], at_ns: int) -> None:
    """Of three at the end each message has as many as the last; of four in the middle all have two at least."""
    several = [ExponentialHistogramDataPoint(start_time_unix_nano=at_ns, time_unix_nano=number + 1) for number in tails]
    for number, point in zip(tails, several, strict=True):
        point.count, point.scale = number, 3
        point.min = 0.25
        if number:
            point.max = float(number)
        if number == 2:
            point.zero_threshold = 0.5
    walked = in_step([point.SerializeToString() for point in several], KINDS)
    assert walked.whole.all()
    assert walked.integers(2).astype(np.uint64).tolist() == [at_ns] * len(tails)
    assert walked.integers(3).tolist() == [number + 1 for number in tails]
    assert walked.integers(4).tolist() == tails
    assert walked.fields[4].has.tolist() == [number > 0 for number in tails]
    assert not walked.fields[5].has.any()
    assert walked.doubles(12).tolist() == [0.25] * len(tails)
    assert walked.doubles(13).tolist() == tails
    assert walked.doubles(14).tolist() == [0.5 if number == 2 else 0.0 for number in tails]


def written(**values: int) -> bytes:
    message: Message = ExponentialHistogramDataPoint(**values)
    return message.SerializeToString()


ODD = {
    "a field that the type does not name": written(time_unix_nano=5) + b"\x79" + bytes(8),
    "a field out of order": written(scale=3) + written(time_unix_nano=5),
    "a field twice": written(time_unix_nano=5) + written(time_unix_nano=6),
    "a field of another kind": b"\x18\x05" + written(scale=3),
    "a number of two bytes": b"\x80\x01\x00",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_not_whole_and_spoils_no_neighbour(name: str) -> None:
    good = written(time_unix_nano=7, scale=-4)
    walked = in_step([good, ODD[name], good], KINDS)
    assert walked.whole.tolist() == [True, False, True]
    assert (walked.integers(3)[[0, 2]].tolist(), walked.signed(6)[[0, 2]].tolist()) == ([7, 7], [-4, -4])


def test_no_messages_have_no_fields() -> None:
    walked = in_step([], KINDS)
    assert (walked.whole.size, walked.doubles(5).size, walked.inner(8, INNER).octets(2).size) == (0, 0, 0)
