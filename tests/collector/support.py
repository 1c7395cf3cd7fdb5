"""Real neighbours for the collector's tests: PostgreSQL, an HTTP receiver that keeps what it is told, a process."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

PATIENCE_S = 30.0
LOG = "collector.log"

T = TypeVar("T")


def until(answer: Callable[[], T], *, patience_s: float = PATIENCE_S) -> T:
    """The first true answer; fails when none comes in time."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = answer()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came within {patience_s} s")


@dataclass
class Receiver:
    """An HTTP server on loopback: keeps each JSON body by path that it takes. It answers the next requests with
    `first`, and those after them with `status`."""

    status: int = 200
    first: list[int] = field(default_factory=list)
    port: int = 0
    told: list[tuple[str, object]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    """A receiver, up until the block ends."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = kept.first.pop(0) if kept.first else kept.status
            if status < 300:
                kept.told.append((self.path, json.loads(body)))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    kept.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def initdb() -> Path | None:
    """The newest initdb on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1] if found else Path(on_path) if on_path else None


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own that listens on a socket file alone, gone when the block ends."""
    tool = initdb()
    assert tool is not None
    folder = Path(tempfile.mkdtemp(prefix="firsttoken-pg-"))
    user = _other_user() if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    make = [tool, "-D", folder / "data", "-A", "trust", "-U", "firsttoken", "-E", "UTF8", "--no-sync"]
    server = None
    try:
        subprocess.run(make, check=True, timeout=120, **quiet, **identity)
        settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off"}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = subprocess.Popen([tool.parent / "postgres", "-D", folder / "data", *flags], **quiet, **identity)
        ready = [tool.parent / "pg_isready", "-h", folder, "-q"]
        until(lambda: server.poll() is not None or subprocess.run(ready).returncode == 0)
        assert server.poll() is None
        yield f"postgresql://firsttoken@/postgres?host={folder}"
    finally:
        if server is not None:
            server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            server.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> pwd.struct_passwd:
    """Someone who is not root: PostgreSQL will not run as root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("no user but root to run postgres as")


SPEC = """\
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}
"""


@dataclass
class Running:
    """A collector of our own, as a process."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def rpc_target(self) -> str:
        """`HOST:PORT` of its OTLP over gRPC; to be asked for once."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("otlp grpc: http"), line
        return line.rpartition("//")[2].strip()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send the signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)


@contextmanager
def process(command: Sequence[str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that works and logs in `folder`, killed when the block ends if it lives then."""
    with (folder / LOG).open("a") as errors:
        one = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=_clean())
    try:
        yield one
    finally:
        if one.poll() is None:
            one.kill()
        one.wait()
        if one.stdout is not None:
            one.stdout.close()


@contextmanager
def spawned(folder: Path, *flags: str, spec: str = SPEC) -> Iterator["subprocess.Popen[str]"]:
    """The process of a collector that has said nothing yet."""
    (folder / "slo.yaml").write_text(spec)
    command = [sys.executable, "-m", "collector", "--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *flags]
    with process(command, folder) as one:
        yield one


@contextmanager
def collector(folder: Path, *flags: str, spec: str = SPEC) -> Iterator[Running]:
    """A collector that runs in `folder` by `spec`, killed when the block ends if it lives then."""
    with spawned(folder, *flags, spec=spec) as one:
        assert one.stdout is not None
        line = one.stdout.readline()
        assert line.startswith("collector: http"), (line, (folder / LOG).read_text())
        yield Running(line.split()[1], one, folder / LOG)


def peak_mib(running: Running) -> int:
    """The most memory that its process ever held."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM"))


def _clean() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FIRSTTOKEN_", "OTEL_"))}
    return kept | {"PYTHONPATH": str(Path(__file__).parents[2])}


def refusal(folder: Path, *flags: str, spec: str = SPEC) -> tuple[int, str]:
    """Exit code and stderr of a collector that must not start."""
    (folder / "slo.yaml").write_text(spec)
    command = [sys.executable, "-m", "collector", *flags]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, env=_clean())
    assert done.stdout == ""
    return done.returncode, done.stderr


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(url: str, body: bytes | None = None, **headers: str) -> Answer:
    """GET, or POST when there is a body; `content_type` and the like are header names."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, body, sent)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())


def send(url: str, message: Message, *, kind: str = "metrics") -> Answer:
    """POST an OTLP message as protobuf."""
    return ask(f"{url}/v1/{kind}", message.SerializeToString(), content_type="application/x-protobuf")
