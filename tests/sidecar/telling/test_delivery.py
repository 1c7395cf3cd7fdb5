import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent import futures

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from sidecar.otlp_settings import Endpoint, read
from sidecar.telling.delivery import GrpcSender, HttpSender, Sent, sender
from tests.sidecar.receiver import receiving

PARTIAL: bytes = ExportTraceServiceResponse(
    partial_success=ExportTracePartialSuccess(rejected_spans=3)
).SerializeToString()


def endpoint(url: str, **environ: str) -> Endpoint:
    found = read({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environ}).traces
    assert found is not None
    return found


@contextlib.contextmanager
def sending(to: Endpoint) -> Iterator[HttpSender | GrpcSender]:
    made = sender(to, "traces")
    try:
        yield made
    finally:
        made.close()


def test_a_body_arrives_as_the_bytes_it_is_over_one_connection() -> None:
    with receiving() as receiver, sending(endpoint(receiver.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=1")) as out:
        assert out.send(b"abc", timeout_s=5) == Sent("accepted")
        assert out.send(b"def", timeout_s=5) == Sent("accepted")
        assert receiver.bodies == [("/v1/traces", b"abc"), ("/v1/traces", b"def")]
        assert receiver.headers[0]["content-type"] == "application/x-protobuf"
        assert receiver.headers[0]["x-key"] == "1"


def test_a_packed_body_is_the_same_each_time() -> None:
    with (
        receiving() as receiver,
        sending(endpoint(receiver.url, OTEL_EXPORTER_OTLP_COMPRESSION="gzip")) as out,
    ):
        out.send(b"abc" * 100, timeout_s=5)
        assert receiver.bodies[0][1] == b"abc" * 100
        assert receiver.headers[0]["content-encoding"] == "gzip"


STATUSES = {
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
    400: "refused",
} | dict.fromkeys((401, 404, 413, 500, 301), "refused")


@pytest.mark.parametrize("status", STATUSES)
def test_what_may_be_sent_again(status: int) -> None:
    with receiving() as receiver, sending(endpoint(receiver.url)) as out:
        receiver.statuses = [status]
        assert out.send(b"abc", timeout_s=5) == Sent(STATUSES[status], f"http_{status}")  # type: ignore[arg-type]
        assert out.send(b"abc", timeout_s=5).state == "accepted"


def test_case_e08_a_partial_success_is_accepted_and_its_refused_items_known() -> None:
    with receiving() as receiver, sending(endpoint(receiver.url)) as out:
        receiver.answer = PARTIAL
        assert out.send(b"abc", timeout_s=5) == Sent("accepted", refused_items=3)
        receiver.answer = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess()).SerializeToString()
        assert out.send(b"abc", timeout_s=5) == Sent("accepted")
        receiver.answer = b"\xff\xff not protobuf"
        assert out.send(b"abc", timeout_s=5) == Sent("accepted")


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with sending(endpoint("http://127.0.0.1:1")) as out:
        assert out.send(b"abc", timeout_s=5) == Sent("unavailable", "connection")


def test_an_endpoint_that_never_answers_is_a_timeout() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with sending(endpoint(f"http://127.0.0.1:{deaf.getsockname()[1]}")) as out:
            assert out.send(b"abc", timeout_s=0.2) == Sent("unavailable", "timeout")


TIMEOUT = Sent("unavailable", "timeout")
DRIPS = {
    "its head": (b"HTTP/1.1 200 OK\r\nX-A: ", TIMEOUT),
    "its status": (b"HTTP/1.1 ", TIMEOUT),
    "its body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", Sent("accepted")),
    "a body without an end": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", Sent("accepted")),
}


@pytest.mark.parametrize("case", DRIPS)
def test_an_endpoint_whose_answer_drips_holds_nobody_up(case: str) -> None:
    """A socket's own time limit begins anew with each byte: the lane would stand still for days."""
    drops, expected = DRIPS[case]
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        accepted = []
        with contextlib.suppress(OSError):
            while not over.wait(0.05):
                connection, _ = server.accept()
                accepted.append(connection)
                connection.recv(65536)
                connection.sendall(drops)
                while not over.wait(0.05):
                    connection.sendall(b"a")
        for connection in accepted:
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        try:
            with sending(endpoint(f"http://127.0.0.1:{server.getsockname()[1]}")) as out:
                began_s = time.monotonic()
                assert out.send(b"abc", timeout_s=0.5) == expected
                assert time.monotonic() - began_s < 10
        finally:
            over.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_an_endpoint_that_was_restarted_is_reached_at_once() -> None:
    with receiving() as first, sending(endpoint(first.url)) as out:
        assert out.send(b"abc", timeout_s=5).state == "accepted"
        port = first.port
        first_bodies = first.bodies
    assert len(first_bodies) == 1
    with receiving(port) as second:
        again = HttpSender(endpoint(second.url))
        assert again.send(b"abc", timeout_s=5).state == "accepted"
        again.close()


@contextlib.contextmanager
def grpc_receiving(codes: list[grpc.StatusCode]) -> Iterator[tuple[str, list[bytes]]]:
    """A gRPC endpoint that fails with these codes first."""
    bodies: list[bytes] = []

    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        bodies.append(body)
        if codes:
            context.abort(codes.pop(0), "as told")
        return PARTIAL

    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService", {"Export": grpc.unary_unary_rpc_method_handler(export)}
    )
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", bodies
    finally:
        server.stop(0).wait()


def test_grpc_carries_the_same_bytes() -> None:
    codes = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT]
    with (
        grpc_receiving(codes) as (url, bodies),
        sending(endpoint(url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_HEADERS="x-key=1")) as out,
    ):
        assert isinstance(out, GrpcSender)
        assert out.send(b"abc", timeout_s=10) == Sent("unavailable", "grpc_unavailable")
        assert out.send(b"abc", timeout_s=10) == Sent("refused", "grpc_invalid_argument")
        assert out.send(b"abc", timeout_s=10) == Sent("accepted", refused_items=3)
        assert bodies == [b"abc"] * 3
