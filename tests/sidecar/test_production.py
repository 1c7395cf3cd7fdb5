"""The sidecar as a process where platform teams put it: TLS, unix sockets, classes by token, files that change."""

import contextlib
import http.client
import os
import signal
import socket
import socketserver
import ssl
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slo.signals import CONFIG_RELOAD_OK, HEARTBEAT, REQUESTS, SPEC_INFO
from tests.sidecar.certificates import certificate, client_context, connected, key, name_shown, server_context
from tests.sidecar.engine_pages import RUNNING
from tests.sidecar.process import Process, engine, scraping, sidecar
from tests.sidecar.receiver import eventually
from tests.sidecar.rig import chat, completion, sized

SPEC = """
service: chat
classes: [interactive]
objectives:
  - {name: first, signal: ttft, percentile: 95, threshold: 300ms}
"""


def renewed(folder: Path, name: str) -> tuple[str, ...]:
    """Put a certificate and its key into a folder, as cert-manager does; the flags that name them."""
    (folder / "tls.crt").write_bytes(Path(certificate(name)).read_bytes())
    (folder / "tls.key").write_bytes(Path(key(name)).read_bytes())
    return "--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")


def asked(connection: socket.socket, request: bytes) -> bytes:
    """All that comes of one request, which ends the connection."""
    connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    answer = b""
    while more := connection.recv(1 << 16):
        answer += more
    return answer


def reload_ok(process: Process) -> float:
    (value,) = [v for name, v in process.metrics().items() if name.split(" ")[0] == CONFIG_RELOAD_OK.prometheus]
    return value


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_certificate_is_renewed_by_a_signal_and_a_bad_one_is_not_taken(workers: str, tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(SPEC)
    flags = renewed(tmp_path, "server")
    with engine(completion("a")) as url, sidecar(url, *flags, "--workers", workers, cwd=tmp_path) as process:
        assert process.places == [f"https://127.0.0.1:{process.proxy}", f"http://127.0.0.1:{process.admin}"]
        with connected(process.proxy) as made:
            assert asked(made, chat()).endswith(b"0\r\n\r\n")
        assert {name_shown(process.proxy) for _ in range(10)} == {"server"}

        renewed(tmp_path, "renewed")
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: {name_shown(process.proxy) for _ in range(10)} == {"renewed"})
        assert reload_ok(process) == 1

        (tmp_path / "tls.key").write_bytes(Path(key("server")).read_bytes())
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: reload_ok(process) == 0)
        assert {name_shown(process.proxy) for _ in range(10)} == {"renewed"}
        eventually(lambda: any("do not belong together" in line for line in process.errors))

        renewed(tmp_path, "server")
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: reload_ok(process) == 1)
        eventually(lambda: {name_shown(process.proxy) for _ in range(10)} == {"server"})
        assert process.stop() == 0


