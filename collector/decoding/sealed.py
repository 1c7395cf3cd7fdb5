"""OTLP messages of which some parts stay sealed: bytes, as they came, until somebody asks for them.

To open every attribute and every bucket costs more than all that is then done with them, while most say again what the
body before said. The messages here are those of opentelemetry-proto but for the fields in `_SEALED`, which the parser
hands out as bytes: the wire writes a message, a packed list and a string of bytes alike. What is sealed is not checked
by the parser; whoever opens it must (`wire`, `spans`, `distribution`). A sealed list of numbers is empty when its
sender wrote them one by one, which the wire allows and hardly anybody does: `packed` is for such a point.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar, cast

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.values.measurement import RejectedError

_SEALED = {
    "ResourceSpans": ("resource",),
    "ScopeSpans": ("spans",),
    "ResourceMetrics": ("resource",),
    "NumberDataPoint": ("attributes",),
    "Histogram": ("data_points",),
    "HistogramDataPoint": ("attributes", "bucket_counts", "explicit_bounds"),
    "ExponentialHistogram": ("data_points",),
    "ExponentialHistogramDataPoint": ("attributes",),
    "Buckets": ("bucket_counts",),
}


class ScopeSpans(Protocol):
    """The spans of one scope, each sealed."""

    spans: Sequence[bytes]


class ResourceSpans(Protocol):
    """The spans of one sender, whose resource is sealed."""

    resource: bytes
    scope_spans: Sequence[ScopeSpans]


class TracesRequest(Protocol):
    """An `ExportTraceServiceRequest`."""

    resource_spans: Sequence[ResourceSpans]


class Point(Protocol):
    """What points of every kind say; each attribute is sealed."""

    attributes: Sequence[bytes]
    start_time_unix_nano: int
    time_unix_nano: int
    flags: int


class NumberPoint(Point, Protocol):
    """A point of a sum or gauge."""

    as_int: int
    as_double: float

    def WhichOneof(self, name: str) -> str | None: ...  # noqa: N802  protobuf's name


class HistogramPoint(Point, Protocol):
    """What points of both kinds of histogram say."""

    count: int
    sum: float
    min: float
    max: float

    def HasField(self, name: str) -> bool: ...  # noqa: N802  protobuf's name


class ExplicitPoint(HistogramPoint, Protocol):
    """A histogram between bounds: eight bytes a count and a bound."""

    bucket_counts: bytes
    explicit_bounds: bytes


class Buckets(Protocol):
    """Exponential buckets from `offset` on: a varint a count."""

    offset: int
    bucket_counts: bytes


class ExponentialPoint(HistogramPoint, Protocol):
    """An exponential histogram."""

    scale: int
    zero_count: int
    zero_threshold: float
    positive: Buckets
    negative: Buckets


HistogramKind = TypeVar("HistogramKind", ExplicitPoint, ExponentialPoint)


class Data(Protocol):
    """What a metric holds, of whatever kind: the points of histograms are sealed. A gauge has no temporality, and only
    a sum may be monotonic."""

    data_points: Sequence[NumberPoint] | Sequence[bytes]
    aggregation_temporality: int
    is_monotonic: bool


class Metric(Protocol):
    """One metric."""

    name: str
    unit: str

    def WhichOneof(self, name: str) -> str | None: ...  # noqa: N802  protobuf's name


class Scope(Protocol):
    """Who in the sender measured."""

    name: str


class ScopeMetrics(Protocol):
    """The metrics of one scope."""

    scope: Scope
    metrics: Sequence[Metric]


class ResourceMetrics(Protocol):
    """The metrics of one sender, whose resource is sealed."""

    resource: bytes
    scope_metrics: Sequence[ScopeMetrics]


class MetricsRequest(Protocol):
    """An `ExportMetricsServiceRequest`."""

    resource_metrics: Sequence[ResourceMetrics]


def traces_request(body: bytes) -> TracesRequest:
    """The message of a body. Raises protobuf's `DecodeError`."""
    return cast("TracesRequest", _TRACES.FromString(body))


def metrics_request(body: bytes) -> MetricsRequest:
    """The message of a body. Raises protobuf's `DecodeError`."""
    return cast("MetricsRequest", _METRICS.FromString(body))


def exponential_point(octets: bytes) -> ExponentialPoint:
    """The exponential point that was sealed. Raises `RejectedError`."""
    return cast("ExponentialPoint", _opened(_EXPONENTIAL_POINT, octets, "a point"))


def explicit_point(octets: bytes) -> ExplicitPoint:
    """The point between bounds that was sealed. Raises `RejectedError`."""
    return cast("ExplicitPoint", _opened(_EXPLICIT_POINT, octets, "a point"))


def repeated(octets: bytes, number: int) -> Sequence[bytes]:
    """The messages that repeat field 1 or 9 of a point, each sealed. Raises `RejectedError`."""
    found: Sequence[bytes] = getattr(_opened(_REPEATED, octets, "a point"), f"of_{number}")
    return found


def packed(point: HistogramKind) -> HistogramKind:
    """The point as it would have come, had its sender not written the elements of its lists one by one. Raises
    `RejectedError` when what is sealed in it cannot be read."""
    message = cast("Message", point)
    official = getattr(metrics_pb2, message.DESCRIPTOR.name)
    whole = _opened(official, message.SerializeToString(), "bucket counts")
    return cast("HistogramKind", type(message).FromString(whole.SerializeToString()))


def _opened(kind: type[Message], octets: bytes, what: str) -> Message:
    try:
        return kind.FromString(octets)
    except DecodeError:
        raise RejectedError(f"{what} that cannot be read") from None


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    modules = common_pb2, resource_pb2, metrics_pb2, trace_pb2, metrics_service_pb2, trace_service_pb2
    for module in modules:
        pool.Add(_with_seals(module.DESCRIPTOR))
    pool.Add(_of_repeated())
    return pool


def _of_repeated() -> FileDescriptorProto:
    """The file of a message that holds what others repeat."""
    file = FileDescriptorProto(name="repeated.proto", syntax="proto3")
    message = file.message_type.add(name="Repeated")
    for number in (1, 9):
        kind, label = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.LABEL_REPEATED
        message.field.add(name=f"of_{number}", number=number, type=kind, label=label)
    return file


def _with_seals(official: FileDescriptor) -> FileDescriptorProto:
    file = FileDescriptorProto()
    official.CopyToProto(file)
    for message in file.message_type:
        _seal(message)
    return file


def _seal(message: DescriptorProto) -> None:
    for inner in message.nested_type:
        _seal(inner)
    for field in message.field:
        if field.name in _SEALED.get(message.name, ()):
            if field.type != FieldDescriptorProto.TYPE_MESSAGE:
                field.label = FieldDescriptorProto.LABEL_OPTIONAL
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")


_POOL = _pool()
_TRACES = GetMessageClass(_POOL.FindMessageTypeByName(trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR.full_name))
_METRICS = GetMessageClass(
    _POOL.FindMessageTypeByName(metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR.full_name)
)
_EXPONENTIAL_POINT, _EXPLICIT_POINT = (
    GetMessageClass(_POOL.FindMessageTypeByName(point.DESCRIPTOR.full_name))
    for point in (metrics_pb2.ExponentialHistogramDataPoint, metrics_pb2.HistogramDataPoint)
)
_REPEATED = GetMessageClass(_POOL.FindMessageTypeByName("Repeated"))
