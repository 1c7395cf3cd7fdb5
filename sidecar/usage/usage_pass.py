"""Writes a stream to its client without the usage chunk: filtered, then framed anew.

Only an asked stream that can be filtered comes here; every other answer keeps its raw way through `relay`. What one
read lets through is written in one piece, as one chunk where the client is sent chunks: for a server that sends each
event as a chunk of its own those are the very bytes that came. A fault of the filter passes everything from there on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from sidecar.http.http_head import Headers, ResponseHead, chunk, last_chunk
from sidecar.limits import USAGE_HOLD_S
from sidecar.usage.usage_hide import UsageFilter

Look = Callable[..., None]


def unsized(head: ResponseHead, *, minor: int) -> ResponseHead:
    """The head for a client of HTTP/1.`minor` that gets fewer bytes than the server sends: one without a length."""
    if head.framing != "length":
        return head
    kept = tuple((name, value) for name, value in head.headers if name.lower() != b"content-length")
    if minor == 0:
        return replace(head, headers=kept, framing="close")
    return replace(head, headers=(*kept, (b"Transfer-Encoding", b"chunked")), framing="chunked")


class UsagePass:
    """The way of one answer's body. `chunks`: the client is sent chunks."""

    __slots__ = ("_chunks", "_filter", "_look", "_passed", "_timer", "_write")

    def __init__(self, write: Callable[[bytes], None], hide: UsageFilter, *, chunks: bool, look: Look) -> None:
        self._write, self._filter, self._chunks, self._look = write, hide, chunks, look
        self._timer: asyncio.TimerHandle | None = None
        self._passed: bytes | None = None

    def pass_on(self, payload: bytes) -> None:
        """A read's bytes of the body, transfer coding undone."""
        if self._timer is not None:
            self._stop()
        hide = self._filter
        self._passed, held = None, hide.held
        self._look(self._feed, payload)
        if self._passed is None:
            hide.give_up()
            self._passed = held + payload
        self._send(self._passed)
        if hide.holds_finish:
            self._timer = asyncio.get_running_loop().call_later(USAGE_HOLD_S, self._release)

    @property
    def is_clear(self) -> bool:
        """Whether nothing is held, so that a token and nothing else would pass as it comes."""
        return self._timer is None and self._filter.is_clear

    def passed(self, payload: bytes) -> None:
        """A token and nothing else that was passed by the caller, the latest of several maybe."""
        self._look(self._filter.passed, payload)

    def _feed(self, payload: bytes) -> None:
        self._passed = self._filter.feed(payload)

    def end(self, trailers: Headers) -> None:
        """The body is whole."""
        write = self._write
        self.broken()
        if self._chunks:
            write(last_chunk(trailers))

    def broken(self) -> None:
        """The body ends here, whole or not: what is held is the client's."""
        self._stop()
        self._send(self._filter.flush())
        self._write = _nowhere  # of whoever writes for us, who holds us

    def _release(self) -> None:
        self._timer = None
        self._send(self._filter.release())

    def _send(self, data: bytes) -> None:
        if data:
            self._write(chunk(data) if self._chunks else data)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nowhere(data: bytes) -> None:
    """Where a body's bytes go that is over: there are none."""
