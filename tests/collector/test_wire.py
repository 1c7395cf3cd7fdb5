"""What every OTLP message shares: attributes as text, who speaks, and the identity of a stream."""

import math
from collections import Counter

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as WireResource

from collector import wire
from collector.measurement import Resource, Tally
from slo import signals
from tests.collector import messages


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (AnyValue(string_value="m"), "m"),
        (AnyValue(string_value="a\0b"), "ab"),
        (AnyValue(string_value="x" * 300), "x" * 256),
        (AnyValue(int_value=-3), "-3"),
        (AnyValue(double_value=0.5), "0.5"),
        (AnyValue(bool_value=False), "false"),
        (AnyValue(array_value=ArrayValue()), None),
        (AnyValue(), None),
    ],
)
def test_scalars_are_text_and_the_rest_is_left_out(value: AnyValue, text: str | None) -> None:
    assert wire.value_text(value) == text


def test_numbers_are_numbers_and_texts_are_none() -> None:
    assert wire.value_number(AnyValue(int_value=2)) == 2.0
    assert wire.value_number(AnyValue(double_value=0.5)) == 0.5
    assert math.isnan(wire.value_number(AnyValue(string_value="2")))


def test_the_limit_of_attributes_holds() -> None:
    found = wire.attributes(messages.pairs({f"k{number}": number for number in range(500)}))
    assert len(found) == wire.MAX_ATTRIBUTES


def test_who_speaks_is_told_by_the_resource() -> None:
    found = {signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: "i", signals.ENVIRONMENT: "prod"}
    assert wire.resource({**found, signals.SOURCE: "middleware"}) == Resource("prod", "chat", "i", "middleware")
    assert wire.resource({**found, signals.SOURCE: "telepathy"}).source == "otel"
    assert wire.resource({}) == Resource("", "unknown_service", "", "otel")
    assert wire.resource({signals.SERVICE_NAME: ""}).service == "unknown_service"


def test_a_stream_is_its_sender_its_name_and_its_attributes_in_any_order() -> None:
    sender = WireResource(attributes=messages.pairs({"a": 1, "b": 2}))
    turned = WireResource(attributes=messages.pairs({"b": 2, "a": 1}))
    one = wire.stream_id(sender, "scope", "metric", point={"x": "1", "y": "2"})
    assert one == wire.stream_id(turned, "scope", "metric", point={"y": "2", "x": "1"})
    others = [
        wire.stream_id(sender, "scope", "metric", point={"x": "2", "y": "2"}),
        wire.stream_id(sender, "scope", "metrics", point={"x": "1", "y": "2"}),
        wire.stream_id(sender, "", "metric", point={"x": "1", "y": "2"}),
        wire.stream_id(WireResource(), "scope", "metric", point={"x": "1", "y": "2"}),
    ]
    assert len({one, *others}) == 5


def test_tallies_are_sorted_and_never_of_nothing() -> None:
    assert wire.tallies(Counter({"b": 2, "a": 1, "c": 0})) == (Tally("a", 1), Tally("b", 2))


def test_a_model_that_is_called_like_all_of_them_is_another() -> None:
    assert wire.model({signals.REQUEST_MODEL: "*"}) == signals.OTHER_MODEL
    assert wire.model({signals.REQUEST_MODEL: "", signals.RESPONSE_MODEL: "m*"}) == "m*"
    assert wire.model({}) == ""
