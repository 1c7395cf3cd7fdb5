"""How TLS transports of the event loop end and pause, where that is not as with TCP.

`transport.close()` sends what is left, says goodbye (`close_notify`) and then waits for the peer's goodbye, reading
and dropping what else it sends. No client owes us one: a pool of idle connections reads nothing until it needs them.
And a paused transport goes on reading from its socket, up to 256 KiB; what of that was not yet handed on when the
peer's end is read, is lost.
"""

import asyncio
import contextlib
import os
import socket
from typing import Protocol, cast


class _Limited(Protocol):
    def set_read_buffer_limits(self, high: int) -> None: ...


def is_tls(transport: asyncio.BaseTransport) -> bool:
    """Whether it speaks TLS."""
    return transport.get_extra_info("ssl_object") is not None


def hang_up(transport: asyncio.BaseTransport) -> None:
    """Have the event loop read the peer's end right now: the socket closes when what was handed to it has left.

    After `close()`, with nothing left in the write buffer, that is the end without the wait. Before it, the peer gets
    no goodbye, and can tell that the answer was cut.
    """
    held = transport.get_extra_info("socket")
    if held is None:
        return  # closed already
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(held.fileno())) as again:
        again.shutdown(socket.SHUT_RD)


def pause_at_once(transport: asyncio.BaseTransport) -> None:
    """Let a pause of this TLS transport hold its socket too, so that no end is read before what came before it."""
    cast("_Limited", transport).set_read_buffer_limits(high=1)