def test_the_pages_go_over_tls_beyond_this_machine(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    flags = (*renewed(tmp_path, "server"), "--admin", "0.0.0.0:0", "--token-file", "token")
    with engine(completion("a")) as url, sidecar(url, *flags, cwd=tmp_path) as process:
        assert process.places[1] == f"https://0.0.0.0:{process.admin}"

        def status(path: str, **headers: str) -> int:
            connection = http.client.HTTPSConnection("localhost", process.admin, context=client_context(), timeout=20)
            connection.request("GET", path, headers=headers)
            found = connection.getresponse().status
            connection.close()
            return found

        assert status("/healthz") == 200
        assert status("/metrics") == 401
        assert status("/metrics", Authorization="Bearer s3cret") == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            process.get("/healthz")


@contextlib.contextmanager
def unix_engine(path: Path, page: str = f"{RUNNING}\n") -> Iterator[None]:
    """An engine at a unix socket, with a page of metrics."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                while line := self.rfile.readline():
                    length = 0
                    while (field := self.rfile.readline()) not in (b"\r\n", b""):
                        name, _, value = field.partition(b":")
                        length = int(value) if name.lower() == b"content-length" else length
                    self.rfile.read(length)
                    if line.startswith(b"GET /metrics"):
                        self.wfile.write(sized(page.encode(), kind="text/plain"))
                    elif line.startswith(b"GET"):
                        self.wfile.write(sized(b"", status="404 Not Found"))
                    else:
                        self.wfile.write(completion("a", "b"))

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def at(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(20)
        made.connect(str(path))
        yield made


def page_at(path: Path) -> str:
    with at(path) as made:
        return asked(made, b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").decode()


def test_everything_can_stand_at_unix_sockets(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(SPEC)
    behind, proxy, admin = (tmp_path / name for name in ("engine.sock", "proxy.sock", "admin.sock"))
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(proxy))
    places = ("--listen", f"unix:{proxy}", "--admin", f"unix:{admin}", "--scrape-interval", "0.1")
    previous = os.umask(0o027)
    try:
        with unix_engine(behind), sidecar(f"unix:{behind}", *places, cwd=tmp_path) as process:
            assert process.places == [f"unix:{proxy}", f"unix:{admin}"]
            assert stat.S_IMODE(proxy.stat().st_mode) == 0o750
            for _ in range(2):
                with at(proxy) as made:
                    answer = asked(made, chat(extra="X-FirstToken-Class: interactive\r\n"))
                assert answer.endswith(b"0\r\n\r\n")
            eventually(lambda: "firsttoken_engine_running" in page_at(admin))
            assert 'class="interactive"' in page_at(admin)
            assert process.stop() == 0
        assert [path.exists() for path in (proxy, admin)] == [False, False]
    finally:
        os.umask(previous)


def test_an_engine_at_a_unix_socket_can_be_read_alone(tmp_path: Path) -> None:
    behind = tmp_path / "engine.sock"
    with unix_engine(behind), scraping(f"unix:{behind}", "--scrape-interval", "0.1", cwd=tmp_path) as process:
        eventually(lambda: process.get("/readyz")[0] == 200)
        eventually(lambda: "firsttoken_engine_running" in process.get("/metrics")[1])
        assert process.stop() == 0


def classes(process: Process) -> dict[str, float]:
    """Requests by class, as the page has them."""
    return {
        field.removeprefix("class="): value
        for name, value in process.metrics().items()
        if name.startswith(REQUESTS.prometheus)
        for field in name.split(" ")
        if field.startswith("class=")
    }


def test_the_list_of_classes_follows_its_file(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(SPEC)
    with engine(completion("a")) as url, sidecar(url, cwd=tmp_path) as process:

        def ask(name: str) -> None:
            with socket.create_connection(("127.0.0.1", process.proxy), timeout=20) as made:
                asked(made, chat(extra=f"X-FirstToken-Class: {name}\r\n"))

        ask("batch")
        ask("interactive")
        eventually(lambda: classes(process) == {"interactive": 1})
        (tmp_path / "slo.yaml").write_text(SPEC.replace("[interactive]", "[batch]"))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: any("is in force" in line for line in process.errors))
        ask("batch")
        ask("interactive")
        eventually(lambda: classes(process) == {"interactive": 1, "batch": 1})
        assert process.stop() == 0


def test_files_are_watched(tmp_path: Path) -> None:
    """A spec and a certificate that change are read again without a signal."""
    (tmp_path / "slo.yaml").write_text(SPEC)
    flags = (*renewed(tmp_path, "server"), "--watch-slo")
    with engine(completion("a")) as url, sidecar(url, *flags, cwd=tmp_path) as process:

        def spec_shown() -> str:
            (name,) = [name for name in process.metrics() if name.startswith(SPEC_INFO.prometheus)]
            return name

        before = spec_shown()
        (tmp_path / "new").write_text(SPEC.replace("300ms", "400ms"))
        (tmp_path / "new").replace(tmp_path / "slo.yaml")
        renewed(tmp_path, "renewed")
        eventually(lambda: spec_shown() != before)
        eventually(lambda: name_shown(process.proxy) == "renewed")
        assert reload_ok(process) == 1
        assert process.stop() == 0


def test_a_server_behind_tls_is_scraped_and_served(tmp_path: Path) -> None:
    """Its authority is of a file, and its name is not that of its address."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += self.rfile.readline()
                if head.startswith(b"GET /metrics"):
                    self.wfile.write(sized(f"{RUNNING}\n".encode(), kind="text/plain"))
                elif head.startswith(b"GET"):
                    self.wfile.write(sized(b"", status="404 Not Found"))
                else:
                    self.rfile.read(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
                    self.wfile.write(completion("a"))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def get_request(self) -> tuple[ssl.SSLSocket, object]:
            plain, address = super().get_request()
            return server_context("engine").wrap_socket(plain, server_side=True), address

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not believe us, or has left."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        trust = ("--upstream-ca", certificate("authority"), "--upstream-server-name", "engine.test")
        with sidecar(url, *trust, "--scrape-interval", "0.1", cwd=tmp_path) as process:
            status, body = process.ask()
            assert (status, body.endswith(b"data: [DONE]\n\n")) == (200, True)
            eventually(lambda: "firsttoken_engine_running" in process.get("/metrics")[1])
            assert process.stop() == 0
        with sidecar(url, "--scrape-interval", "0.1", cwd=tmp_path) as process:
            assert process.ask()[0] == 502
            assert process.get("/readyz")[0] == 503
            eventually(lambda: any("no TLS with the server behind: " in line for line in process.errors))
            assert HEARTBEAT.prometheus in process.get("/metrics")[1]
            assert process.stop() == 0
        server.shutdown()
        thread.join()
