"""The listening side: each client's connection, its requests in their order, and the door they all came through.

A connection reads requests (pipelined ones wait their turn, and so does the reading of more), gives each to a
`Relay`, and stays open as HTTP/1.1 says. What it must never do is read without limit: the reader is paused while the
server takes no more, and while a request waits behind another.
"""

import asyncio
import contextlib
import select
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import cast

from sidecar import limits
from sidecar.http.http_head import RequestHead
from sidecar.http.http_read import END, Beyond, Body, End, Event, Refusal, RequestReader
from sidecar.judging.eye import Eye
from sidecar.judging.watch import Watch
from sidecar.relaying.client import NOWHERE, Leftovers, Out
from sidecar.relaying.own_answer import error_answer
from sidecar.relaying.relay import Relay
from sidecar.transport.tls_transport import hang_up, is_tls, pause_at_once
from sidecar.transport.trust import is_local, shows
from sidecar.transport.upstream import Pool


@dataclass(frozen=True, slots=True)
class Manners:
    """What the flags decide about every connection."""

    host: bytes | None = None
    drain_disconnected: bool = False
    token: bytes | None = None
    max_body_bytes: int = limits.MAX_BODY_BYTES
    max_head_bytes: int = limits.MAX_HEAD_BYTES
    max_connections: int = limits.MAX_CONNECTIONS
    client_idle_s: float = limits.CLIENT_IDLE_S
    client_head_s: float = limits.CLIENT_HEAD_S
    client_stall_s: float = limits.CLIENT_STALL_S


class Door:
    """Makes a `ClientConnection` of each accepted socket and knows all that are open."""

    def __init__(self, pool: Pool, eye: Eye, manners: Manners) -> None:
        self.pool, self.eye, self.manners = pool, eye, manners
        self.connections: set[ClientConnection] = set()
        self.leftovers = Leftovers()
        self.draining = False
        self._hurried = False
        self.emptied = asyncio.Event()

    def __call__(self) -> "ClientConnection":
        return ClientConnection(self)

    def forget(self, connection: "ClientConnection") -> None:
        self.connections.discard(connection)
        if not self.connections:
            self.emptied.set()

    def sweep(self) -> None:
        """Close connections that have idled too long, and those whose client left unseen; about once a second."""
        now_s = time.monotonic()
        for connection in list(self.connections):
            connection.close_if_spent(now_s)
        self.pool.sweep()

    def hurry(self) -> None:
        """End a drain that is under way now."""
        self._hurried = True
        self.emptied.set()

    async def drain(self, timeout_s: float) -> int:
        """Let requests in flight end, at most `timeout_s`; how many had to be broken off."""
        self.draining = True
        end_s = time.monotonic() + timeout_s
        for connection in list(self.connections):
            connection.close_if_free()
        while self.connections and not self._hurried and (left_s := end_s - time.monotonic()) > 0:
            self.emptied.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.emptied.wait(), left_s)
        broken_off = [connection for connection in self.connections if connection.abandon()]
        self.pool.close()
        return len(broken_off)


