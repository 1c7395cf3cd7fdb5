"""An inference server as the doctor meets it: its pages, and streams that come as they are made, or are held back."""

import gzip
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PAGES = Path(__file__).parents[2] / "data" / "sidecar" / "pages"
VLLM_PAGE = (PAGES / "vllm-0.33.prom").read_bytes()
MODELS = b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'
TOKENS = 14
EVENT = (
    b'data: {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n'
)


@dataclass
class Front:
    """What it answers: pages by path, and streams with a pause before each event. The first `held` events come
    together; `packs` compresses them. What was asked for is kept."""

    pages: Mapping[str, bytes] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    pause_s: float = 0.04
    held: int = 0
    packs: bool = False
    url: str = ""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)


VLLM = {"/metrics": VLLM_PAGE, "/v1/models": MODELS, "/version": b'{"version": "0.33.0"}'}


@contextmanager
def front(told: Front) -> Iterator[Front]:
    """The server, up until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            told.asked.append((self.path, dict(self.headers)))
            page = told.pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self._end({"Content-Length": str(len(page or b""))})
            self.wfile.write(page or b"")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.asked.append((self.path, dict(self.headers) | {"body": json.dumps(asked)}))
            packed = {"Content-Encoding": "gzip"} if told.packs else {}
            self.send_response(200)
            self._end({"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **packed})
            self._stream()

        def _stream(self) -> None:
            kept = []
            for place in range(TOKENS):
                time.sleep(told.pause_s)
                kept.append(EVENT)
                if place + 1 >= told.held and not told.packs:
                    self._chunk(b"".join(kept))
                    kept = []
            ending = b"".join([*kept, b"data: [DONE]\n\n"])
            self._chunk(gzip.compress(ending) if told.packs else ending)
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        def _end(self, headers: Mapping[str, str]) -> None:
            for name, value in {**headers, **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
