"""What a sender is answered, in the encoding it spoke: success, partial success, or a google.rpc.Status.

A status has three fields that matter here (code, a varint; message, a string; details, of which RetryInfo has one), so
it is written by hand rather than by another dependency.
"""

from dataclasses import dataclass
from typing import Literal

import orjson
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.doors.body import JSON, PROTOBUF, Form

Kind = Literal["traces", "metrics"]
_RPC_CODES = {400: 3, 401: 16, 408: 4, 413: 8, 415: 3, 500: 13, 501: 12, 503: 14}
_UNKNOWN = 2
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
MESSAGE_BYTES = 2048
"""Twice as much must fit into the trailers of gRPC, of which peers take 8 KiB."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, media type and bytes of an answer."""

    status: int
    form: Form
    content: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a body is not taken, by HTTP's status, and when it may come again, if it may."""

    status: int
    message: str
    retry_after_s: int | None = None


def accepted(kind: Kind, form: Form, *, rejected: int = 0, why: str = "") -> Reply:
    """200: everything was taken, or all but `rejected` points or spans, which are not to be sent again."""
    why = short(why)
    if form == JSON:
        name = "rejectedSpans" if kind == "traces" else "rejectedDataPoints"
        partial = {"partialSuccess": {name: str(rejected), "errorMessage": why}} if rejected else {}
        return Reply(200, JSON, orjson.dumps(partial))
    if kind == "traces":
        spans = ExportTraceServiceResponse()
        if rejected:
            spans.partial_success.rejected_spans = rejected
            spans.partial_success.error_message = why
        return Reply(200, PROTOBUF, spans.SerializeToString())
    points = ExportMetricsServiceResponse()
    if rejected:
        points.partial_success.rejected_data_points = rejected
        points.partial_success.error_message = why
    return Reply(200, PROTOBUF, points.SerializeToString())


def refused(refusal: Refusal, form: Form) -> Reply:
    """An error, with a google.rpc.Status as its body."""
    message = short(refusal.message)
    if form == JSON:
        return Reply(refusal.status, JSON, orjson.dumps({"code": rpc_code(refusal.status), "message": message}))
    return Reply(refusal.status, PROTOBUF, _status(rpc_code(refusal.status), message))


def rpc_code(status: int) -> int:
    """gRPC's code of an HTTP status."""
    return _RPC_CODES.get(status, _UNKNOWN)


def rpc_status(refusal: Refusal) -> bytes:
    """The google.rpc.Status that gRPC sends along; its RetryInfo says when to come again, without which a sender must
    not (OTLP, "OTLP/gRPC Throttling")."""
    status = _status(rpc_code(refusal.status), short(refusal.message))
    if refusal.retry_after_s is None:
        return status
    retry_info = _field(1, Duration(seconds=refusal.retry_after_s).SerializeToString())
    return status + _field(3, Any(type_url=_RETRY_INFO, value=retry_info).SerializeToString())


def _status(code: int, message: str) -> bytes:
    return b"\x08" + _varint(code) + _field(2, message.encode())


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def short(message: str) -> str:
    """A message cut to what answers have room for."""
    return message.encode()[:MESSAGE_BYTES].decode(errors="ignore")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