class ClientConnection(asyncio.Protocol):
    """One client's connection. `out` is its transport while there is one."""

    __slots__ = (
        "_door",
        "_full",
        "_full_since_s",
        "_heard_ns",
        "_hold_pipeline",
        "_hold_upload",
        "_lingering",
        "_paused",
        "_pending",
        "_reader",
        "_relay",
        "_since_s",
        "_tls",
        "_transport",
        "_trusted",
        "_tunnel",
        "_whole",
        "out",
    )

    def __init__(self, door: Door) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(max_head=door.manners.max_head_bytes, max_body=door.manners.max_body_bytes)
        self._pending: deque[tuple[Event, int]] = deque()
        self._relay: Relay | None = None
        self._whole = True
        self._tunnel = self._lingering = False
        self._hold_upload = self._hold_pipeline = self._paused = self._full = False
        self._since_s = self._full_since_s = time.monotonic()
        self._heard_ns = 0
        self._trusted = self._tls = False
        self.out: Out = NOWHERE

    @property
    def draining(self) -> bool:
        return self._door.draining

    @property
    def leftovers(self) -> Leftovers | None:
        return self._door.leftovers if self._door.manners.drain_disconnected else None

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's in all but their bases.
        self._transport = cast("asyncio.Transport", transport)
        self.out = self._transport
        # Above this much unsent the server's side is paused; small, so that a slow client costs little memory.
        self._transport.set_write_buffer_limits(high=64 << 10)
        self._trusted, self._tls = is_local(transport.get_extra_info("peername")), is_tls(transport)
        if self._tls:
            pause_at_once(transport)
        # A TLS connection is made when its handshake is over, which may be after the last one was to be taken.
        if len(self._door.connections) >= self._door.manners.max_connections or self.draining:
            self._abort()
            return
        self._door.connections.add(self)

    def data_received(self, data: bytes) -> None:
        at_ns = self._heard_ns = time.monotonic_ns()
        if self._lingering:
            return
        if self._tunnel and self._relay is not None:
            self._relay.tunnel(data)
            return
        if self._relay is None and self._reader.idle:
            self._since_s = at_ns / 1e9
        events = self._reader.feed(data)
        if self._relay is None and not self._pending and not self._full and self._is_sole(events):
            self._begin_whole(events, at_ns)
            return
        self._pending.extend([(event, at_ns) for event in events])
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the loop's own signature
        self._transport, self.out = None, NOWHERE
        self._door.forget(self)
        self._pending.clear()
        self._reader.close()
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.client_gone()

    def pause_writing(self) -> None:
        self._full, self._full_since_s = True, time.monotonic()
        if self._relay is not None:
            self._relay.client_full()

    def resume_writing(self) -> None:
        self._full = False
        if self._relay is not None:
            self._relay.client_drained()
        else:
            self._pump()

    # Requests in their order.

    @staticmethod
    def _is_sole(events: list[Event]) -> bool:
        """Whether these are one request and nothing else, as nearly every read of a client is."""
        return (
            1 < len(events) < 4
            and events[-1] is END
            and isinstance(head := events[0], RequestHead)
            and head.upgrade is None
            and not head.chunked
        )

    def _begin_whole(self, events: list[Event], at_ns: int) -> None:
        """The same as to take one event after the other."""
        head, piece = events[0], events[1]
        assert isinstance(head, RequestHead)
        relay = self._begin(head)
        self._whole = True
        relay.request_at_once(piece.data if isinstance(piece, Body) else b"", at_ns)

    def _pump(self) -> None:
        while self._pending:
            event, at_ns = self._pending[0]
            if self._relay is not None and self._whole and not isinstance(event, Beyond):
                break
            if isinstance(event, Beyond) and not self._tunnel:
                break
            if isinstance(event, RequestHead) and self._full:
                break  # a client that takes no answers gets no further ones made
            self._pending.popleft()
            self._take(event, at_ns)
        if self._relay is not None:
            self._relay.flush()
        self._hold_pipeline = bool(self._pending)
        self._apply_holds()

    def _take(self, event: Event, at_ns: int) -> None:
        if isinstance(event, RequestHead):
            self._begin(event)
        elif isinstance(event, Refusal):
            self._refuse(event)
        elif self._relay is None:
            pass
        elif isinstance(event, Body):
            self._relay.request_body(event.data)
        elif isinstance(event, End):
            self._whole = True
            self._relay.request_end(event.trailers, at_ns)
        else:
            self._relay.tunnel(event.data)

    def _begin(self, head: RequestHead) -> Relay:
        door, manners = self._door, self._door.manners
        watch = self._admit(head)
        self._whole = False
        relay = self._relay = Relay(self, head, pool=door.pool, eye=door.eye, watch=watch)
        relay.start(host=manners.host)
        return relay

    def _admit(self, head: RequestHead) -> Watch | None:
        return self._door.eye.admit(head, trusted=self._trusted or shows(head, self._door.manners.token))

    def _refuse(self, refusal: Refusal) -> None:
        if self._relay is not None:
            self._relay.refuse(refusal.status, refusal.message)
            return
        if refusal.head is not None and (watch := self._admit(refusal.head)) is not None:
            # Counted as one that turns out too long on its way is.
            self._door.eye.look(watch.refused, self._heard_ns, refusal.status)
        self.out.write(error_answer(refusal.status, refusal.message, kind="invalid_request_error", minor=1, keep=False))
        self._whole = False
        self.finished(keep=False)

    # What a relay asks of us.

    def finished(self, *, keep: bool) -> None:
        """The exchange is over."""
        self._relay = None
        self._since_s = time.monotonic()
        self._hold_upload = False
        if not keep or self._door.draining or not self._whole:
            self._close()
            return
        if self._reader.switching:
            beyond = b"".join(event.data for event, _ in self._pending if isinstance(event, Beyond))
            self._pending.clear()
            self._reader.restart()
            self._pending.extend((event, time.monotonic_ns()) for event in self._reader.feed(beyond))
        if self._pending or self._paused:
            self._pump()

    def cut(self) -> None:
        """The answer was cut where the connection's end is all that ends it: only a reset tells that it was, or TLS
        without a goodbye. (A unix socket has neither.)"""
        self._relay = None
        if self._transport is None or self._transport.is_closing():
            return
        no_lingering = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
        if self._tls:
            self._take_no_more()
            hang_up(self._transport)
            asyncio.get_running_loop().call_later(limits.LINGER_S, self._abort)
        else:
            self._transport.close()

    def hold_upload(self, *, hold: bool) -> None:
        self._hold_upload = hold
        self._apply_holds()

    def enter_tunnel(self) -> None:
        self._tunnel = True
        self._pump()

    def _apply_holds(self) -> None:
        paused = self._hold_upload or self._hold_pipeline
        if self._transport is None or paused == self._paused:
            return
        self._paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Closing.

    def _close(self) -> None:
        """Close once everything is sent. A client still sending would meet a reset, and lose our answer to it."""
        self._pending.clear()
        if self._transport is None:
            return
        if self._whole and not self._tls:
            self._transport.close()
            return
        self._take_no_more()
        if self._tls:
            self._transport.close()  # says goodbye, then reads and drops
        else:
            self._transport.write_eof()
        if self._whole:
            self._end_linger()
        else:
            asyncio.get_running_loop().call_later(limits.LINGER_S, self._end_linger)

    def _take_no_more(self) -> None:
        """What the client still sends is read and dropped."""
        self._lingering, self._hold_upload, self._hold_pipeline = True, False, False
        self._apply_holds()

    def _end_linger(self) -> None:
        """Our answer is still the client's while it takes it."""
        spent_s = time.monotonic() - self._since_s
        unsent = self._transport is not None and self._transport.get_write_buffer_size() > 0
        if unsent and spent_s < self._door.manners.client_idle_s:
            asyncio.get_running_loop().call_later(limits.LINGER_S, self._end_linger)
        elif self._tls and self._transport is not None and not unsent:
            self._lingering = False  # the socket may still hold some of our answer: as long as any idle client may
            hang_up(self._transport)
        else:
            self._abort()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def close_if_spent(self, now_s: float) -> None:
        """Close when nothing is to be expected from this client any more."""
        manners = self._door.manners
        if self._relay is not None:
            takes_nothing = self._full and now_s - self._full_since_s > manners.client_stall_s
            owes_body = not self._whole and not self._paused
            sends_nothing = owes_body and now_s - self._heard_ns / 1e9 > manners.client_stall_s
            if takes_nothing or sends_nothing or (self._paused and self._left_unseen()):
                self._abort()
        elif not self._lingering:
            limit_s = manners.client_idle_s if self._reader.idle else manners.client_head_s
            if now_s - self._since_s > limit_s:
                self._abort()

    def _left_unseen(self) -> bool:
        """Whether the client has closed: while we do not read, the event loop cannot tell."""
        if self._transport is None or self._transport.is_closing():
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    def close_if_free(self) -> None:
        if self._relay is None and not self._lingering:
            self._close()

    def abandon(self) -> bool:
        """Break off what is in flight; whether anything was."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.abandon()
        self._abort()
        return relay is not None
