"""An OTLP/HTTP endpoint on a thread of its own, which can be told to fail."""

import contextlib
import gzip
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Attribute = str | bool | int | float | list[str] | None


@dataclass
class Receiver:
    """What came, and how it is answered: `statuses` are used up one a request, then 200."""

    url: str = ""
    port: int = 0
    statuses: list[int] = field(default_factory=list)
    answer: bytes = b""
    delay_s: float = 0.0
    bodies: list[tuple[str, bytes]] = field(default_factory=list)
    accepted: list[tuple[str, bytes]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for path, body in self.accepted if "traces" in path]
        return [s for r in requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    def resource_metrics(self) -> list[ResourceMetrics]:
        requests = [ExportMetricsServiceRequest.FromString(body) for path, body in self.accepted if "metrics" in path]
        return [one for request in requests for one in request.resource_metrics]

    def metrics(self) -> list[Metric]:
        return [m for rm in self.resource_metrics() for sm in rm.scope_metrics for m in sm.metrics]

    def resource(self) -> dict[str, Attribute]:
        return attributes(self.resource_metrics()[0].resource.attributes)


def attributes(pairs: object) -> dict[str, Attribute]:
    """Plain values of protobuf attributes."""
    found: dict[str, Attribute] = {}
    for pair in pairs:  # type: ignore[attr-defined]
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


@contextlib.contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.bodies.append((self.path, body))
            receiver.headers.append({key.lower(): value for key, value in self.headers.items()})
            time.sleep(receiver.delay_s)
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            if status == 200:
                receiver.accepted.append((self.path, body))
            with contextlib.suppress(ConnectionError):
                self.send_response(status)
                self.send_header("content-length", str(len(receiver.answer)))
                self.end_headers()
                self.wfile.write(receiver.answer)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", port), Handler)
    receiver.port = server.server_address[1]
    receiver.url = f"http://127.0.0.1:{receiver.port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def eventually(holds: Callable[[], bool], patience_s: float = 20) -> None:
    """Wait on this thread until something holds."""
    end_s = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)
