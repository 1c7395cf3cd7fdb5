"""The collector's HTTP listener: a bound socket, and uvicorn on it as this collector wants it served."""

import contextlib
import resource
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from collector.doors.address import Address
from collector.doors.connection import Connection
from collector.doors.tls import Identity
from collector.errors import ListenError

KEEP_ALIVE_S = 75
BACKLOG = 2048
MAX_CONNECTIONS = 2048
MAX_FILES = 8192


def listening(flag: str, address: Address) -> socket.socket:
    """A bound socket. Raises `ListenError`, which names the flag."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"{flag} {address}: {error.strerror or error}") from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(place)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise ListenError(f"{flag} {address}: {error.strerror or error}: choose another address") from error
    return bound


def url(bound: socket.socket, identity: Identity | None) -> str:
    """Where people and senders find it."""
    host, port = bound.getsockname()[:2]
    return f"{'http' if identity is None else 'https'}://{Address(host, port)}"


def raise_file_limit() -> None:
    """Let this process open as many files as its connections need: the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Listener(uvicorn.Server):
    """uvicorn that says when it listens, and leaves signals to us: its own handlers end the process by the signal."""

    def __init__(self, app: ASGIApp, identity: Identity | None, *, drain_s: int, announce: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=Connection,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=drain_s,
            limit_concurrency=MAX_CONNECTIONS,
            ssl_context_factory=None if identity is None else lambda _config, _usual: identity.context(),
        )
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
