"""An address that several processes listen on, held by their parent.

Of TCP each process has a listening socket of its own there (SO_REUSEPORT, socket(7)), and the kernel deals new
connections out to them; a socket dies with its process, and the next connection goes to another. A unix socket is one
socket, which all of them accept from.

The parent takes the address as if it were alone: one that somebody listens on is refused, even where that somebody
would share it. It keeps a port by sockets that are bound there and never listen.
"""

import asyncio
import errno
import socket
from pathlib import Path

from sidecar.address import Address, HostPort, UnixPath, of_socket
from sidecar.transport.listener import BACKLOG, Listener, clear, refusal

_NOT_HERE = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # as of `localhost` in IPv6, where there is none


class SharedAddress:
    """An address while it is held."""

    def __init__(self, held: list[socket.socket], *, tls: bool) -> None:
        self._held = held
        # That of nobody yet; the file of a unix socket is its own.
        self._listener = Listener([], of_socket(held[0].getsockname()), tls=tls)
        self.url = self._listener.url

    def sockets(self) -> list[socket.socket]:
        """The sockets for one more process to listen on; the caller closes them once that process has them."""
        if isinstance(self._listener.address, UnixPath):
            return [self._held[0].dup()]
        return [_bound(one.family, one.getsockname(), shared=True) for one in self._held]

    def close(self) -> None:
        """Give the address back."""
        for one in self._held:
            one.close()
        self._listener.close()


async def share(address: Address, *, flag: str, tls: bool = False) -> SharedAddress:
    """Take an address; ListenError names it and the flag that gave it."""
    try:
        held = await _take(address) if isinstance(address, HostPort) else _take_unix(address)
    except (OSError, UnicodeError) as error:
        raise refusal(address, flag, error) from None
    return SharedAddress(held, tls=tls)


async def _take(address: HostPort) -> list[socket.socket]:
    """A bound socket for each address of this machine that a host's name leads to, all at one port."""
    loop, held, port = asyncio.get_running_loop(), list[socket.socket](), address.port
    found = await loop.getaddrinfo(address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    missing = OSError(errno.EADDRNOTAVAIL, "no address")
    for family, where in dict.fromkeys((family, where) for family, _, _, _, where in found):
        try:
            held.append(_bound(family, (where[0], port, *where[2:]), shared=False))
        except OSError as error:
            if error.errno in _NOT_HERE:
                missing = error
                continue
            for one in held:
                one.close()
            raise
        port = held[0].getsockname()[1]
    if not held:
        raise missing
    return held


def _bound(family: int, where: tuple[object, ...], *, shared: bool) -> socket.socket:
    """A socket at an address that others may join from now on, and that others had to share before if `shared`."""
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(where)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        made.close()
        raise
    return made


def _take_unix(address: UnixPath) -> list[socket.socket]:
    made = socket.socket(socket.AF_UNIX)
    try:
        clear(Path(address.path))
        made.bind(address.path)
        made.listen(BACKLOG)  # one that nobody listens on is anybody's to take
    except OSError:
        made.close()
        raise
    return [made]
