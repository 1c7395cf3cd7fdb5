"""Answers, read back by the protocol's own classes."""

import orjson
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.doors.body import JSON, PROTOBUF
from collector.doors.reply import MESSAGE_BYTES, Refusal, accepted, refused, rpc_code, rpc_status


def test_full_success_is_an_empty_message() -> None:
    assert accepted("metrics", PROTOBUF).content == b""
    assert accepted("traces", JSON).content == b"{}"


def test_partial_success_says_how_many_and_why() -> None:
    points = ExportMetricsServiceResponse.FromString(accepted("metrics", PROTOBUF, rejected=3, why="bad").content)
    assert (points.partial_success.rejected_data_points, points.partial_success.error_message) == (3, "bad")
    spans = ExportTraceServiceResponse.FromString(accepted("traces", PROTOBUF, rejected=2, why="old").content)
    assert (spans.partial_success.rejected_spans, spans.partial_success.error_message) == (2, "old")
    said = orjson.loads(accepted("metrics", JSON, rejected=3, why="bad").content)
    assert said == {"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "bad"}}


@pytest.mark.parametrize(("status", "code"), [(400, 3), (401, 16), (413, 8), (503, 14), (418, 2)])
def test_a_refusal_reads_back_as_a_status(status: int, code: int) -> None:
    for message in ("", "short", "é" * 300, "x" * 20_000):
        reply = refused(Refusal(status, message), PROTOBUF)
        read = Status.FromString(reply.content)
        assert (reply.status, read.code) == (status, code)
        assert message.startswith(read.message)
        assert len(read.message.encode()) <= MESSAGE_BYTES
    assert orjson.loads(refused(Refusal(status, "why"), JSON).content) == {"code": code, "message": "why"}


@pytest.mark.parametrize("retry_after_s", [None, 1, 5, 86_400])
def test_grpc_is_told_when_to_come_again(retry_after_s: int | None) -> None:
    status = Status.FromString(rpc_status(Refusal(503, "busy", retry_after_s=retry_after_s)))
    assert (status.code, status.message) == (rpc_code(503), "busy")
    found = []
    for detail in status.details:
        info = RetryInfo()
        assert detail.Unpack(info)
        found.append(info.retry_delay.seconds)
    assert found == ([] if retry_after_s is None else [retry_after_s])


def test_the_longest_message_fits_twice_into_trailers() -> None:
    """Once as it is, once in the status, beside what gRPC itself sends."""
    assert len(rpc_status(Refusal(503, "é" * 5000, retry_after_s=5))) + MESSAGE_BYTES < 8192 - 1024
