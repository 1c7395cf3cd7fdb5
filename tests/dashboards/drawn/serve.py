"""A loopback stand-in for Grafana's server: the page that was built, the dashboards, and a Prometheus behind it."""

import http.server
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.dashboards import stack
from tests.dashboards.drawn import backend

HERE = Path(__file__).parent
SITE = HERE / "dist"
ASSETS = {
    "/public/build/img/": HERE / "node_modules/@grafana/ui/dist/public/img",
    "/public/fonts/inter/": HERE / "node_modules/inter-ui/Inter (web)",
}
"""Grafana's icons and letters, where its page asks for them."""
NO_ICON = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
"""In place of the icons that only the application has."""
RESOURCES = "/api/datasources/uid/prometheus/resources/"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
SOURCE = {
    "id": 1, "uid": "prometheus", "name": "Prometheus", "type": "prometheus", "access": "proxy", "url": "",
    "readOnly": True, "isDefault": True, "jsonData": {"httpMethod": "POST", "disableRecordingRules": True},
    "meta": {"id": "prometheus", "name": "Prometheus", "type": "datasource", "module": "", "baseUrl": "",
             "metrics": True, "annotations": True, "info": {"logos": {"small": "", "large": ""}}},
}  # fmt: skip
"""The data source as Grafana's server describes it. It does not say how often Prometheus scrapes, as most do not."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as Grafana's server does, where it has something to say."""

    protocol_version = "HTTP/1.1"
    server: "_Site"

    def do_GET(self) -> None:
        path = urllib.parse.urlsplit(self.path).path
        if path == "/api/datasource":
            self._send(json.dumps(SOURCE).encode())
        elif path.startswith("/api/dashboards/"):
            self._send(json.dumps(self.server.boards[path.rsplit("/", 1)[1]]).encode())
        elif path.startswith(RESOURCES):
            self._passed(None)
        else:
            self._file(_asset(path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith(RESOURCES):
            self._passed(body)
        else:
            self._send(json.dumps(answered(json.loads(body), self.server.prometheus_url)).encode())

    def _passed(self, body: bytes | None) -> None:
        """Straight to Prometheus, and back."""
        try:
            url = f"{self.server.prometheus_url}/{self.path.removeprefix(RESOURCES)}"
            with urllib.request.urlopen(url, body, timeout=30) as answer:
                self._send(answer.read())
        except urllib.error.HTTPError as error:
            self._send(error.read(), status=error.code)

    def _file(self, path: Path) -> None:
        if path.is_file() and path.resolve().is_relative_to(HERE.resolve()):
            self._send(path.read_bytes(), TYPES.get(path.suffix, "application/octet-stream"))
        elif path.suffix == ".svg":
            self._send(NO_ICON, TYPES[".svg"])
        else:
            self._send(b"{}", status=404)

    def _send(self, body: bytes, kind: str = "application/json", *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Site(http.server.ThreadingHTTPServer):
    """What the page may ask for."""

    def __init__(self, boards: Mapping[str, Any], prometheus_url: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.boards, self.prometheus_url = boards, prometheus_url


@contextmanager
def site(boards: Mapping[str, Any], prometheus_url: str) -> Iterator[str]:
    """The page over a Prometheus; gives its URL."""
    with _Site(boards, prometheus_url) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _asset(path: str) -> Path:
    for prefix, folder in ASSETS.items():
        if path.startswith(prefix):
            return folder / path.removeprefix(prefix)
    return SITE / (path.lstrip("/") or "index.html")


def answered(request: dict[str, Any], prometheus_url: str) -> dict[str, Any]:
    """The answer to `/api/ds/query`: of each query its frames, or what Prometheus says is wrong with it."""
    start_s, end_s = int(request["from"]) / 1000, int(request["to"]) / 1000
    return {"results": {query["refId"]: _result(query, start_s, end_s, prometheus_url) for query in request["queries"]}}


def _result(query: dict[str, Any], start_s: float, end_s: float, prometheus_url: str) -> dict[str, Any]:
    of = backend.asked(query, start_s, end_s)
    path, parameters = of.parameters()
    try:
        return {"status": 200, "frames": backend.frames(of, stack.ask(prometheus_url, path, **parameters))}
    except AssertionError as error:
        return {"status": 400, "error": str(error), "frames": []}
