"""One request on its way through: a client's connection on one side, the server's on the other.

The order that every byte of an answer meets: read, written to the client, and only then noted, to be looked at with
what other requests did (`backlog`). A body whose framing the client can take is passed on raw; the parser behind the
write only learns where it ends and what it carried. Two kinds of body are taken apart first: a chunked one for an
HTTP/1.0 client, who could not read it, and a stream with a usage chunk that only we asked for (see `usage_pass`).

A request is sent twice only when the first sending cannot have arrived: the connection came from the pool and its
very first write was refused, or it ended without an answer to a request that RFC 9110 (9.2.2) allows to repeat and
that has no body. A completion never runs twice.
"""

import asyncio
import time
from functools import partial

from sidecar import limits
from sidecar.http.http_head import Headers, RequestHead, ResponseHead, forwarded_response, interim_response
from sidecar.http.http_read import BadAnswerError, ResponseReader, may_be_head
from sidecar.judging.backlog import Act
from sidecar.judging.eye import Eye
from sidecar.judging.watch import Watch
from sidecar.relaying.client import Client, Leftovers
from sidecar.relaying.fast_path import FastPath
from sidecar.relaying.own_answer import BROKE_OFF, NOT_HTTP, UNREACHABLE, Answer, error_answer, overload_answer
from sidecar.relaying.upload import Upload
from sidecar.said.record import CONNECT_TIMEOUT
from sidecar.transport.upstream import Connection, Pool, why_unreachable
from sidecar.usage.usage_pass import UsagePass, unsized

REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS"))

_BEFORE_HEAD, _PASS, _UNCHUNK, _FILTER, _TUNNEL = range(5)


