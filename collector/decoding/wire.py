"""The parts that every OTLP message shares: attributes, who speaks, and the tallies of what was refused.

A sender says the same of itself in every body, and of each series at every interval. What was read of such bytes is
therefore kept (`said`, `sender`, `stream_id`), a bounded number of them, and none that is long.
"""

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as WireResource

from collector.values.measurement import RejectedError, Resource, Tally
from slo import signals

MAX_ATTRIBUTES = 128
MAX_NAME = 256
MAX_KEPT_BYTES = 1024
"""Longer attributes are read anew each time: memory is for what is short and comes often."""
MAX_REASONS = 32
MAX_REASON = 300
FURTHER = "further faults"
UNKNOWN_SERVICE = "unknown_service"
FOREIGN_SOURCE = "otel"

Attributes = Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Sender:
    """Who speaks; `ours` when it is a sidecar, and all its attributes, sorted."""

    resource: Resource
    ours: bool
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a point says in its attributes; `model` is '' when it names none."""

    texts: Attributes
    model: str


def said(sealed: Sequence[bytes]) -> Said:
    """The attributes of a point, opened. Raises `RejectedError` when they cannot be read."""
    raw = tuple(sealed)
    return _said(raw) if sum(map(len, raw)) <= MAX_KEPT_BYTES else _said.__wrapped__(raw)


@functools.lru_cache(maxsize=16_384)
def _said(raw: tuple[bytes, ...]) -> Said:
    try:
        found = attributes(map(KeyValue.FromString, raw[: MAX_ATTRIBUTES + 1]))
    except DecodeError:
        raise RejectedError("attributes that cannot be read") from None
    return Said(found, model(found))


def sender(raw: bytes) -> Sender:
    """Who speaks, by its sealed resource. Raises protobuf's `DecodeError`."""
    return _sender(raw) if len(raw) <= 4 * MAX_KEPT_BYTES else _sender.__wrapped__(raw)


@functools.lru_cache(maxsize=1_024)
def _sender(raw: bytes) -> Sender:
    found = attributes(WireResource.FromString(raw).attributes)
    return Sender(resource(found), signals.SOURCE in found, tuple(sorted(found.items())))


@functools.lru_cache(maxsize=16_384)
def stream_id(of: Sender, scope: str, metric: str, point: Said, start_ns: int) -> str:
    """Thirty-two hex digits that tell one cumulative stream from every other. `start_ns` tells apart senders that share
    a resource, and the lives of one; 0 when it is not known, and below it what remembers deltas."""
    parts = [*of.attributes, scope, metric, *sorted(point.texts.items()), start_ns]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def attributes(found: Iterable[KeyValue]) -> dict[str, str]:
    """Attributes as text; the first `MAX_ATTRIBUTES` of them, nested values left out."""
    texts: dict[str, str] = {}
    for pair in found:
        if len(texts) >= MAX_ATTRIBUTES:
            break
        text = value_text(pair.value)
        if text is not None:
            texts[pair.key[:MAX_NAME]] = text
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


class Reasons:
    """How many points or spans of a body met which fate. A reason may quote its sender: beyond `MAX_REASONS` of them
    and `MAX_REASON` characters no more is quoted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str, count: int = 1) -> None:
        """So many more of that reason."""
        reason = reason[:MAX_REASON]
        if reason not in self._counts and len(self._counts) >= MAX_REASONS:
            reason = FURTHER
        if count:
            self._counts[reason] += count

    def take(self, others: "Reasons") -> None:
        """All that others counted, too."""
        for tally in others.tallies():
            self.add(tally.reason, tally.count)

    def tallies(self) -> tuple[Tally, ...]:
        """Sorted by reason."""
        return tuple(Tally(reason, count) for reason, count in sorted(self._counts.items()))
