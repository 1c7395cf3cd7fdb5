"""A small HTTP server on loopback that answers paths from a table and remembers what it was sent."""

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

Answers = Mapping[str, tuple[int, str]]


@contextmanager
def serve(answers: Answers) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """Serve a table of path to (status, body) for the block's length; gives the URL and the list of POSTs."""
    posted: list[tuple[str, object]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, (404, "{}"))
            self.send_response(status)
            if body.startswith("<"):
                self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self) -> None:
            posted.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
