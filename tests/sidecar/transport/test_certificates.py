"""Certificates that are renewed under a running proxy."""

import asyncio
import contextlib
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sidecar.address import HostPort, UnixPath
from sidecar.settings import UsageError
from sidecar.transport.certificates import Identity, Reread, ServerTls
from sidecar.transport.listener import listen
from sidecar.transport.tls import Presented, Trust, presenting
from tests.sidecar.certificates import (
    AUTHORITY,
    STRANGER,
    certificate,
    client_context,
    connected,
    key,
    name_shown,
    presented,
    read_to_the_end,
)
from tests.sidecar.rig import chat, completion, on_a_loop, proxied, raw, read_message


@pytest.fixture
def files(tmp_path: Path) -> Presented:
    """A certificate and its key, to be renewed."""
    renewed("server", tmp_path)
    return Presented(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))


def renewed(name: str, folder: Path) -> None:
    """Put another certificate and key in the place of what is there."""
    (folder / "tls.crt").write_bytes(Path(certificate(name)).read_bytes())
    (folder / "tls.key").write_bytes(Path(key(name)).read_bytes())


@contextlib.asynccontextmanager
async def showing(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """A proxy that listens with this context; its port."""
    async with proxied(raw(completion("a"))) as rig:
        listener = await listen(rig.door, HostPort("127.0.0.1", 0), flag="--listen", tls=context)
        with contextlib.closing(listener):
            yield listener.address.port


def test_new_connections_are_shown_what_was_read_last(
    files: Presented, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def run() -> None:
        identity = Identity(files)
        async with showing(identity.for_clients()) as port:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client_context(), server_hostname="localhost"
            )
            assert await asyncio.to_thread(name_shown, port) == "server"

            renewed("renewed", tmp_path)
            assert await asyncio.to_thread(name_shown, port) == "server"
            assert await identity.reload()
            assert await asyncio.to_thread(name_shown, port) == "renewed"
            writer.write(chat())
            assert (await read_message(reader)).head.startswith(b"HTTP/1.1 200 ")

            (tmp_path / "tls.key").write_text("half a ke")
            assert not await identity.reload()
            assert await asyncio.to_thread(name_shown, port) == "renewed"
            renewed("server", tmp_path)
            assert await identity.reload()
            assert await asyncio.to_thread(name_shown, port) == "server"
            writer.close()

    run()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith(f"reload: --tls-cert {files.certificate} and --tls-key {files.key} cannot be used (")
    assert line.endswith(": what was read before stays")


def answered(port: int, shown: str | None) -> bool:
    """Whether a client that shows this certificate, or none, gets an answer."""
    try:
        with connected(port, client_context(shown)) as made:
            made.sendall(chat(extra="Connection: close\r\n"))
            return read_to_the_end(made)[0].startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def test_an_authority_of_clients_is_replaced_not_added_to(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    theirs, ours = Path(STRANGER).read_bytes(), Path(AUTHORITY).read_bytes()
    ca.write_bytes(theirs)

    @on_a_loop
    async def run() -> None:
        identity = Identity(presented(client_ca=str(ca)))
        async with showing(identity.for_clients()) as port:
            assert await asyncio.to_thread(answered, port, "intruder")
            ca.write_bytes(ours)
            assert await identity.reload()
            assert not await asyncio.to_thread(answered, port, "intruder")
            assert await asyncio.to_thread(answered, port, "client")

    run()


def test_the_pages_are_shown_over_tls_where_others_can_reach_them() -> None:
    identity = Identity(presented(client_ca=AUTHORITY))
    assert identity.for_admin(HostPort("127.0.0.1", 1)) is None
    assert identity.for_admin(UnixPath("/run/s")) is None
    assert identity.for_admin(HostPort("0.0.0.0", 1)) is not None


@on_a_loop
async def test_a_scraper_of_the_pages_needs_no_certificate() -> None:
    async with showing(Identity(presented(client_ca=AUTHORITY)).for_admin(HostPort("0.0.0.0", 0))) as port:
        assert await asyncio.to_thread(answered, port, None)


@on_a_loop
async def test_without_files_there_is_no_tls() -> None:
    identity = Identity(None)
    assert identity.for_clients() is None
    assert identity.for_admin(HostPort("0.0.0.0", 1)) is None
    assert await identity.reload()


def test_bad_files_are_found_before_a_client_comes() -> None:
    with pytest.raises(UsageError):
        Identity(Presented("nowhere", "nowhere")).for_clients()


def test_files_that_do_not_come_change_nothing(
    files: Presented, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.limits.READ_S", 0.05)
    gate = threading.Event()
    contexts = [presenting(files), presenting(files)]

    def make() -> ssl.SSLContext:
        if len(contexts) == 1:
            gate.wait()
        return contexts.pop()

    @on_a_loop
    async def run() -> None:
        read = Reread(make, at_once=True)
        before = read.context
        assert not await read.reload()
        gate.set()
        assert read.context is before

    run()
    assert "reload: no answer within 0.05 s: what was read before stays" in caplog.text


@on_a_loop
async def test_what_nobody_has_used_is_not_read() -> None:
    def make() -> object:
        raise AssertionError

    assert await Reread(make).reload()  # type: ignore[arg-type]


def test_the_name_in_a_servers_certificate_is_its_hosts_or_the_one_that_was_told() -> None:
    assert ServerTls().name_of("10.0.0.1") == "10.0.0.1"
    assert ServerTls(Trust(server_name="engine.test")).name_of("10.0.0.1") == "engine.test"


def test_each_reason_is_told_once_and_only_so_many(caplog: pytest.LogCaptureFixture) -> None:
    tls = ServerTls()
    for number in range(200):
        for _ in range(2):
            tls.failed(_failure(f"REASON_{number}"))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == len(set(told)) == 64
    assert told[0] == "no TLS with the server behind: reason 0 (told once)"


def _failure(why: str) -> Exception:
    error = ssl.SSLError(1, why)
    error.reason = why
    return error


def test_a_context_is_of_the_library(files: Presented) -> None:
    make: Callable[[], object] = lambda: presenting(files)  # noqa: E731
    assert Reread(make, at_once=True).context is not None  # type: ignore[arg-type]
