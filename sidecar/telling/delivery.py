"""Brings encoded OTLP bodies to an endpoint, over HTTP or gRPC, and says what became of each.

Blocking: runs on an exporter's own thread. A body is sent as the bytes it is, so that a second sending is the first
one again and a receiver that remembers digests counts it once. What may be sent again follows the OTLP specification
("failures"): 429, 502, 503, 504 and a broken connection; everything else the endpoint has refused for good.
"""

import contextlib
import gzip
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from sidecar.otlp_settings import Endpoint, Lane

_RETRYABLE_STATUS = frozenset((429, 502, 503, 504))
_MAX_ANSWER_BYTES = 1 << 20
_SERVICES = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a body. `refused_items` of an accepted one were not taken; `wait_s` is the endpoint's wish."""

    state: Literal["accepted", "refused", "unavailable"]
    reason: str = ""
    refused_items: int = 0
    wait_s: float | None = None


class HttpSender:
    """OTLP/HTTP with binary protobuf, over one connection that is kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._url = urlsplit(endpoint.url)
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._late = threading.Event()
        self._headers = {"content-type": "application/x-protobuf", "user-agent": "firsttoken-sidecar"}
        if endpoint.gzip:
            self._headers["content-encoding"] = "gzip"
        self._headers.update(endpoint.headers)

    def send(self, body: bytes, *, timeout_s: float) -> Sent:
        """Send one body; never raises, and takes no longer than `timeout_s` once it is connected."""
        data = gzip.compress(body, mtime=0) if self._endpoint.gzip else body
        with self._limited(timeout_s):
            try:
                try:
                    return self._post(data, timeout_s)
                except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    self.close()  # a kept connection that the endpoint had closed meanwhile
                    return self._post(data, timeout_s)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                late = self._late.is_set() or isinstance(error, TimeoutError)
                return Sent("unavailable", "timeout" if late else "connection")

    @contextlib.contextmanager
    def _limited(self, timeout_s: float) -> Iterator[None]:
        """Break the connection after `timeout_s`: the limit of a socket begins anew with each byte that drips in."""
        self._late.clear()
        timer = threading.Timer(timeout_s, self._break)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _break(self) -> None:
        self._late.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _post(self, data: bytes, timeout_s: float) -> Sent:
        connection = self._connection or self._connect()
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        self._connection = connection
        path = f"{self._url.path or '/'}{'?' + self._url.query if self._url.query else ''}"
        connection.request("POST", path, body=data, headers=self._headers)
        self._socket = connection.sock
        if self._late.is_set():
            raise TimeoutError
        answer = connection.getresponse()
        if self._late.is_set():
            raise TimeoutError  # what looks like a short head is a broken one
        content = answer.read(_MAX_ANSWER_BYTES)
        if self._late.is_set() or not answer.isclosed():
            self.close()  # a longer answer than any export needs; the status stands
        if 200 <= answer.status < 300:
            return Sent("accepted", refused_items=_refused_items(content))
        reason = f"http_{answer.status}"
        if answer.status in _RETRYABLE_STATUS:
            return Sent("unavailable", reason, wait_s=_retry_after_s(answer.getheader("retry-after")))
        return Sent("refused", reason)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port)
        context = ssl.create_default_context(cafile=self._endpoint.certificate)
        if self._endpoint.client_certificate:
            context.load_cert_chain(self._endpoint.client_certificate, self._endpoint.client_key)
        return http.client.HTTPSConnection(host, port, context=context)

    def close(self) -> None:
        """Let go of the connection; the next sending makes another."""
        self._socket = None
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None


class GrpcSender:
    """OTLP/gRPC; the bodies go as the bytes they are."""

    def __init__(self, endpoint: Endpoint, lane: Lane) -> None:
        import grpc  # type: ignore[import-untyped]  # 20 MB that only this protocol needs

        self._grpc: Any = grpc
        url = urlsplit(endpoint.url)
        target = f"{url.hostname}:{url.port or 4317}"
        compression = grpc.Compression.Gzip if endpoint.gzip else grpc.Compression.NoCompression
        if url.scheme == "https":
            self._channel = grpc.secure_channel(target, _credentials(grpc, endpoint), compression=compression)
        else:
            self._channel = grpc.insecure_channel(target, compression=compression)
        self._export = self._channel.unary_unary(_SERVICES[lane])
        self._metadata = tuple(endpoint.headers)

    def send(self, body: bytes, *, timeout_s: float) -> Sent:
        """Send one body; never raises."""
        code = self._grpc.StatusCode
        try:
            content = self._export(body, timeout=timeout_s, metadata=self._metadata)
        except self._grpc.RpcError as error:
            status = error.code()
            reason = f"grpc_{status.name.lower()}"
            again = (code.UNAVAILABLE, code.DEADLINE_EXCEEDED, code.ABORTED, code.RESOURCE_EXHAUSTED, code.CANCELLED)
            return Sent("unavailable" if status in again else "refused", reason)
        return Sent("accepted", refused_items=_refused_items(content))

    def close(self) -> None:
        """Let go of the channel, for good."""
        self._channel.close()


def sender(endpoint: Endpoint, lane: Lane) -> HttpSender | GrpcSender:
    """The sender that an endpoint's protocol asks for."""
    return GrpcSender(endpoint, lane) if endpoint.protocol == "grpc" else HttpSender(endpoint)


def _credentials(grpc: Any, endpoint: Endpoint) -> Any:
    def content(path: str | None) -> bytes | None:
        if path is None:
            return None
        with open(path, "rb") as file:  # noqa: PTH123  one read
            return file.read()

    return grpc.ssl_channel_credentials(
        content(endpoint.certificate), content(endpoint.client_key), content(endpoint.client_certificate)
    )


def _refused_items(content: bytes) -> int:
    """`rejected_spans` or `rejected_data_points` of a partial success: both are field 1 of field 1."""
    if not content:
        return 0
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        return int(ExportTraceServiceResponse.FromString(content).partial_success.rejected_spans)
    except DecodeError:
        return 0  # accepted, in whatever words


def _retry_after_s(value: str | None) -> float | None:
    return float(value) if value is not None and value.isdigit() else None