class Relay:
    """The exchange; told of events by both connections, and over once `_done`."""

    __slots__ = (
        "_backlog", "_buffer", "_client", "_client_full", "_connecting", "_connection", "_done", "_endless",
        "_fast_path", "_head", "_keep", "_leftover", "_look", "_mode", "_pool", "_reader", "_reads", "_repeated",
        "_response", "_upload", "_usage_pass", "_watch",
    )  # fmt: skip

    def __init__(self, client: Client, head: RequestHead, *, pool: Pool, eye: Eye, watch: Watch | None) -> None:
        self._client, self._head, self._pool = client, head, pool
        self._look, self._backlog, self._watch = eye.look, eye.backlog, watch
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._upload = Upload(head, watch, eye.backlog)
        self._done = self._client_full = self._repeated = self._endless = False
        self._reader: ResponseReader
        self._mode, self._buffer, self._keep = _BEFORE_HEAD, b"", False
        self._response: ResponseHead | None = None
        self._usage_pass: UsagePass | None = None
        self._fast_path: FastPath | None = None
        self._reads = 0  # of the body
        self._leftover: asyncio.TimerHandle | None = None

    # The request's way.

    def start(self, *, host: bytes | None) -> None:
        """Begin: the request's head goes out with the next `flush`, unless it is held."""
        self._upload.begin(prefix=self._pool.prefix, host=host)
        if (connection := self._pool.take()) is not None:
            self._attach(connection)
        else:
            self._connect()

    def request_at_once(self, body: bytes, at_ns: int) -> None:
        """All of a request that has no chunks, right after `start`."""
        self._upload.at_once(body, at_ns)
        self.flush()

    def request_body(self, data: bytes) -> None:
        if not self._done:
            self._upload.body(data)

    def request_end(self, trailers: Headers, at_ns: int) -> None:
        if not self._done:
            self._upload.end(trailers, at_ns)

    def flush(self) -> None:
        """Send what has gathered, in one write."""
        if self._upload.shed is not None:
            self._end_early(partial(overload_answer, self._upload.shed), Watch.refused, 503)
        elif self._connection is None:
            if self._upload.unsent_bytes > limits.UNSENT_BYTES:
                self._client.hold_upload(hold=True)
        elif data := self._upload.take():
            self._connection.write(data)
        self._upload.looked_at()

    def tunnel(self, data: bytes) -> None:
        """Bytes of a protocol that is not HTTP, from the client."""
        if self._connection is not None:
            self._connection.write(data)

    def _connect(self) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connected())

    async def _connected(self) -> None:
        try:
            connection = await self._pool.connect()
        except Exception as error:  # noqa: BLE001  whatever it is (a name that is none): nobody may wait for ever
            self._fail(UNREACHABLE, why_unreachable(error))
            return
        finally:
            self._connecting = None
        if self._done:
            self._pool.give(connection)
            return
        self._client.hold_upload(hold=False)
        self._attach(connection)
        self.flush()

    def _attach(self, connection: Connection) -> None:
        connection.use(self)
        self._connection = connection
        self._reader = connection.reader = connection.reader or ResponseReader()
        self._reader.restart(method=self._head.method)
        if self._client_full:
            connection.pause_reading()

    # The answer's way.

    def upstream_data(self, data: bytes, at_ns: int) -> None:
        """Bytes from the server that the fast path did not take."""
        if self._mode == _BEFORE_HEAD:
            self._take_head(data, at_ns)
            return
        if self._mode in (_PASS, _TUNNEL):
            self._client.out.write(data)
        if self._mode != _TUNNEL:
            self._seen(data, at_ns)

    def _seen(self, data: bytes, at_ns: int, head: ResponseHead | None = None) -> None:
        """Look at body bytes; in `_PASS` the client has them already. `head`: the one that came before them."""
        if self._fast_path is not None:
            self._tell()
        reader = self._reader
        try:
            payload, bad = reader.body(data), False
        except BadAnswerError as error:
            payload, bad = error.payload, True
        if payload:
            if self._usage_pass is not None:
                self._usage_pass.pass_on(payload)
            elif self._mode == _UNCHUNK:
                self._client.out.write(payload)
        ended = reader.complete and not bad
        told = False
        if (watch := self._watch) is not None:
            self._reads += 1
            if told := ended and self._reads == 1 and self._fast_path is None:
                self._note_whole(watch, payload, at_ns, head)
            else:
                self._note_read(watch, payload, at_ns, head)
        if bad:
            self._fail(NOT_HTTP, "upstream_protocol")
        elif ended:
            self._finish(at_ns, framed=True, told=told)

    def _note_whole(self, watch: Watch, payload: bytes, at_ns: int, head: ResponseHead | None) -> None:
        """Have an answer looked at whose body came in one read."""
        if head is None:
            self._backlog.note_bytes(watch.whole, payload, at_ns)
        else:
            self._backlog.note_bytes(watch.answered_whole, payload, head, at_ns)

    def _note_read(self, watch: Watch, payload: bytes, at_ns: int, head: ResponseHead | None) -> None:
        """Have a read looked at."""
        if head is not None:
            self._backlog.note(watch.answered, head, at_ns)
        if self._fast_path is not None:
            between = self._reader.between_chunks and (self._usage_pass is None or self._usage_pass.is_clear)
            self._fast_path.note(payload, at_ns, between=between)
        elif payload:
            self._backlog.note_bytes(watch.read, payload, at_ns)

    def _tell(self) -> None:
        """Look at what was put aside for later."""
        latest = None if self._fast_path is None else self._fast_path.tell()
        if latest is not None and self._usage_pass is not None:
            self._usage_pass.passed(latest)

    def _take_head(self, data: bytes, at_ns: int) -> None:
        data, start, self._buffer = self._buffer + data, 0, b""
        while (end := data.find(b"\r\n\r\n", start)) >= 0:
            try:
                head = self._reader.head(data[start : end + 4])
            except BadAnswerError:
                self._fail(NOT_HTTP, "upstream_protocol")
                return
            start = end + 4
            if head.status == 101:
                self._switch(head, data[start:])
                return
            if head.status >= 200:
                self._answer(head, data[start:], at_ns)
                return
            if self._head.minor:
                self._client.out.write(interim_response(head))
        self._buffer = data[start:]
        if len(self._buffer) > limits.MAX_RESPONSE_HEAD_BYTES or not may_be_head(self._buffer):
            self._fail(NOT_HTTP, "upstream_protocol")

    def _answer(self, head: ResponseHead, rest: bytes, at_ns: int) -> None:
        """Pass on the final head with whatever body came in the same read, then look."""
        shown, watch, minor = head, self._watch, self._head.minor
        if watch is not None and (hide := watch.hiding(head)) is not None:
            shown = unsized(head, minor=minor)
            chunks = shown.framing == "chunked" and minor > 0
            self._usage_pass = UsagePass(self._write, hide, chunks=chunks, look=self._look)
        framing, self._response = shown.framing, head
        old_client_chunks = framing == "chunked" and minor == 0
        self._endless = old_client_chunks or framing == "close"
        self._keep = not self._endless and self._may_keep()
        self._mode = _PASS if self._usage_pass is None else _FILTER
        if old_client_chunks and self._usage_pass is None:
            self._mode = _UNCHUNK
        out = forwarded_response(shown, minor=minor, keep=self._keep)
        self._client.out.write(out + rest if self._mode == _PASS and not self._reader.complete else out)
        # Where a body without a length goes on as it comes, reads may be known by their likeness.
        if watch is not None and framing == head.framing and (framing == "close" or (framing == "chunked" and minor)):
            self._begin_fast_path(watch, chunked=framing == "chunked")
        if rest or self._reader.complete:
            self._seen(rest, at_ns, head)
        elif watch is not None:
            self._backlog.note(watch.answered, head, at_ns)

    def _begin_fast_path(self, watch: Watch, *, chunked: bool) -> None:
        assert self._connection is not None
        fast_path = FastPath(self._client, watch, self._backlog, chunked=chunked)
        self._fast_path = self._connection.taker = fast_path
        watch.catch_up = self._tell

    def _may_keep(self) -> bool:
        """Whether the client's connection may serve another request: not when this one may never become whole."""
        return self._head.keep_alive and self._upload.whole and not self._client.draining

    def _switch(self, head: ResponseHead, rest: bytes) -> None:
        if self._head.upgrade is None:
            self._fail(NOT_HTTP, "upstream_protocol")
            return
        self._response, self._mode = head, _TUNNEL
        self._client.out.write(interim_response(head) + rest)
        self._client.enter_tunnel()

    def _write(self, data: bytes) -> None:
        self._client.out.write(data)

    # Ends.

    def _finish(self, at_ns: int, *, framed: bool, told: bool = False) -> None:
        """The answer is over, which the watch may have been told."""
        assert self._response is not None
        self._done = True
        if self._fast_path is not None:
            self._tell()
        if self._leftover is not None:
            self._leftover.cancel()
        if self._usage_pass is not None:
            self._usage_pass.end(self._reader.trailers)
        if self._watch is not None:
            if not told:
                self._backlog.note(self._watch.complete, at_ns, framed)
            usage = self._watch.usage
            if usage is not None and usage.streams and usage.teaches:
                self._backlog.settle()
        clean = self._upload.whole and not self._upload.unsent_bytes and not self._reader.surplus
        connection, self._connection = self._connection, None
        if connection is not None:
            if clean and self._response.keep_alive and self._response.framing != "close":
                self._pool.give(connection, after_chunks=self._response.framing == "chunked")
            else:
                connection.abort()
        self._client.finished(keep=self._keep and clean)

    def _fail(self, message: str, error_type: str) -> None:
        """The server failed us: say so if the answer has not begun, else break it off visibly."""
        answer = partial(error_answer, 504 if error_type == CONNECT_TIMEOUT else 502, message, kind=error_type)
        self._end_early(answer, Watch.lost, error_type)

    def refuse(self, status: int, message: str) -> None:
        """The client's request went wrong on its way."""
        answer = partial(error_answer, status, message, kind="invalid_request_error")
        self._end_early(answer, Watch.refused, status)

    def _end_early(self, answer: Answer, tell: Act, why: object) -> None:
        if self._done:
            return
        self._release()
        if self._watch is not None:
            self._backlog.note(tell, self._watch, time.monotonic_ns(), why)
        keep = False
        if self._mode == _BEFORE_HEAD:
            keep = self._may_keep()
            said = answer(minor=self._head.minor, keep=keep)
            self._client.out.write(said if self._head.method != b"HEAD" else said[: said.find(b"\r\n\r\n") + 4])
        elif self._endless:
            self._client.cut()
            return
        self._client.finished(keep=keep)

    def upstream_lost(self, error: Exception | None) -> None:
        """The server's connection is gone."""
        connection, self._connection = self._connection, None
        if self._done:
            return
        if self._may_repeat(connection, error):
            self._repeated = True
            self._upload.repeat()
            self._connect()
        elif self._mode == _TUNNEL or (error is None and self._response and self._response.framing == "close"):
            self._keep = False
            self._finish(time.monotonic_ns(), framed=False)
        else:
            self._fail(BROKE_OFF, "upstream_closed" if error is None else "upstream_reset")

    def _may_repeat(self, connection: Connection | None, error: Exception | None) -> bool:
        if connection is None or self._repeated or self._upload.writes > 1:
            return False
        if not connection.reused and self._upload.writes:
            return False
        if self._mode != _BEFORE_HEAD or self._buffer:
            return False
        never_left = self._upload.writes == 0 or isinstance(error, BrokenPipeError)
        return never_left or (self._head.method in REPEATABLE and not self._head.has_body and self._upload.whole)

    def client_gone(self) -> None:
        """Nobody waits any more: the server is told so at once, by closing its connection, or else left in peace."""
        if self._done:
            return
        leftovers = self._client.leftovers
        if leftovers is not None and leftovers.has_room and self._upload.whole and self._mode != _TUNNEL:
            self._drain(leftovers)
        else:
            self._release()
        if self._watch is not None:
            self._backlog.note(self._watch.left, time.monotonic_ns())
            self._watch = None

    def _drain(self, leftovers: Leftovers) -> None:
        """Let the server end its answer, for some time, and nobody have it."""
        self._tell()
        if self._usage_pass is not None:
            self._usage_pass.broken()
        leftovers.begin()
        self._client, self._fast_path, self._usage_pass = leftovers, None, None
        if self._connection is not None:
            self._connection.taker = None
        self._repeated = True
        self.client_drained()
        self._leftover = asyncio.get_running_loop().call_later(limits.LEFTOVER_S, self._fail, BROKE_OFF, "timeout")

    def abandon(self) -> None:
        """The proxy ends before the answer does."""
        if not self._done:
            self._release()
            if self._watch is not None:
                self._backlog.note(self._watch.lost, time.monotonic_ns(), "proxy_shutdown")
            if self._endless:
                self._client.cut()

    def _release(self) -> None:
        self._done = True
        self._tell()
        if self._leftover is not None:
            self._leftover.cancel()
        if self._usage_pass is not None:
            self._usage_pass.broken()
        if self._connecting is not None:
            self._connecting.cancel()
        connection, self._connection = self._connection, None
        if connection is not None and self._upload.writes:
            connection.abort()
        elif connection is not None:
            self._pool.give(connection)

    # Back-pressure.

    def upstream_full(self) -> None:
        self._client.hold_upload(hold=True)

    def upstream_drained(self) -> None:
        self._client.hold_upload(hold=False)

    def client_full(self) -> None:
        self._client_full = True
        if self._connection is not None:
            self._connection.pause_reading()

    def client_drained(self) -> None:
        self._client_full = False
        if self._connection is not None:
            self._connection.resume_reading()
