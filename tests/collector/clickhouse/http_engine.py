"""ClickHouse's HTTP interface before the engine in this process: as much of it as the client speaks.

The engine is the real one; the way to it is ours, since no server comes with it. It keeps what was asked, with the
settings, and refuses a wrong password as a server does.
"""

import base64
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import clickhouse_connect
import lz4.frame

_INSERT = re.compile(r"\s*INSERT INTO `?(\w+)`?\s*\((.*)\)", re.DOTALL)
_OF_HTTP = {
    "query",
    "database",
    "wait_end_of_query",
    "client_protocol_version",
    "session_id",
    "query_id",
    "send_progress_in_http_headers",
    "http_headers_progress_interval_ms",
}


@dataclass
class Served:
    """The server: where it listens, and each request's settings by the text of its query. One that `is_silent` says
    200 and nothing else, as what stands before a server may."""

    port: int = 0
    is_silent: bool = False
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def _body_of(request: BaseHTTPRequestHandler) -> bytes:
    """The body, whole and unpacked."""
    headers, stream = request.headers, request.rfile
    if headers.get("transfer-encoding") != "chunked":
        return stream.read(int(headers.get("content-length", 0)))
    chunks = []
    while size := int(stream.readline(), 16):
        chunks.append(stream.read(size))
        stream.readline()
    stream.readline()
    unpack = lz4.frame.decompress if headers.get("content-encoding") == "lz4" else bytes
    return b"".join(map(unpack, chunks))


@contextmanager
def served(engine_url: str, *, user: str, password: str) -> Iterator[Served]:
    """The engine, listening on loopback until the block ends."""
    one, lock = Served(), threading.Lock()
    client: Any = clickhouse_connect.get_client(dsn=engine_url)
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = _body_of(self)
            given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            if self.headers.get("authorization") != wanted:
                return self._answer(401, b"Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)")
            statement, _, block = body.partition(b"FORMAT Native\n")
            query = given.get("query") or (body if not block else statement).decode()
            settings = {name: value for name, value in given.items() if name not in _OF_HTTP and name[:6] != "param_"}
            one.asked.append((query, settings))
            if one.is_silent:
                return self._answer(200, b"")
            try:
                with lock:
                    self._answer(200, self._performed(query, given, settings, block))
            except Exception as error:  # noqa: BLE001  the engine's own words, whatever they are
                self._answer(500, str(error).encode())
            return None

        def _performed(self, query: str, given: dict[str, str], settings: dict[str, str], block: bytes) -> bytes:
            if insert := _INSERT.match(query):
                names = [name.strip().strip("`") for name in insert[2].split(",")]
                client.raw_insert(insert[1], names, block, settings=settings, fmt="Native")
                return b""
            parameters = {name[6:]: value for name, value in given.items() if name[:6] == "param_"}
            text, native, _ = query.partition("\n FORMAT Native")
            form = "Native" if native else "TabSeparated"
            found: bytes = client.raw_query(text, parameters=parameters, settings=settings, fmt=form)
            return found

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.send_header("x-clickhouse-summary", "{}")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    one.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        client.close()
