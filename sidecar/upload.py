"""A request on its way to the server: gathered, and given out in as few writes as it came in reads.

A request that may be asked for its usage is held until it is whole, head and all, at most `LOOK_BYTES` of it: what
came in one read leaves in one write as ever, a body in several reads leaves with its last one. No server answers a
completion before it has the whole request.
"""

from collections.abc import Callable

from sidecar.dialects import LOOK_BYTES
from sidecar.http_head import Headers, RequestHead, chunk, forwarded_request, last_chunk
from sidecar.usage_ask import resized
from sidecar.watch import Watch


class Upload:
    """One request, head, body and trailers. `whole`: all of it has come; `writes`: how often some of it was given
    out; `unsent_bytes`: how much waits to be."""

    __slots__ = (
        "_first_write",
        "_head",
        "_held",
        "_host",
        "_look",
        "_prefix",
        "_unsent",
        "_watch",
        "_whole_at_ns",
        "unsent_bytes",
        "whole",
        "writes",
    )

    def __init__(self, head: RequestHead, watch: Watch | None, look: Callable[..., object]) -> None:
        self._head, self._watch, self._look = head, watch, look
        self._prefix = b""
        self._host: bytes | None = None
        self._held: bytearray | None = None if watch is None or watch.usage is None else bytearray()
        self._unsent: list[bytes] = []
        self._first_write = b""
        self._whole_at_ns: int | None = None
        self.unsent_bytes = self.writes = 0
        self.whole = False

    def begin(self, *, prefix: bytes, host: bytes | None) -> None:
        """The head may go: under `prefix`, and with `host` in place of the client's own if given."""
        self._prefix, self._host = prefix, host
        if self._held is None:
            self._queue_head(self._head)

    def body(self, data: bytes) -> None:
        """A piece of the body, transfer coding undone."""
        if self._watch is not None:
            self._look(self._watch.body, data)
        if self._held is None:
            self._queue_body(data)
            return
        self._held += data
        if len(self._held) > LOOK_BYTES:
            self._let_go(self._head, bytes(self._held))

    def end(self, trailers: Headers, at_ns: int) -> None:
        """The last of it came at `at_ns`."""
        if self._held is not None and self._watch is not None:
            body = self._watch.asking(bytes(self._held))
            self._let_go(resized(self._head, len(body)), body)
        if self._head.chunked:
            self._queue(last_chunk(trailers))
        self.whole, self._whole_at_ns = True, at_ns

    def looked_at(self) -> None:
        """Tell the watch that the request is whole: once it is on its way, since a client waits for its answer."""
        if self._whole_at_ns is not None and self._watch is not None:
            at_ns, self._whole_at_ns = self._whole_at_ns, None
            self._look(self._watch.held, at_ns)

    def take(self) -> bytes:
        """All that waits, for one write; nothing may wait."""
        unsent = self._unsent
        if not unsent:
            return b""
        data = unsent[0] if len(unsent) == 1 else b"".join(unsent)
        self._unsent, self.unsent_bytes = [], 0
        self.writes += 1
        self._first_write = data if self.writes == 1 else b""
        return data

    def repeat(self) -> None:
        """Give the first write out again, on another connection."""
        self._unsent = [self._first_write, *self._unsent]
        self.unsent_bytes += len(self._first_write)
        self.writes = 0

    def _let_go(self, head: RequestHead, body: bytes) -> None:
        self._held = None
        self._queue_head(head)
        if body:
            self._queue_body(body)

    def _queue_head(self, head: RequestHead) -> None:
        traceparent = None if self._watch is None else self._watch.traceparent
        self._queue(forwarded_request(head, prefix=self._prefix, host=self._host, traceparent=traceparent))

    def _queue_body(self, data: bytes) -> None:
        self._queue(chunk(data) if self._head.chunked else data)

    def _queue(self, data: bytes) -> None:
        self._unsent.append(data)
        self.unsent_bytes += len(data)
