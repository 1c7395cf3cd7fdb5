"""One request under the eye, from its head to its end: what the proxy tells of it, in order.

Holds what may be looked at of the request's body until it is whole, then the exchange that reads the answer and
the judge that knows its deadlines; lets go of all of it once the request is over.
"""

import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from sidecar.guarding.queue_guard import Queued
from sidecar.http.http_head import TRACEPARENT, RequestHead, ResponseHead
from sidecar.http.trace_context import child_of, root
from sidecar.judging.deadline_timer import NEVER_NS
from sidecar.judging.deadlines import Judge
from sidecar.said import dialects
from sidecar.said.exchange import Exchange
from sidecar.said.glimpse import Glimpse
from sidecar.said.record import CONNECT_TIMEOUT, EndedRequest, Record
from sidecar.said.template import Template
from sidecar.said.whole import is_plain, record_of
from sidecar.usage.usage_hide import UsageFilter
from sidecar.usage.usage_policy import Asking
from slo.objective import Objective
from slo.signals import IN_FLIGHT, SYNTHETIC_CLASS, WAITING_FIRST_TOKEN

if TYPE_CHECKING:
    from sidecar.judging.eye import Eye

MAX_REQUEST_ID = 128
REQUEST_ID = b"x-request-id"
STREAM = b'"stream"'  # stands in every body that may be asked for its usage (`in` would first take it for a number)


class Shed(NamedTuple):
    """That a request is refused: the dialect of its client, who may come again after so long."""

    dialect: dialects.Dialect
    retry_s: int


