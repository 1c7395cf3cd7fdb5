"""What every OTLP message shares: attributes as text, who speaks, and the identity of a stream."""

import math

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as WireResource

from collector.decoding import wire
from collector.values.measurement import RejectedError, Resource, Tally
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


def sent(**found: messages.Value) -> wire.Sender:
    return wire.sender(WireResource(attributes=messages.pairs(found)).SerializeToString())


def said(**found: messages.Value) -> wire.Said:
    return wire.said([pair.SerializeToString() for pair in messages.pairs(found)])


def test_a_stream_is_its_sender_its_name_its_attributes_in_any_order_and_its_start() -> None:
    one = wire.stream_id(sent(a=1, b=2), "scope", "metric", said(x="1", y="2"), 7)
    assert one == wire.stream_id(sent(b=2, a=1), "scope", "metric", said(y="2", x="1"), 7)
    others = [
        wire.stream_id(sent(a=1, b=2), "scope", "metric", said(x="2", y="2"), 7),
        wire.stream_id(sent(a=1, b=2), "scope", "metrics", said(x="1", y="2"), 7),
        wire.stream_id(sent(a=1, b=2), "", "metric", said(x="1", y="2"), 7),
        wire.stream_id(sent(), "scope", "metric", said(x="1", y="2"), 7),
        wire.stream_id(sent(a=1, b=2), "scope", "metric", said(x="1", y="2"), 8),
    ]
    assert len({one, *others}) == 6


def test_a_sidecar_is_known_by_its_source() -> None:
    assert sent(**{signals.SOURCE: "proxy"}).ours
    assert sent(**{signals.SOURCE: "telepathy"}).ours
    assert not sent(**{signals.SERVICE_NAME: "chat"}).ours


def test_attributes_that_cannot_be_read_are_rejected() -> None:
    with pytest.raises(RejectedError, match="cannot be read"):
        wire.said([b"\x0a\xff"])
    with pytest.raises(RejectedError, match="cannot be read"):
        wire.said([b"\x0a\x01\xff" * 600])


def test_long_attributes_are_read_and_not_kept() -> None:
    before = wire._said.cache_info().currsize
    assert said(**{signals.REQUEST_MODEL: "m", "long": "x" * 5000}).model == "m"
    assert wire._said.cache_info().currsize == before


def test_keys_are_cut_and_the_attributes_of_a_point_limited() -> None:
    found = wire.said([pair.SerializeToString() for pair in messages.pairs({f"k{n}": n for n in range(500)})])
    assert len(found.texts) == wire.MAX_ATTRIBUTES
    (key,) = said(**{"k" * 999: 1}).texts
    assert len(key) == wire.MAX_NAME


def test_tallies_are_sorted_and_never_of_nothing() -> None:
    reasons, others = wire.Reasons(), wire.Reasons()
    for reason, count in (("b", 2), ("a", 1), ("c", 0)):
        reasons.add(reason, count)
    others.add("a", 4)
    reasons.take(others)
    assert reasons.tallies() == (Tally("a", 5), Tally("b", 2))


def test_what_a_sender_is_quoted_with_is_limited() -> None:
    reasons = wire.Reasons()
    for number in range(1000):
        reasons.add(f"{number} is no number" * 100)
    found = reasons.tallies()
    assert len(found) == wire.MAX_REASONS + 1
    assert max(len(tally.reason) for tally in found) == wire.MAX_REASON
    assert (found[-1].reason, sum(tally.count for tally in found)) == (wire.FURTHER, 1000)


def test_a_model_that_is_called_like_all_of_them_is_another() -> None:
    assert wire.model({signals.REQUEST_MODEL: "*"}) == signals.OTHER_MODEL
    assert wire.model({signals.REQUEST_MODEL: "", signals.RESPONSE_MODEL: "m*"}) == "m*"
    assert wire.model({}) == ""
