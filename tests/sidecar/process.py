"""The sidecar as a process: started on free ports, spoken to over sockets, ended by its id."""

import contextlib
import http.client
import os
import queue
import re
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from prometheus_client.parser import text_string_to_metric_families

from tests.sidecar.rig import CHAT, chat

START_S = 60.0


@dataclass
class Process:
    """A running sidecar; `places` are its addresses as it told them, and a port is 0 where it has none."""

    popen: subprocess.Popen[str]
    proxy: int
    admin: int
    errors: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def get(self, path: str, *, port: int | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port or self.admin, timeout=START_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Every sample of the page by name and sorted labels, as a scraper reads it."""
        _, text = self.get("/metrics")
        return {
            " ".join([s.name, *(f"{name}={value}" for name, value in sorted(s.labels.items()) if value)]): s.value
            for family in text_string_to_metric_families(text)
            for s in family.samples
        }

    def ask(self, *, stream: bool = True, model: str = "m") -> tuple[int, bytes]:
        """One chat request through the proxy."""
        head, _, body = chat(stream=stream, model=model).partition(b"\r\n\r\n")
        assert head.startswith(b"POST " + CHAT.encode())
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy, timeout=START_S)
        try:
            connection.request("POST", CHAT, body=body, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(START_S)


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without anything that would speak to a sidecar."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "FIRSTTOKEN_"))}
    return kept | extra


@contextlib.contextmanager
def sidecar(upstream: str, *arguments: str, cwd: Path, module: str = "sidecar", **environ: str) -> Iterator[Process]:
    """A sidecar before `upstream`; gone afterwards, whatever happened."""
    places = ["--upstream", upstream, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    command = [sys.executable, "-m", module, *places, *arguments]
    with _running(command, 2, cwd=cwd, **environ) as (popen, places, errors):
        yield Process(popen, *map(_port, places), errors, places)


@contextlib.contextmanager
def scraping(page: str, *arguments: str, cwd: Path, **environ: str) -> Iterator[Process]:
    """A sidecar that stands before nothing and reads `page`; it has no proxy."""
    command = [sys.executable, "-m", "sidecar", "--scrape", page, "--admin", "127.0.0.1:0", *arguments]
    with _running(command, 1, cwd=cwd, **environ) as (popen, places, errors):
        yield Process(popen, 0, _port(places[0]), errors, places)


@contextlib.contextmanager
def _running(
    command: list[str], listeners: int, *, cwd: Path, **environ: str
) -> Iterator[tuple[subprocess.Popen[str], list[str], list[str]]]:
    """A process that announces so many listeners: itself, their addresses, and its growing stderr."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(PYTHONPATH=str(Path(__file__).parents[2]), **environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as popen:
        assert popen.stdout is not None
        assert popen.stderr is not None
        lines: queue.Queue[str] = queue.Queue()
        errors: list[str] = []
        readers = [
            threading.Thread(target=_follow, args=(popen.stdout, lines.put), daemon=True),
            threading.Thread(target=_follow, args=(popen.stderr, errors.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            yield popen, [_place(lines, popen, errors) for _ in range(listeners)], errors
        finally:
            if popen.poll() is None:
                popen.kill()
            popen.wait()
            for reader in readers:
                reader.join()


def _follow(stream: IO[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line.rstrip("\n"))


def _port(place: str) -> int:
    match = re.fullmatch(r"https?://[^/]+:(\d+)", place)
    return 0 if match is None else int(match[1])


def _place(lines: "queue.Queue[str]", popen: subprocess.Popen[str], errors: list[str]) -> str:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        with contextlib.suppress(queue.Empty):
            match = re.fullmatch(r"(?:proxy|admin): ((?:https?://|unix:/)\S+)", lines.get(timeout=0.1))
            assert match is not None
            return match[1]
        assert popen.poll() is None, errors
    raise AssertionError(f"not ready in time: {errors}")


@contextlib.contextmanager
def engine(answer: bytes | None, *, chunks_s: float = 0.0, served: list[bytes] | None = None) -> Iterator[str]:
    """A server on a thread that gives each request `answer` (None: never), pausing before; its URL. With `served` it
    takes one at a time, and notes the heads of those that it took."""
    ended, turn = threading.Event(), threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                while head := self._head():
                    length = re.search(rb"(?i)content-length: *(\d+)", head)
                    if length is not None and len(self.rfile.read(int(length[1]))) < int(length[1]):
                        return
                    if not head.startswith(b"POST"):
                        self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    elif answer is None:
                        ended.wait(START_S)
                    elif served is None:
                        ended.wait(chunks_s)
                        self.wfile.write(answer)
                    else:
                        with turn:
                            served.append(head)
                            ended.wait(chunks_s)
                            self.wfile.write(answer)

        def _head(self) -> bytes:
            head = b""
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                head += line
            return head

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
