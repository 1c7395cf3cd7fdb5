"""An address that several listen on: taken once, refused where somebody is, and given back."""

import asyncio
import socket
from pathlib import Path

import pytest

from sidecar.address import HostPort, UnixPath, of_socket
from sidecar.transport.listener import ListenError
from sidecar.workers.shared_address import SharedAddress, share
from tests.sidecar.rig import on_a_loop


def port_of(shared: SharedAddress) -> int:
    return int(shared.url.rpartition(":")[2])


def listening(shared: SharedAddress) -> list[socket.socket]:
    made = shared.sockets()
    for one in made:
        one.listen()
        one.setblocking(False)
    return made


def accepted(*listeners: socket.socket) -> list[int]:
    """How many connections wait at each."""
    counts = []
    for one in listeners:
        count = 0
        while True:
            try:
                one.accept()[0].close()
            except BlockingIOError:
                break
            count += 1
        counts.append(count)
    return counts


@on_a_loop
async def test_connections_are_dealt_out_and_go_to_who_is_left() -> None:
    shared = await share(HostPort("127.0.0.1", 0), flag="--listen")
    (one,), (other,) = listening(shared), listening(shared)
    clients = [socket.create_connection(("127.0.0.1", port_of(shared))) for _ in range(60)]
    counts = accepted(one, other)
    assert sum(counts) == 60
    assert min(counts) > 0
    one.close()
    clients += [socket.create_connection(("127.0.0.1", port_of(shared))) for _ in range(20)]
    assert accepted(other) == [20]
    other.close()
    with pytest.raises(ConnectionRefusedError):  # it is held, and nobody listens
        socket.create_connection(("127.0.0.1", port_of(shared)))
    shared.close()
    for client in clients:
        client.close()


@pytest.mark.parametrize("shares", [False, True])
@on_a_loop
async def test_an_address_that_somebody_listens_on_is_refused_even_if_they_would_share_it(shares: bool) -> None:
    with socket.socket() as theirs:
        if shares:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        theirs.bind(("127.0.0.1", 0))
        theirs.listen()
        where = HostPort("127.0.0.1", theirs.getsockname()[1])
        with pytest.raises(ListenError, match=rf"^cannot listen on {where} \(--listen\): address already in use"):
            await share(where, flag="--listen")


@on_a_loop
async def test_nobody_else_gets_it_while_it_is_held_and_anybody_after() -> None:
    shared = await share(HostPort("127.0.0.1", 0), flag="--listen")
    (one,) = listening(shared)
    where = HostPort("127.0.0.1", port_of(shared))
    with pytest.raises(ListenError, match="already in use"):
        await share(where, flag="--listen")
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", where.port))
    one.close()
    shared.close()
    again = await share(where, flag="--listen")
    assert port_of(again) == where.port
    again.close()


@on_a_loop
async def test_a_name_with_several_addresses_has_one_port_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def both(*_: object, **__: object) -> list[tuple[object, ...]]:
        of = (socket.SOCK_STREAM, 0, "")
        return [(socket.AF_INET, *of, (where, 0)) for where in ("192.0.2.1", "127.0.0.1", "127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop().__class__, "getaddrinfo", both, raising=False)
    shared = await share(HostPort("both.test", 0), flag="--listen")
    made = listening(shared)
    assert [of_socket(one.getsockname()) for one in made] == [HostPort(f"127.0.0.{n}", port_of(shared)) for n in (1, 2)]
    for one in made:
        one.close()
    shared.close()


@on_a_loop
async def test_a_name_that_leads_nowhere_is_refused() -> None:
    for host in ("nowhere.invalid", "a..b", "192.0.2.1"):
        with pytest.raises(ListenError, match=rf"cannot listen on {host}:0 \(--listen\)"):
            await share(HostPort(host, 0), flag="--listen")


@on_a_loop
async def test_a_unix_socket_is_one_that_all_accept_from(tmp_path: Path) -> None:
    path = tmp_path / "s"
    shared = await share(UnixPath(str(path)), flag="--listen")
    assert shared.url == f"unix:{path}"
    (one,), (other,) = listening(shared), listening(shared)
    clients = []
    for listener in (one, other):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        clients.append(client)
        assert accepted(listener) == [1]
    with pytest.raises(ListenError, match="already in use"):
        await share(UnixPath(str(path)), flag="--listen")
    for held in (*clients, one, other):
        held.close()
    shared.close()
    assert not path.exists()
    path.write_text("no socket")
    with pytest.raises(ListenError, match="no socket stands there"):
        await share(UnixPath(str(path)), flag="--listen")


def test_https_is_told() -> None:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    shared = SharedAddress([held], tls=True)
    assert shared.url.startswith("https://127.0.0.1:")
    shared.close()
