"""A request on its way to the server: gathered, and given out in as few writes as it came in reads.

A request that may be asked for its usage is held until it is whole, head and all, at most `LOOK_BYTES` of it: what
came in one read leaves in one write as ever, a body in several reads leaves with its last one. No server answers a
completion before it has the whole request.
"""

from sidecar.http.http_head import Headers, RequestHead, chunk, forwarded_request, last_chunk
from sidecar.judging.backlog import Backlog
from sidecar.judging.watch import STREAM, Shed, Watch
from sidecar.said.dialects import LOOK_BYTES


class Upload:
    """One request, head, body and trailers. `whole`: all of it has come; `writes`: how often some of it was given
    out; `unsent_bytes`: how much waits to be; `shed`: the queue guard refuses it, and nothing more is given out."""

    __slots__ = (
        "_backlog",
        "_first_write",
        "_head",
        "_held",
        "_host",
        "_is_decided",
        "_is_headed",
        "_length",
        "_prefix",
        "_sole",
        "_unsent",
        "_watch",
        "_whole_at_ns",
        "shed",
        "unsent_bytes",
        "whole",
        "writes",
    )

    def __init__(self, head: RequestHead, watch: Watch | None, backlog: Backlog) -> None:
        self._head, self._watch, self._backlog = head, watch, backlog
        self._prefix = b""
        self._host: bytes | None = None
        self._held: bytearray | None = None
        self._unsent: list[bytes] = []
        self._first_write = b""
        self._length: int | None = None  # of the body, where it is no longer what the head says
        self._sole: bytes | None = None  # the body, of a request that came in one piece
        self._whole_at_ns: int | None = None
        self.unsent_bytes = self.writes = 0
        self.whole = self._is_headed = False
        self.shed: Shed | None = None
        self._is_decided = watch is None  # whether it is to be held

    def begin(self, *, prefix: bytes, host: bytes | None) -> None:
        """The head may go: under `prefix`, and with `host` in place of the client's own if given."""
        self._prefix, self._host = prefix, host

    def at_once(self, body: bytes, at_ns: int) -> None:
        """All of a request that is framed by its length, if it has a body: it came whole, at `at_ns`."""
        head, watch = self._head, self._watch
        if watch is not None and watch.may_be_shed() and (shed := watch.shed(at_ns, body)) is not None:
            self.shed, self.whole = shed, True
            return
        self._sole, self.whole, self._whole_at_ns, self._is_decided = body, True, at_ns, True
        if watch is not None and body.find(STREAM) >= 0 and watch.may_ask(head):
            body = self._asking(watch, body)
        data = self._headed(body)
        self._unsent, self.unsent_bytes = [data], len(data)

    def body(self, data: bytes) -> None:
        """A piece of the body, transfer coding undone."""
        if self._watch is not None:
            self._backlog.note_bytes(self._watch.body, data)
        held = self._holding()
        if held is None:
            self._queue_body(data)
            return
        held += data
        if len(held) > LOOK_BYTES:
            self._let_go(bytes(held))

    def end(self, trailers: Headers, at_ns: int) -> None:
        """The last of it came at `at_ns`."""
        watch = self._watch
        if watch is not None and watch.may_be_shed() and (shed := watch.shed(at_ns)) is not None:
            self.shed, self.whole = shed, True
            return
        held = self._holding()
        if held is not None and watch is not None:
            self._let_go(self._asking(watch, bytes(held)))
        if self._head.chunked:
            self._queue(last_chunk(trailers))
        self.whole, self._whole_at_ns = True, at_ns

    def looked_at(self) -> None:
        """Have the watch told that the request is whole: once it is on its way, since a client waits for its answer."""
        at_ns, watch = self._whole_at_ns, self._watch
        if at_ns is None or watch is None:
            return
        sole, self._sole, self._whole_at_ns = self._sole, None, None
        if sole is None:
            self._backlog.note(watch.held, at_ns)
        else:
            self._backlog.note_bytes(watch.came, sole, at_ns)

    def take(self) -> bytes:
        """All that waits, for one write; nothing may wait."""
        if not self._is_headed and self._holding() is None:
            self._queue(b"")
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

    def _holding(self) -> bytearray | None:
        """What is held of the body; None: it goes as it comes."""
        if not self._is_decided and self._watch is not None:
            self._is_decided = True
            self._held = bytearray() if self._watch.may_ask(self._head) else None
        return self._held

    def _asking(self, watch: Watch, body: bytes) -> bytes:
        """The body to send for a whole one that may be asked for its usage."""
        text = watch.asking(body)
        if text is not body:
            self._length = len(text)
        return text

    def _let_go(self, body: bytes) -> None:
        self._held = None
        if body:
            self._queue_body(body)

    def _headed(self, data: bytes) -> bytes:
        """The head to send with the data behind it; from now on it was."""
        self._is_headed = True
        traceparent = None if self._watch is None else self._watch.traceparent
        return forwarded_request(
            self._head,
            prefix=self._prefix,
            host=self._host,
            traceparent=traceparent,
            length=self._length,
            body=data,
        )

    def _queue_body(self, data: bytes) -> None:
        self._queue(chunk(data) if self._head.chunked else data)

    def _queue(self, data: bytes) -> None:
        if not self._is_headed:
            data = self._headed(data)
        self._unsent.append(data)
        self.unsent_bytes += len(data)
