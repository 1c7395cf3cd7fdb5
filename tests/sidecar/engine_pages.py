"""Metrics pages of engines: kept ones, and small ones written in a test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sidecar.engine import engine_requests, scrape
from sidecar.engine.engines import ENGINES, Engine
from sidecar.engine.metrics_text import Page, read_page
from tests.sidecar.streams import CAPTURES

PAGES = Path(__file__).parents[1] / "data" / "sidecar" / "pages"
NAMES = scrape.WANTED | engine_requests.names()
VLLM = ENGINES["vllm"]
TTFT_NAME = "vllm:time_to_first_token_seconds"


def kept(name: str) -> Page:
    """A page among the test data: `vllm-0.33.prom`, or a capture."""
    folder = PAGES if name.endswith(".prom") else CAPTURES
    return read_page((folder / name).read_bytes(), NAMES)


def page(*parts: str) -> Page:
    """A page of these lines."""
    return read_page("\n".join(parts).encode(), NAMES)


def engine(name: str) -> Engine:
    return ENGINES[name]


def histogram(
    name: str, edges: dict[str, int], *, labels: str = 'engine="0",model_name="m"', total_s: float | None = 1.0
) -> str:
    """A histogram's lines: counts at or under each edge."""
    brace = f"{{{labels}}}" if labels else ""
    comma = "," if labels else ""
    lines = [f'{name}_bucket{{{labels}{comma}le="{edge}"}} {count}' for edge, count in edges.items()]
    if total_s is not None:
        lines.append(f"{name}_sum{brace} {total_s}")
    return "\n".join([*lines, f"{name}_count{brace} {list(edges.values())[-1]}"])


def ttft(fast: int, slow: int, *, labels: str = 'engine="0",model_name="m"', total_s: float | None = 1.0) -> str:
    """vLLM's time to first token: `fast` requests within 0.5 s, `slow` above."""
    edges = {"0.25": 0, "0.5": fast, "+Inf": fast + slow}
    return histogram(TTFT_NAME, edges, labels=labels, total_s=total_s)


RUNNING = 'vllm:num_requests_running{engine="0",model_name="m"} 1'


@dataclass
class Written:
    """A page, where it is served, and how often it was asked for."""

    text: str
    url: str = ""
    asked: int = 0


@contextmanager
def metrics_page(text: str) -> Iterator[Written]:
    """An engine of which nothing but the page answers, which the test may write anew."""
    written = Written(text)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = written.text.encode() if self.path == "/metrics" else b""
            written.asked += bool(body)
            self.send_response(200 if body else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        written.url = f"http://127.0.0.1:{server.server_port}"
        yield written
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
