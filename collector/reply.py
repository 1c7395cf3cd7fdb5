"""What an OTLP/HTTP sender is answered, in the encoding it spoke: success, partial success, or a google.rpc.Status.

A status has two fields that matter here (code, a varint; message, a string), so it is written by hand rather than by
another dependency.
"""

from dataclasses import dataclass
from typing import Literal

import orjson
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.body import JSON, PROTOBUF, Form

Kind = Literal["traces", "metrics"]
_RPC_CODES = {400: 3, 401: 16, 413: 8, 415: 3, 500: 13, 503: 14}
_UNKNOWN = 2
MESSAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, media type and bytes of an answer."""

    status: int
    form: Form
    content: bytes


def accepted(kind: Kind, form: Form, *, rejected: int = 0, why: str = "") -> Reply:
    """200: everything was taken, or all but `rejected` points or spans, which are not to be sent again."""
    why = _short(why)
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


def refused(status: int, message: str, form: Form) -> Reply:
    """An error, with a google.rpc.Status as its body."""
    code, message = _RPC_CODES.get(status, _UNKNOWN), _short(message)
    if form == JSON:
        return Reply(status, JSON, orjson.dumps({"code": code, "message": message}))
    text = message.encode()
    return Reply(status, PROTOBUF, b"\x08" + _varint(code) + b"\x12" + _varint(len(text)) + text)


def _short(message: str) -> str:
    return message.encode()[:MESSAGE_BYTES].decode(errors="ignore")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
