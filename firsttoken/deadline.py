"""An end to an exchange over HTTP, whatever the server does.

A timeout of a socket bounds each read and not their sum: a head that comes byte by byte, lines of 100 Continue and the
length of a chunk are read for as long as something comes.
"""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def hung_up_after(opened: http.client.HTTPConnection, at_most_s: float) -> Iterator[threading.Event]:
    """Connect, and hang up when the time is over: who reads then sees the end. The event tells that it was so.

    Raises OSError, as `connect` does.
    """
    opened.connect()
    line: socket.socket = opened.sock  # the connection lets go of it while an answer is still read
    is_over = threading.Event()

    def hang_up() -> None:
        is_over.set()
        with suppress(OSError):  # the other end, or we, may have closed it at this moment
            socket.socket.shutdown(line, socket.SHUT_RDWR)  # below TLS, whose own shutdown waits for the peer

    timer = threading.Timer(at_most_s, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