class Watch:
    """The eye on one request: from its head to its end."""

    __slots__ = (
        "_answer",
        "_ask",
        "_dialect",
        "_exchange",
        "_eye",
        "_first_seen",
        "_glimpse",
        "_judge",
        "_may_refuse",
        "_off",
        "_queued",
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
        self._glimpse: Glimpse | None = None
        self._ask: dialects.Ask | None = None
        self._exchange: Exchange | None = None
        self._judge: Judge | None = None
        self._queued: Queued | None = None
        self._answer: tuple[ResponseHead, int] | None = None  # the exchange is told of it with what follows
        self._first_seen = self._off = self._may_refuse = self.violated = False
        self.armed_ns = NEVER_NS
        # A shell that tells of the answer's reads later than they came sets this; it must not raise.
        self.catch_up: Callable[[], None] = _nothing
        self.usage: Asking | None = None
        self.model: str | None = None
        self.start_unix_ns = 0
        self.kv_at_arrival: float | None = None
        self.kv_max: float | None = None
        trace_bits, span_bits, places = random.getrandbits(128) or 1, random.getrandbits(64) or 1, head.shape.places
        if TRACEPARENT in places:
            self.context = child_of(head.find_all(TRACEPARENT), trace_bits=trace_bits, span_bits=span_bits)
        else:
            self.context = root(trace_bits, span_bits)
        self.request_id = _request_id(head) if REQUEST_ID in places else None

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
        """A piece of the request's body."""
        if self._ask is None:
            if self._glimpse is None:
                self._glimpse = Glimpse()
            self._glimpse.add(data)

    def held(self, at_ns: int) -> None:
        """The whole request is here: t0."""
        self._begin(at_ns, whole=True)

    def came(self, body: bytes, at_ns: int) -> None:
        """As `body` and `held` of a request that came in one piece."""
        if self._ask is None and len(body) <= dialects.LOOK_BYTES:
            self._ask = dialects.read_ask(self._dialect, body)
        else:
            self.body(body)
        self._begin(at_ns, whole=True)

    def _begin(self, at_ns: int, *, whole: bool) -> None:
        """What is known of the request is all there will be; one that is not `whole` is glimpsed like a long one."""
        if self._exchange is not None or self._off:
            return
        ask, eye = self._ask or self._glimpsed(whole=whole), self._eye
        self._glimpse = None
        if not ask.generates:
            self._off = True
            return
        self.start_unix_ns = time.time_ns() - (time.monotonic_ns() - at_ns)  # it may have come a while ago
        self.model = ask.model
        self.kv_at_arrival = self.kv_max = eye.kv_occupancy
        self._exchange = exchange = Exchange(ask, at_ns, overload_429=eye.overload_429)
        rules = eye.rules_of(ask, self.request_class)
        self._judge = Judge(rules, exchange)
        eye.begin(self, at_ns)
        self._queued = eye.queue(ask, rules, at_ns, may_refuse=self._may_refuse)

    def may_be_shed(self) -> bool:
        """Whether `shed` is to be asked before the last of the request goes on; to be called once, then."""
        guard = self._eye.guard
        return guard is not None and guard.asks()

    def shed(self, at_ns: int, body: bytes | None = None) -> Shed | None:
        """As `came` of a whole `body`, or as `held`; and how the queue guard refuses the request, if it does. Never
        raises."""
        self._eye.backlog.settle()
        self._may_refuse = True
        if body is None:
            self._eye.look(self.held, at_ns)
        else:
            self._eye.look(self.came, body, at_ns)
        queued, exchange = self._queued, self._exchange
        if queued is None or exchange is None or queued.verdict != "shed":
            return None
        return Shed(exchange.ask.dialect, queued.retry_s)

    def _glimpsed(self, *, whole: bool) -> dialects.Ask:
        """What the kept pieces of the body ask."""
        kept = self._glimpse or Glimpse()
        complete = whole and kept.size <= dialects.LOOK_BYTES
        return dialects.read_ask(self._dialect, bytes(kept.head), complete=complete, tail=kept.tail, size=kept.size)

    def may_ask(self, head: RequestHead) -> bool:
        """Whether the request behind `head` may be asked for its usage, once it is whole. Never raises."""
        self.usage = self._eye.look(self._eye.usage.candidate, head, self._dialect)
        return self.usage is not None

    def asking(self, body: bytes) -> bytes:
        """The body to send for a whole one, short enough to be read, of a request that may be asked: itself, or with
        usage asked for. Never raises."""
        if self.usage is None or body.find(STREAM) < 0:
            return body
        edited = self._eye.look(self._asked, self.usage, body)
        return edited or body

    def _asked(self, usage: Asking, body: bytes) -> bytes | None:
        ask = self._ask = dialects.read_ask(self._dialect, body)
        self._glimpse = None
        return usage.edit(ask, body) if ask.generates else None

    def hiding(self, head: ResponseHead) -> UsageFilter | None:
        """What the answer's body has to pass through, if anything. Never raises."""
        usage = self.usage
        return None if usage is None or not usage.streams else self._eye.look(usage.answered, head)

    def answered(self, head: ResponseHead, at_ns: int) -> None:
        """The answer's final head; it may come before the request is whole."""
        if self._exchange is None:
            self._begin(at_ns, whole=False)
        if self._exchange is not None:
            self._answer = head, at_ns
            if 200 <= head.status < 300 and self.model not in self._eye.labels.names:
                self._eye.learn(self.model)

    def _start(self, exchange: Exchange) -> None:
        """Tell the exchange of the head that came, if it does not know it."""
        if self._answer is None:
            return
        (head, at_ns), self._answer = self._answer, None
        content_type, encoding = head.find(b"content-type"), head.find(b"content-encoding")
        exchange.response_started(
            head.status,
            (content_type or b"").decode("latin-1"),
            content_encoding=(encoding or b"").decode("latin-1"),
            at_ns=at_ns,
        )

    def whole(self, data: bytes, at_ns: int) -> None:
        """The answer's body, which one read brought whole, and with it the end that its framing says."""
        try:
            record = self._straight(data, at_ns)
        except Exception as error:  # noqa: BLE001  a fault on the short way leaves the long one
            self._eye.fault(error)
            record = None
        if record is not None:
            self._over(record)
            return
        if data:
            self._eye.look(self.read, data, at_ns)
        self.complete(at_ns, True)

    def answered_whole(self, data: bytes, head: ResponseHead, at_ns: int) -> None:
        """As `answered` and `whole`, of an answer that came in one read."""
        try:
            self.answered(head, at_ns)
        finally:
            self.whole(data, at_ns)

    def _straight(self, data: bytes, at_ns: int) -> Record | None:
        """The record of an answer that the exchange need not see."""
        exchange, answer = self._exchange, self._answer
        if exchange is None or answer is None:
            return None
        head = answer[0]
        if not 200 <= head.status < 300 or not is_plain(head):
            return None
        return record_of(exchange.ask, exchange.t0_ns, status=head.status, body=data, at_ns=at_ns)

    def read(self, data: bytes, at_ns: int) -> None:
        """A read of the answer's body, told later than it came maybe; what it teaches of the stream, `template` has."""
        exchange = self._exchange
        if exchange is not None:
            if self._answer is not None:
                self._start(exchange)
            if exchange.feed_and_learn(data, at_ns):
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
            first_ns = self._exchange.first_token_at_ns if self._exchange is not None else None
            self._eye.first_token(self, self._judge.first_token(), self._queued, first_ns or at_ns)
            self._eye.timer.set(self)

    def complete(self, at_ns: int, framed: bool) -> None:
        """The answer ended as its framing says."""
        self._end(lambda exchange: exchange.response_ended(at_ns, framed=framed))

    def lost(self, at_ns: int, error_type: str) -> None:
        """The server failed us."""
        if error_type in ("connect_refused", "connect_failed"):
            self._eye.usage.server_gone()
        self._begin(at_ns, whole=False)
        if error_type == CONNECT_TIMEOUT:
            self._end(lambda exchange: exchange.timed_out(at_ns, error_type))
        else:
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
        """Let the exchange end, and be counted."""
        exchange = self._exchange
        if exchange is None:
            return
        record: Record | None = None
        try:
            self._start(exchange)
            act(exchange)
            record = exchange.record()
        finally:
            self._over(record)

    def _over(self, record: Record | None) -> None:
        """Let go of all that is held for the request, even should a fault keep it from being counted."""
        judge, queued = self._judge, self._queued
        self.catch_up = _nothing
        self._exchange = self._judge = self._answer = None
        self._off = True
        try:
            self._eye.end(self, record, judge)
        finally:
            if queued is not None and not self._first_seen:
                self._eye.unqueue(self, queued, queued.at_ns if record is None else record.ended_at_ns)

    # What the timer and the gauges ask.

    def next_deadline_ns(self) -> int | None:
        """When to be woken; None: not before something else has happened."""
        return None if self._judge is None else self._judge.next_deadline_ns()

    def wake(self, now_ns: int) -> None:
        """Count the deadlines that have passed. Never raises."""
        at_ns = self.next_deadline_ns()
        # What is not looked at yet only moves a deadline away: one that has not come needs no look at it now.
        if at_ns is not None and at_ns <= now_ns:
            self._eye.look(self._passed, now_ns)

    def _passed(self, now_ns: int) -> None:
        self.catch_up()
        self._eye.backlog.settle()
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

    def unanswered_s(self, now_ns: int) -> float | None:
        """How long it has waited for its first token; None where it does not, or nobody waits for it."""
        exchange = self._exchange
        if exchange is None or self.request_class == SYNTHETIC_CLASS:
            return None
        if not exchange.ask.stream or exchange.first_token_at_ns is not None:
            return None
        return max(0, now_ns - exchange.t0_ns) / 1e9

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
            *(() if self._queued is None else (self._queued.verdict, self._queued.predicted_s)),
        )


def _nothing() -> None:
    """What most shells have put aside."""


def _request_id(head: RequestHead) -> str | None:
    value = head.find(REQUEST_ID)
    text = "" if value is None else value.decode("latin-1")
    return text if 0 < len(text) <= MAX_REQUEST_ID and text.isprintable() else None
