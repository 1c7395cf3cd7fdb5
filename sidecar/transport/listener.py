"""An address that clients come to: taken, announced, and given back at the end.

A unix socket is a file. One that a dead process left is taken over; one that somebody listens on, or another kind of
file, is not. Who may connect is what the umask and the folder say. At the end the file goes, unless by then another
process has put its own there.
"""

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sidecar import limits
from sidecar.address import Address, UnixPath, of_socket

BACKLOG = 1024
ALIVE_S = 1.0  # whoever listens on a unix socket takes a connection at once

TLS_END_S = limits.CLIENT_STALL_S  # by then what is left must have been taken, so it is no time to be short of

MakeProtocol = Callable[[], asyncio.Protocol]


class ListenError(Exception):
    """An address that cannot be listened on; the message is for the user."""


class Listener:
    """An address while it is listened on. `owned`: the file of a unix socket goes with it."""

    def __init__(
        self, servers: list[asyncio.AbstractServer], address: Address, *, tls: bool, owned: bool = True
    ) -> None:
        self._servers, self.address, self.url = servers, address, url(address, tls=tls)
        self._file = _identity(address) if owned else None

    def close(self) -> None:
        """Take no more connections; those that were taken stay."""
        for server in self._servers:
            server.close()
        if isinstance(self.address, UnixPath) and self._file is not None and self._file == _identity(self.address):
            with suppress(OSError):
                Path(self.address.path).unlink()
        self._file = None


def url(address: Address, *, tls: bool) -> str:
    """Where a listener is, as a client is told."""
    return str(address) if isinstance(address, UnixPath) else f"{'https' if tls else 'http'}://{address}"


class Placed(Protocol):
    """What has an address that can be told: a `Listener`, or an address that several processes listen on."""

    url: str


def announce(what: str, placed: Placed) -> None:
    """Say on stdout where a listener is, in one line."""
    print(f"{what}: {placed.url}", flush=True)


async def listen(door: MakeProtocol, address: Address, *, flag: str, tls: ssl.SSLContext | None = None) -> Listener:
    """Accept connections for `door`; ListenError names the address and the flag that gave it. A unix socket has no use
    for `tls`."""
    try:
        if isinstance(address, UnixPath):
            return await _listen_unix(door, address)
        server = await asyncio.get_running_loop().create_server(
            door,
            address.host,
            address.port,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=_within(limits.TLS_HANDSHAKE_S, tls),
            ssl_shutdown_timeout=_within(TLS_END_S, tls),
        )
    except (OSError, UnicodeError) as error:
        raise refusal(address, flag, error) from None
    return Listener([server], of_socket(server.sockets[0].getsockname()), tls=tls is not None)


async def listen_on(
    door: MakeProtocol, sockets: Iterable[socket.socket], *, tls: ssl.SSLContext | None = None
) -> Listener:
    """Accept connections of sockets that are bound already; whoever bound them gives the address back."""
    loop, servers, address = asyncio.get_running_loop(), list[asyncio.AbstractServer](), None
    for one in sockets:
        address = address or of_socket(one.getsockname())
        if one.family == socket.AF_UNIX:
            servers.append(await loop.create_unix_server(door, sock=one, backlog=BACKLOG))
            continue
        server = await loop.create_server(
            door,
            sock=one,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=_within(limits.TLS_HANDSHAKE_S, tls),
            ssl_shutdown_timeout=_within(TLS_END_S, tls),
        )
        servers.append(server)
    assert address is not None, "there is a socket to listen on"
    return Listener(servers, address, tls=tls is not None, owned=False)


def _within(time_s: float, tls: ssl.SSLContext | None) -> float | None:
    """A time that only TLS has a use for, and that the event loop takes with it only."""
    return None if tls is None else time_s


async def _listen_unix(door: MakeProtocol, address: UnixPath) -> Listener:
    made = socket.socket(socket.AF_UNIX)
    try:
        clear(Path(address.path))
        made.bind(address.path)
        server = await asyncio.get_running_loop().create_unix_server(door, sock=made, backlog=BACKLOG)
    except BaseException:
        made.close()
        raise
    return Listener([server], address, tls=False)


def clear(path: Path) -> None:
    """Remove a unix socket on which nobody listens any more. OSError: something else stands there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError("a file that is no socket stands there")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ALIVE_S)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(errno.EADDRINUSE, "somebody listens there")


def _identity(address: Address) -> tuple[int, int] | None:
    """Which file stands at a unix address."""
    if isinstance(address, UnixPath):
        with suppress(OSError):
            found = Path(address.path).lstat()
            return found.st_dev, found.st_ino
    return None


def refusal(address: Address, flag: str, error: OSError | UnicodeError) -> ListenError:
    """What the user is told of an address that cannot be had."""
    return ListenError(f"cannot listen on {address} ({flag}): {_why(error)}: choose another address")


def _why(error: OSError | UnicodeError) -> str:
    """In few words: asyncio uses many. A name that cannot be resolved has a negative number of its own; one that is
    none (an empty label) is an error of its encoding."""
    if not isinstance(error, OSError):
        return "not a host name"
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()
