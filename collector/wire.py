"""The parts that every OTLP message shares: attributes, who speaks, and the tallies of what was refused."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as WireResource

from collector.measurement import Resource, Tally
from slo import signals

MAX_ATTRIBUTES = 128
MAX_NAME = 256
UNKNOWN_SERVICE = "unknown_service"
FOREIGN_SOURCE = "otel"

Attributes = Mapping[str, str]


def attributes(found: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes as text; the first `MAX_ATTRIBUTES` of them, nested values left out."""
    texts: dict[str, str] = {}
    for pair in found:
        if len(texts) >= MAX_ATTRIBUTES:
            break
        text = value_text(pair.value)
        if text is not None:
            texts[pair.key] = text
    return texts


def value_text(value: AnyValue) -> str | None:
    """A scalar as text, cut to `MAX_NAME`; NUL, which PostgreSQL refuses in text, is left out."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value[:MAX_NAME].replace("\0", "")
    if kind == "int_value":
        return str(value.int_value)
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    return repr(value.double_value) if kind == "double_value" else None


def value_number(value: AnyValue) -> float:
    """A scalar as a number; NaN when it is none."""
    kind = value.WhichOneof("value")
    if kind == "double_value":
        return value.double_value
    return float(value.int_value) if kind == "int_value" else math.nan


def resource(found: Attributes) -> Resource:
    """Who speaks, by its resource attributes."""
    source = found.get(signals.SOURCE, FOREIGN_SOURCE)
    return Resource(
        environment=found.get(signals.ENVIRONMENT, ""),
        service=found.get(signals.SERVICE_NAME) or UNKNOWN_SERVICE,
        instance=found.get(signals.SERVICE_INSTANCE, ""),
        source=source if source in signals.SOURCES else FOREIGN_SOURCE,
    )


def model(found: Attributes) -> str:
    """The model that a point or span names; '' when it names none. A model that is called like all of them together
    goes to `other`, or it would be counted in the total twice."""
    named = found.get(signals.REQUEST_MODEL) or found.get(signals.RESPONSE_MODEL) or ""
    return signals.OTHER_MODEL if named == signals.ALL_MODELS else named


def stream_id(of: WireResource, *names: str, point: Attributes) -> str:
    """Thirty-two hex digits that tell one cumulative stream from every other."""
    parts = [*sorted(attributes(of.attributes).items()), *names, *sorted(point.items())]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def tallies(counts: Counter[str]) -> tuple[Tally, ...]:
    return tuple(Tally(reason, count) for reason, count in sorted(counts.items()) if count)
