"""The HTTP listener: an address that can be had, and HTTP over TLS that is renewed and ends well."""

import asyncio
import resource
import signal
import socket
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from collector.doors import listener
from collector.doors.address import Address
from collector.doors.listener import Listener, listening, raise_file_limit, url
from collector.doors.tls import Files, Identity
from collector.errors import ListenError
from tests.collector import exports
from tests.collector.support import Running, collector, until
from tests.sidecar.certificates import AUTHORITY, certificate, client_context, connected, key, name_shown


def test_an_address_that_is_not_ours_or_taken() -> None:
    with pytest.raises(ListenError, match=r"^--listen 203.0.113.7:1: "):
        listening("--listen", Address("203.0.113.7", 1))
    with pytest.raises(ListenError, match=r"^--grpc nowhere.invalid:1: "):
        listening("--grpc", Address("nowhere.invalid", 1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ListenError, match="choose another"):
            listening("--listen", Address("127.0.0.1", taken.getsockname()[1]))


def test_the_url_is_one_to_use() -> None:
    identity = Identity(Files(Path(certificate("server")), Path(key("server"))))
    with listening("--listen", Address("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        assert url(bound, None) == f"http://127.0.0.1:{port}"
        assert url(bound, identity) == f"https://127.0.0.1:{port}"
    with listening("--listen", Address("::1", 0)) as bound:
        assert url(bound, None) == f"http://[::1]:{bound.getsockname()[1]}"


def test_as_many_files_may_be_open_as_connections_need(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = min(before[1], 2048) if before[1] != resource.RLIM_INFINITY else 2048
    monkeypatch.setattr(listener, "MAX_FILES", enough)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough // 2, before[1]))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == enough
        monkeypatch.setattr(listener, "MAX_FILES", enough // 2)
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == enough
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_connections_than_can_be_served_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 2)

    async def app(_scope: object, _receive: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def story(bound: socket.socket) -> list[bytes]:
        listens = asyncio.Event()
        server = Listener(app, None, drain_s=1, announce=listens.set)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        await listens.wait()
        heads, held = [], []
        for _ in range(3):
            reading, writing = await asyncio.open_connection(*bound.getsockname())
            writing.write(b"GET / HTTP/1.1\r\nhost: c\r\n\r\n")
            heads.append((await reading.readuntil(b"\r\n\r\n")).split()[1])
            held.append(writing)
        for writing in held:
            writing.close()
        server.should_exit = True
        await serving
        return heads

    with listening("--listen", Address("127.0.0.1", 0)) as bound:
        assert asyncio.run(story(bound)) == [b"200", b"503", b"503"]


def put(folder: Path, name: str, *, key_of: str | None = None) -> None:
    (folder / "c.pem").write_bytes(Path(certificate(name)).read_bytes())
    (folder / "c.key").write_bytes(Path(key(key_of or name)).read_bytes())


FLAGS = ("--tick", "1s", "--tls-cert", "c.pem", "--tls-key", "c.key")


def port(running: Running) -> int:
    return int(running.url.rpartition(":")[2])


def ask(running: Running, path: str, body: bytes | None = None, *, shown: str | None = None) -> bytes:
    headers = {"content-type": "application/x-protobuf"}
    request = urllib.request.Request(f"https://localhost:{port(running)}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=30, context=client_context(shown)) as answer:
        assert answer.status == 200
        content: bytes = answer.read()
        return content


def test_bodies_are_taken_over_tls_whose_certificates_are_renewed(tmp_path: Path) -> None:
    put(tmp_path, "server")
    with collector(tmp_path, *FLAGS) as running:
        assert running.url.startswith("https://127.0.0.1:")
        body = exports.second(good=1, bad=0, at_s=int(time.time())).SerializeToString()
        assert ask(running, "/v1/metrics", body) == b""
        assert name_shown(port(running)) == "server"
        put(tmp_path, "renewed", key_of="server")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: b"last_reload_successful 0.0" in ask(running, "/metrics"))
        assert name_shown(port(running)) == "server"
        assert "the certificates are kept as they were: --tls-cert c.pem and" in running.log.read_text()
        put(tmp_path, "renewed")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: b"last_reload_successful 1.0" in ask(running, "/metrics"))
        assert name_shown(port(running)) == "renewed"
        assert running.stop() == 0


def test_only_whoever_shows_a_certificate_is_let_in_where_that_is_asked(tmp_path: Path) -> None:
    put(tmp_path, "server")
    with collector(tmp_path, *FLAGS, "--tls-client-ca", AUTHORITY) as running:
        assert ask(running, "/healthz", shown="client") == b"ok\n"
        for shown in (None, "intruder"):
            with pytest.raises((ssl.SSLError, OSError)):
                ask(running, "/healthz", shown=shown)


def test_the_end_waits_for_no_idle_peer_over_tls(tmp_path: Path) -> None:
    """It owes no answer to our goodbye; the drain is for those whose requests are in hand."""
    put(tmp_path, "server")
    with collector(tmp_path, *FLAGS, "--drain-timeout", "10m") as running, connected(port(running)) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: c\r\n\r\n")
        seen = b""
        while not seen.endswith(b"ok\n"):
            seen += idle.recv(1000)
        assert running.stop() == 0
