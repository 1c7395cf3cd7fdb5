"""What one sidecar sends in ten seconds, as a real one sends it: recorded once, before a source that answers so."""

import asyncio
import http.server
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rig.arms import environment, first_port, running, source
from rig.client import Fleet, once, stream

STREAMS = 8
TWO_INTERVALS_S = 24.0
"""The second metrics body is of a whole interval under load."""
SERVICE = "fleet-000"
METRICS, TRACES = "/v1/metrics", "/v1/traces"

OBJECTIVES = """service: {service}
objectives:
  - {{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}}
  - {{name: tpot, signal: tpot, percentile: 99, threshold: 50ms}}
  - {{name: answered, signal: availability, target: 99.9%}}
  - {{name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 99%}}
  - {{name: whole-answer, signal: e2e, percentile: 95, threshold: 30s}}
"""


@dataclass(frozen=True, slots=True)
class Recording:
    """The last body of metrics and the last of spans that a sidecar sent, uncompressed."""

    metrics: bytes
    spans: bytes


def spec(services: int) -> str:
    """An slo.yaml of so many services, each with the five objectives that README.md starts with."""
    return "---\n".join(OBJECTIVES.format(service=service(number)) for number in range(services))


def service(number: int) -> str:
    """All names are equally long, so that one stands where another stood."""
    return f"fleet-{number:03d}"


def record() -> Recording:
    """Run a sidecar under a little load until it has said all that it says."""
    with _Ear() as ear, source() as served, tempfile.TemporaryDirectory() as folder:
        slo = Path(folder) / "slo.yaml"
        slo.write_text(spec(1))
        to = ["--upstream", f"http://127.0.0.1:{served.port}", "--otlp-endpoint", f"http://127.0.0.1:{ear.port}"]
        places = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--slo", str(slo), "--service", SERVICE]
        manners = ["--gpu", "off", "--log-level", "error"]
        with running([sys.executable, "-m", "sidecar", *to, *places, *manners], env=environment()) as process:
            asyncio.run(_ask(first_port(process, "the sidecar")))
        return Recording(ear.last(METRICS), ear.last(TRACES))


async def _ask(port: int) -> None:
    fleet, end_s = Fleet(port), time.monotonic() + TWO_INTERVALS_S
    wires = await fleet.wires(STREAMS)
    while time.monotonic() < end_s:
        await asyncio.gather(*(once(wire, stream(chunks=20, every_s=0.02)) for wire in wires))
        await asyncio.sleep(0.2)
    fleet.close()


class _Ear:
    """An OTLP endpoint that keeps what it hears."""

    def __init__(self) -> None:
        heard: dict[str, bytes] = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                heard[self.path] = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._heard = heard
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port

    def __enter__(self) -> "_Ear":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def last(self, path: str) -> bytes:
        if path not in self._heard:
            raise SystemExit(f"the sidecar sent nothing to {path} within {TWO_INTERVALS_S:.0f} s")
        return self._heard[path]
