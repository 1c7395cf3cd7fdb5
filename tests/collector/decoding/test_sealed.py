"""Sealed messages hold what the official ones do, and their seals hold the bytes as they came."""

import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.decoding import sealed
from tests.collector.sent import Sdk, vllm_spans


def test_the_seals_of_metrics_hold_the_bytes_that_came() -> None:
    for exponential in (False, True):
        sdk = Sdk(exponential=exponential)
        sdk.record("gen_ai.server.time_to_first_token", [0.1, 0.2, 9.0])
        body = sdk.body()
        official = ExportMetricsServiceRequest.FromString(body).resource_metrics[0]
        found = sealed.metrics_request(body).resource_metrics[0]
        assert found.resource == official.resource.SerializeToString()
        (ours,), (theirs,) = found.scope_metrics[0].metrics, official.scope_metrics[0].metrics
        shape = theirs.WhichOneof("data")
        assert (ours.name, ours.unit, ours.WhichOneof("data")) == (theirs.name, theirs.unit, shape)
        (octets,), (whole,) = getattr(ours, shape).data_points, getattr(theirs, shape).data_points
        assert octets == whole.SerializeToString()
        point = (sealed.exponential_point if exponential else sealed.explicit_point)(octets)
        assert [KeyValue.FromString(pair) for pair in point.attributes] == list(whole.attributes)
        assert (point.count, point.sum, point.time_unix_nano) == (whole.count, whole.sum, whole.time_unix_nano)
        assert point.SerializeToString() == whole.SerializeToString()


def test_the_seals_of_traces_hold_whole_spans() -> None:
    body = vllm_spans([0.1, 0.2])
    official = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    found = sealed.traces_request(body).resource_spans[0].scope_spans[0].spans
    assert [Span.FromString(span) for span in found] == list(official)


def test_what_is_no_message_is_none_sealed_either() -> None:
    for read in (sealed.metrics_request, sealed.traces_request):
        with pytest.raises(DecodeError):
            read(b"\x0a\xff")
