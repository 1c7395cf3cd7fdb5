"""Exports spans and metrics beside the proxy: bounded queues in, OTLP out, on threads of its own.

    event loop                         lane's thread                         endpoint
    offer(span bytes) ──▶ queue ──▶ batch ──▶ parcel ──▶ outbox ──▶ send ──▶
    offer(interval)   ──▶ queue ──▶ encode ─▶ parcel ──▶ outbox ──▶ send ──▶

The request path only appends to a queue; it never waits, and a full queue drops what comes and counts it. A parcel
is encoded once. While its endpoint is down it waits in the outbox, bounded in bytes, and is sent again as the same
bytes, oldest first; what the endpoint refuses for good is dropped and counted. The two lanes, traces and metrics, do
not wait for each other.

The only room that imports `opentelemetry.sdk`: for the resource, which it builds from the standard environment.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sidecar import limits
from sidecar.counting.tally import Interval
from sidecar.judging.faults import told
from sidecar.otlp_settings import Endpoint, ExportSettings, Lane
from sidecar.telling import otlp_metrics, otlp_wire
from sidecar.telling.delivery import GrpcSender, HttpSender, Sent, sender
from slo.signals import EXPORT_DROPPED, EXPORT_FAILED, SERVICE_VERSION, Metric

log = logging.getLogger(__name__)

Count = Callable[[Metric, Lane, str, int], None]  # of what, lane, reason, how many more


@dataclass(frozen=True, slots=True)
class Parcel:
    """One encoded export request."""

    body: bytes
    items: int


class Outbox:
    """Parcels that wait for the endpoint, the oldest first, bounded in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._parcels: deque[Parcel] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0

    def put(self, parcel: Parcel) -> int:
        """Add a parcel; how many items of the oldest had to be given up for it."""
        self._parcels.append(parcel)
        self._bytes += len(parcel.body)
        lost = 0
        while self._bytes > self._max_bytes and len(self._parcels) > 1:
            lost += self.take().items
        return lost

    def first(self) -> Parcel | None:
        """The oldest, which stays; None when there is none."""
        return self._parcels[0] if self._parcels else None

    def take(self) -> Parcel:
        """The oldest; there is one."""
        parcel = self._parcels.popleft()
        self._bytes -= len(parcel.body)
        return parcel

    @property
    def items(self) -> int:
        """How many spans or points wait."""
        return sum(parcel.items for parcel in self._parcels)


class LaneThread(threading.Thread):
    """Encodes and sends one kind of telemetry."""

    def __init__(self, lane: Lane, endpoint: Endpoint, encode: Callable[[], Iterator[Parcel]], count: Count) -> None:
        super().__init__(name=f"export-{lane}", daemon=True)
        self.wakened = threading.Event()
        self._lane, self._endpoint, self._encode, self._count = lane, endpoint, encode, count
        self._outbox = Outbox(limits.RETRY_BYTES)
        self._end_s: float | None = None
        self._failures = 0
        self._next_try_s = 0.0
        self._refused_for = ""

    def close(self, end_s: float) -> None:
        """Send what there is until `end_s` (monotonic), then end."""
        self._end_s = end_s
        self.wakened.set()

    def run(self) -> None:
        try:
            send = sender(self._endpoint, self._lane)
        except Exception as error:  # noqa: BLE001  said, and then the queue fills and what it drops is counted
            log.error("%s cannot be exported: %s: %s", self._lane, type(error).__name__, error)
            return
        try:
            while self._end_s is None:
                self.wakened.wait(self._pause_s())
                self.wakened.clear()
                self._gather()
                self._deliver(send)
            self._gather()
            self._next_try_s = 0.0
            self._deliver(send)
            if left := self._outbox.items:
                self._dropped("shutdown", left)
        finally:
            send.close()

    @property
    def waiting_items(self) -> int:
        """How many spans or points are encoded and not yet sent."""
        return self._outbox.items

    def _pause_s(self) -> float | None:
        if self._outbox.first() is None:
            return None
        return max(0.0, self._next_try_s - time.monotonic())

    def _gather(self) -> None:
        try:
            for parcel in self._encode():
                if lost := self._outbox.put(parcel):
                    self._dropped("retry_queue_full", lost)
        except Exception as error:  # noqa: BLE001  a fault in one batch must not end the export of all others
            log.error("%s could not be encoded: %s", self._lane, told(error))
            self._dropped("encoding", 1)
            self.wakened.set()  # for those behind it

    def _deliver(self, send: HttpSender | GrpcSender) -> None:
        while (parcel := self._outbox.first()) is not None:
            now_s = time.monotonic()
            timeout_s = self._endpoint.timeout_s
            if self._end_s is not None:
                timeout_s = min(timeout_s, self._end_s - now_s)
            if now_s < self._next_try_s or timeout_s <= 0:
                return
            sent = self._send(send, parcel, timeout_s)
            if sent.state == "unavailable":
                self._back_off(sent)
                return
            self._outbox.take()
            self._settle(sent, parcel)

    def _send(self, send: HttpSender | GrpcSender, parcel: Parcel, timeout_s: float) -> Sent:
        try:
            return send.send(parcel.body, timeout_s=timeout_s)
        except Exception as error:  # noqa: BLE001  a sender's own fault must not end the lane
            log.error("%s could not be sent: %s", self._lane, told(error))
            return Sent("refused", "fault")

    def _back_off(self, sent: Sent) -> None:
        """Double the wait, up to a limit, and tell the first failure only; all are counted."""
        self._count(EXPORT_FAILED, self._lane, sent.reason, 1)
        wait_s = min(limits.RETRY_LONGEST_S, limits.RETRY_FIRST_S * 2**self._failures)
        if sent.wait_s is not None:
            wait_s = min(limits.RETRY_LONGEST_S, sent.wait_s)
        self._next_try_s = time.monotonic() + wait_s
        if self._failures == 0:
            log.warning("%s cannot be exported (%s): kept and tried again", self._lane, sent.reason)
        self._failures = min(self._failures + 1, 16)

    def _dropped(self, reason: str, items: int) -> None:
        self._count(EXPORT_DROPPED, self._lane, reason, items)

    def _settle(self, sent: Sent, parcel: Parcel) -> None:
        if self._failures:
            log.info("%s are exported again", self._lane)
        self._failures, self._next_try_s = 0, 0.0
        if sent.state == "refused":
            self._dropped(sent.reason, parcel.items)
            if sent.reason != self._refused_for:  # told once, counted always
                log.error("the OTLP endpoint refuses %s (%s): dropped and counted", self._lane, sent.reason)
        elif sent.refused_items > 0:
            self._dropped("partial_success", sent.refused_items)
        self._refused_for = sent.reason


