"""One request under the eye, from its head to its end: what the proxy tells of it, in order.

Holds the beginning and the end of the request's body until it is whole, then the exchange that reads the answer and
the judge that knows its deadlines; lets go of all of it once the request is over.
"""

import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sidecar import dialects
from sidecar.deadline_timer import NEVER_NS
from sidecar.deadlines import Judge
from sidecar.exchange import Exchange
from sidecar.http_head import TRACEPARENT, RequestHead, ResponseHead
from sidecar.record import EndedRequest, Record
from sidecar.template import Template
from sidecar.trace_context import child_of
from sidecar.usage_hide import UsageFilter
from sidecar.usage_policy import Asking
from slo.objective import Objective
from slo.signals import IN_FLIGHT, WAITING_FIRST_TOKEN

if TYPE_CHECKING:
    from sidecar.eye import Eye

MAX_REQUEST_ID = 128


class Watch:
    """The eye on one request: from its head to its end."""

    __slots__ = (
        "_ask",
        "_dialect",
        "_exchange",
        "_eye",
        "_first_seen",
        "_head",
        "_judge",
        "_off",
        "_size",
        "_tail",
        "armed_ns",
        "catch_up",
        "context",
        "kv_at_arrival",
        "kv_max",
        "model",
        "request_class",
        "request_id",
        "start_unix_ns",
        "usage",
        "violated",
    )

    def __init__(self, eye: "Eye", head: RequestHead, dialect: dialects.Dialect, request_class: str | None) -> None:
        self._eye, self._dialect, self.request_class = eye, dialect, request_class
        self._head, self._tail, self._size = bytearray(), b"", 0
        self._ask: dialects.Ask | None = None
        self._exchange: Exchange | None = None
        self._judge: Judge | None = None
        self._first_seen = self._off = self.violated = False
        self.armed_ns = NEVER_NS
        # A shell that tells of the answer's reads later than they came sets this; it must not raise.
        self.catch_up: Callable[[], None] = _nothing
        self.usage: Asking | None = None
        self.model: str | None = None
        self.start_unix_ns = 0
        self.kv_at_arrival: float | None = None
        self.kv_max: float | None = None
        self.context = child_of(
            head.find_all(TRACEPARENT),
            trace_bits=random.getrandbits(128) or 1,
            span_bits=random.getrandbits(64) or 1,
        )
        self.request_id = _request_id(head)

    @property
    def traceparent(self) -> bytes | None:
        """The field to send upstream; None: the client's own, since a parent that is never exported would cut the
        server's span off from its trace."""
        return self.context.traceparent if self._eye.exports_spans else None

    @property
    def label(self) -> str:
        """The label of its model, as far as that is known."""
        return self._eye.labels.of(self.model)

    # What the proxy tells, in this order.

    def body(self, data: bytes) -> None:
        """A piece of the request's body: its beginning and its end are kept, until it is held."""
        room = dialects.LOOK_BYTES - len(self._head)
        before = len(self._head) if self._size <= dialects.LOOK_BYTES else 0
        if room > 0:
            self._head += data[:room]
        self._size += len(data)
        if self._size > dialects.LOOK_BYTES:
            start = bytes(self._head[:before][-dialects.TAIL_BYTES :]) if before else self._tail
            self._tail = (start + data[-dialects.TAIL_BYTES :])[-dialects.TAIL_BYTES :]

    def held(self, at_ns: int) -> None:
        """The whole request is here: t0."""
        self._begin(at_ns, whole=True)

    def _begin(self, at_ns: int, *, whole: bool) -> None:
        """What is known of the request is all there will be; one that is not `whole` is glimpsed like a long one."""
        if self._exchange is not None or self._off:
            return
        ask = self._read_ask(whole=whole)
        if not ask.generates:
            self._off = True
            return
        self.start_unix_ns = time.time_ns()
        self.model = ask.model
        self.kv_at_arrival = self.kv_max = self._eye.kv_occupancy
        self._exchange = Exchange(ask, at_ns, overload_429=self._eye.overload_429)
        self._judge = Judge(self._eye.rules_of(ask, self.request_class), self._exchange)
        self._eye.begin(self, at_ns)

    def _read_ask(self, *, whole: bool) -> dialects.Ask:
        """What is asked, read once."""
        if self._ask is None:
            complete = whole and self._size <= dialects.LOOK_BYTES
            head, tail = bytes(self._head), self._tail
            self._ask = dialects.read_ask(self._dialect, head, complete=complete, tail=tail, size=self._size)
            self._head, self._tail = bytearray(), b""
        return self._ask

    def asking(self, body: bytes) -> bytes:
        """The body to send for a whole one: itself, or with usage asked for. Never raises."""
        if self.usage is None or self._off:
            return body
        edited = self._eye.look(self._asked, body)
        return edited or body

    def _asked(self, body: bytes) -> bytes | None:
        ask = self._read_ask(whole=True)
        return self.usage.edit(ask, body) if self.usage is not None and ask.generates else None

    def hiding(self, head: ResponseHead) -> UsageFilter | None:
        """What the answer's body has to pass through, if anything. Never raises."""
        return None if self.usage is None else self._eye.look(self.usage.answered, head)

    def answered(self, head: ResponseHead, at_ns: int) -> None:
        """The answer's final head; it may come before the request is whole."""
        self._begin(at_ns, whole=False)
        if self._exchange is None:
            return
        if 200 <= head.status < 300:
            self._eye.learn(self.model)
        content_type, encoding = head.find(b"content-type"), head.find(b"content-encoding")
        self._exchange.response_started(
            head.status,
            (content_type or b"").decode("latin-1"),
            content_encoding=(encoding or b"").decode("latin-1"),
            at_ns=at_ns,
        )

    def read(self, data: bytes, at_ns: int) -> None:
        """A read of the answer's body, told later than it came maybe; what it teaches of the stream, `template` has."""
        if self._exchange is not None and self._exchange.feed_and_learn(data, at_ns):
            self._token(at_ns)

    def texts(self, texts: list[bytes], at_ns: list[int]) -> None:
        """Reads of `template` that came in this order, at least one, told by their texts: as `read` for each."""
        if self._exchange is not None and self._exchange.feed_texts(texts, at_ns):
            self._token(at_ns[-1])

    @property
    def template(self) -> Template | None:
        """The template of reads that may be told by their texts; none before the first token."""
        return self._exchange.template if self._exchange is not None else None

    @property
    def may_learn(self) -> bool:
        """Whether it is worth while to tell of the next read soon."""
        return self._exchange is not None and (not self._first_seen or self._exchange.may_learn)

    def _token(self, at_ns: int) -> None:
        """The newest token so far came at `at_ns`; of another request there may be a newer one."""
        self._eye.last_token_ns = max(self._eye.last_token_ns, at_ns)
        if not self._first_seen and self._judge is not None:
            self._first_seen = True
            self._eye.count(self, self._judge.first_token())
            self._eye.timer.set(self)

    def complete(self, at_ns: int, framed: bool) -> None:
        """The answer ended as its framing says."""
        self._end(lambda exchange: exchange.response_ended(at_ns, framed=framed))

    def lost(self, at_ns: int, error_type: str) -> None:
        """The server failed us."""
        if error_type in ("connect_refused", "connect_failed"):
            self._eye.usage.server_gone()
        self._begin(at_ns, whole=False)
        self._end(lambda exchange: exchange.upstream_lost(at_ns, error_type))

    def refused(self, at_ns: int, status: int) -> None:
        """We refused the rest of the request ourselves."""
        self._begin(at_ns, whole=False)

        def end(exchange: Exchange) -> None:
            if exchange.status is None:
                exchange.response_started(status, at_ns=at_ns)
            exchange.response_ended(at_ns)

        self._end(end)

    def left(self, at_ns: int) -> None:
        """The client went away; one that left before its request was whole never asked."""
        self._end(lambda exchange: exchange.client_left(at_ns))

    def _end(self, act: Callable[[Exchange], None]) -> None:
        """Let the exchange end and let go of it, even should a fault keep it from being counted."""
        exchange, judge = self._exchange, self._judge
        self.catch_up = _nothing
        if exchange is None or judge is None:
            return
        try:
            act(exchange)
        finally:
            self._exchange = self._judge = None
            self._off = True
            self._eye.end(self, exchange, judge)

    # What the timer and the gauges ask.

    def next_deadline_ns(self) -> int | None:
        """When to be woken; None: not before something else has happened."""
        return None if self._judge is None else self._judge.next_deadline_ns()

    def wake(self, now_ns: int) -> None:
        """Count the deadlines that have passed. Never raises."""
        self._eye.look(self._passed, now_ns)

    def _passed(self, now_ns: int) -> None:
        self.catch_up()
        if self._judge is not None:
            self._eye.count(self, self._judge.passed(now_ns))

    def columns(self, now_ns: int) -> Iterable[str]:
        """In which gauges this request counts."""
        exchange, judge = self._exchange, self._judge
        if exchange is None or judge is None:
            return
        yield IN_FLIGHT.name
        if exchange.ask.stream and exchange.first_token_at_ns is None:
            yield WAITING_FIRST_TOKEN.name
        yield from judge.overdue(now_ns)

    def at_stake(self) -> list[Objective]:
        """The objectives that this request would be bad for, were it to break off now."""
        return [] if self._judge is None else self._judge.at_stake()

    def ended_request(self, record: Record) -> EndedRequest:
        """What a span says of this request, which ended as `record` says."""
        return EndedRequest(
            record,
            self.context,
            self.start_unix_ns,
            self.request_class,
            self.request_id,
            self.kv_at_arrival,
            self.kv_max,
            self.violated,
        )


def _nothing() -> None:
    """What most shells have put aside."""


def _request_id(head: RequestHead) -> str | None:
    value = head.find(b"x-request-id")
    text = "" if value is None else value.decode("latin-1")
    return text if 0 < len(text) <= MAX_REQUEST_ID and text.isprintable() else None