class Emitter:
    """The exporter as the event loop sees it. Every method returns at once."""

    def __init__(
        self, settings: ExportSettings, *, resource: bytes, version: str, engine_resource: bytes | None = None
    ) -> None:
        self._settings, self._resource, self._engine_resource = settings, resource, engine_resource
        self._scope = otlp_wire.scope("sidecar", version)
        self._spans: deque[bytes] = deque()
        self._intervals: deque[Interval] = deque()
        self._lanes: dict[Lane, LaneThread] = {}
        self._counts: dict[tuple[Metric, Lane, str], int] = {}
        self._counts_lock = threading.Lock()
        if settings.traces is not None:
            self._lanes["traces"] = LaneThread("traces", settings.traces, self._encode_spans, self.count)
        if settings.metrics is not None:
            self._lanes["metrics"] = LaneThread("metrics", settings.metrics, self._encode_metrics, self.count)

    def start(self) -> None:
        """Begin to send; what is offered before waits."""
        for lane in self._lanes.values():
            lane.start()

    @property
    def wants_spans(self) -> bool:
        """Whether spans have an endpoint."""
        return "traces" in self._lanes

    @property
    def wants_metrics(self) -> bool:
        """Whether metrics have an endpoint."""
        return "metrics" in self._lanes

    def offer_span(self, span: bytes) -> bool:
        """Queue one encoded span; False: the queue is full, and it is dropped."""
        if len(self._spans) >= self._settings.span_queue:
            self.count(EXPORT_DROPPED, "traces", "queue_full", 1)
            return False
        self._spans.append(span)
        if len(self._spans) == self._settings.span_batch:
            self.flush_spans()
        return True

    def flush_spans(self) -> None:
        """Wake the lane of spans; call every `span_delay_s`."""
        if self._spans:
            self._lanes["traces"].wakened.set()

    def offer_interval(self, interval: Interval) -> None:
        """Queue one interval of metrics."""
        if len(self._intervals) >= limits.INTERVAL_QUEUE:
            self._intervals.popleft()
            self.count(EXPORT_DROPPED, "metrics", "queue_full", 1)
        self._intervals.append(interval)
        self._lanes["metrics"].wakened.set()

    def close(self, within_s: float) -> None:
        """Send what there is, at most `within_s`, and say what was lost. The one method that waits."""
        end_s = time.monotonic() + within_s
        for lane in self._lanes.values():
            lane.close(end_s)
        for name, lane in self._lanes.items():
            lane.join(max(0.0, end_s - time.monotonic()) + 0.2)
            unread = len(self._spans) if name == "traces" else len(self._intervals)
            if left := lane.waiting_items + unread:
                log.error("shutdown: %d items of %s could not be exported", left, name)

    def counts(self) -> dict[tuple[Metric, Lane, str], int]:
        """Exports that failed and items that were given up so far, by metric, lane and reason."""
        with self._counts_lock:
            return dict(self._counts)

    def count(self, metric: Metric, lane: Lane, reason: str, more: int) -> None:
        """Add what happened here or in another process of ours."""
        with self._counts_lock:
            self._counts[metric, lane, reason] = self._counts.get((metric, lane, reason), 0) + more

    def _encode_spans(self) -> Iterator[Parcel]:
        while self._spans:
            batch = [self._spans.popleft() for _ in range(min(len(self._spans), self._settings.span_batch))]
            yield Parcel(otlp_wire.request(self._resource, self._scope, b"".join(batch)), len(batch))

    def _encode_metrics(self) -> Iterator[Parcel]:
        while self._intervals:
            interval = self._intervals.popleft()
            items, points = otlp_metrics.encode(interval)
            body = otlp_wire.request(self._resource, self._scope, items)
            if interval.engine is not None and self._engine_resource is not None:
                items, more = otlp_metrics.encode(interval.engine)
                # Requests one after the other are one request of several resources: protobuf joins what repeats.
                body += otlp_wire.request(self._engine_resource, self._scope, items)
                points += more
            yield Parcel(body, points)


def resource_attributes(own: dict[str, str], *, version: str) -> dict[str, otlp_wire.Value]:
    """The resource of this process: `own` over the standard environment's and the SDK's.

    `version` is the service's only where the environment names none.
    """
    from opentelemetry.sdk.resources import Resource

    attributes = {SERVICE_VERSION: version, **Resource.create(dict(own)).attributes}
    return {key: value for key, value in attributes.items() if isinstance(value, str | bool | int | float)}
