"""Exporters under load: each sends one body after the other, and a body again until it is acknowledged.

A body holds everything that a double or a lost count would show in: deltas, cumulative streams, histograms of both
kinds, gauges, and spans. Every try takes another way (packed or not, HTTP or gRPC, now and then two ways at once),
always with the same bytes; so `acknowledged` is what must be counted, and `tried` the most that may be.
"""

import gzip
import http.client
import random
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import grpc  # type: ignore[import-untyped]
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from slo import signals
from slo.signals import REQUEST_MODEL, SERVICE_INSTANCE, SERVICE_NAME
from tests.collector import exports, messages
from tests.collector.sent import vllm_attributes
from tests.collector.support import ask, until

ENGINE, TRACED = "engine", "traced"
"""Services of others: one sends cumulative histograms, one spans alone."""
BOUNDS = (0.01, 0.02, 0.05, 0.1)
SPANS_OF = ("ttft", "e2e", "queue_time")
AGAIN_S = 0.03

Kind = Literal["metrics", "traces"]
Total = Counter[str]
PACKED: dict[str, Callable[[bytes], bytes]] = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}
METHODS = {
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
}
REPLIES = {"metrics": ExportMetricsServiceResponse, "traces": ExportTraceServiceResponse}


@dataclass(frozen=True)
class Body:
    """The bytes of one export, and what they add."""

    kind: Kind
    data: bytes
    adds: Total


@dataclass
class Doors:
    """Where the collector of the moment listens."""

    url: str = ""
    rpc: str = ""


class Sender(threading.Thread):
    """One exporter, with streams of its own."""

    def __init__(self, number: int, places: Sequence[Doors], clock: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self.acknowledged, self.tried = Total(), Total()
        self.answers: Counter[str] = Counter()
        self.faults: list[str] = []
        self.is_done = False
        self.in_hand = threading.Lock()
        self._places, self._clock = places, clock
        self._dice = random.Random(number)
        self._number = number
        self._began_s = clock() - 1
        self._tokens = 0
        self._e2e: list[float] = []
        self._tpot = [0] * (len(BOUNDS) + 1)

    def run(self) -> None:
        while not self.is_done:
            with self.in_hand:
                body = self._spans() if self._dice.random() < 0.2 else self._metrics()
                self.tried += body.adds
                while not self._delivered(body):
                    time.sleep(AGAIN_S)
                self.acknowledged += body.adds

    def _metrics(self) -> Body:
        """A second of our own traffic, and what an engine has counted so far."""
        dice, at_s = self._dice, self._clock()
        good, bad = dice.randrange(20), dice.randrange(5)
        more = [dice.lognormvariate(-1, 0.5) for _ in range(dice.randrange(4))]
        tokens, bucket = dice.randrange(1, 1000), dice.randrange(len(self._tpot))
        self._e2e += more
        self._tokens += tokens
        self._tpot[bucket] += 1
        message = exports.second(good=good, bad=bad, at_s=at_s, instance=f"i{self._number}")
        message.resource_metrics[0].scope_metrics[0].metrics.append(self._growing(at_s))
        message.resource_metrics.extend(self._engine(at_s).resource_metrics)
        adds = Total({"good": good, "bad": bad, "chat ttft": good + bad, "beats": 1, "samples": 2, "tokens": tokens})
        adds += Total({f"{ENGINE} e2e": len(more), f"{ENGINE} tpot": 1, "bodies": 1})
        return Body("metrics", message.SerializeToString(), adds)

    def _growing(self, at_s: float) -> messages.wire.Metric:
        point = messages.number(self._tokens, at_s=at_s, start_s=self._began_s)
        return messages.counter(signals.TOKENS.name, point, temporality=messages.CUMULATIVE)

    def _engine(self, at_s: float) -> Any:
        when: dict[str, Any] = {"at_s": at_s, "start_s": self._began_s}
        e2e, tpot = messages.exponential_point(self._e2e, **when), messages.explicit_point(BOUNDS, self._tpot, **when)
        return messages.metrics(
            messages.exponential(signals.E2E.name, e2e, temporality=messages.CUMULATIVE),
            messages.explicit(signals.TPOT.name, tpot, temporality=messages.CUMULATIVE),
            resource=self._resource(ENGINE),
        )

    def _spans(self) -> Body:
        end_s, count = self._clock(), self._dice.randrange(1, 9)
        attributes = {REQUEST_MODEL: "m", **vllm_attributes(0.2, self._dice.randrange(10**6))}
        spans = [messages.span(attributes, start_s=end_s - 2, end_s=end_s) for _ in range(count)]
        message: Message = messages.traces(*spans, resource=self._resource(TRACED))
        adds = Total(dict.fromkeys((f"{TRACED} {latency}" for latency in SPANS_OF), count) | {"bodies": 1})
        return Body("traces", message.SerializeToString(), adds)

    def _resource(self, service: str) -> dict[str, messages.Value]:
        return {SERVICE_NAME: service, SERVICE_INSTANCE: f"{service}-{self._number}"}

    def _delivered(self, body: Body) -> bool:
        """Whether a try was acknowledged: by one way, or by one of two at once."""
        answers: list[bool] = []

        def try_it(way: Callable[[Body], bool]) -> None:
            answers.append(way(body))

        ways = [self._way() for _ in range(2 if self._dice.random() < 0.1 else 1)]
        tries = [threading.Thread(target=try_it, args=(way,), daemon=True) for way in ways]
        for one in tries:
            one.start()
        for one in tries:
            one.join()
        return any(answers)

    def _way(self) -> Callable[[Body], bool]:
        doors = self._dice.choice(self._places)
        if self._dice.random() < 0.2 and doors.rpc:
            return lambda body: self._by_rpc(body, doors.rpc)
        encoding = self._dice.choice(sorted(PACKED))
        return lambda body: self._by_http(body, doors.url, encoding)

    def _by_http(self, body: Body, url: str, encoding: str) -> bool:
        headers = {"content_type": "application/x-protobuf", "content_encoding": encoding}
        try:
            answer = ask(f"{url}/v1/{body.kind}", PACKED[encoding](body.data), **headers)
        except (OSError, ValueError, http.client.HTTPException):  # gone, not there yet, or gone in mid-answer
            self.answers["none"] += 1
            return False
        return self._heard(str(answer.status), answer.status == 200, body.kind, answer.body)

    def _by_rpc(self, body: Body, target: str) -> bool:
        try:
            with grpc.insecure_channel(target) as channel:
                return self._heard(
                    "OK", True, body.kind, channel.unary_unary(METHODS[body.kind])(body.data, timeout=20)
                )
        except grpc.RpcError as error:
            return self._heard(error.code().name, False, body.kind, b"")

    def _heard(self, word: str, is_taken: bool, kind: Kind, content: bytes) -> bool:
        """Whether it was acknowledged; an answer that nobody should get is kept as a fault."""
        self.answers[word] += 1
        if word not in ("200", "OK", "503", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"):
            self.faults.append(word)
        elif is_taken and (said := str(REPLIES[kind].FromString(content))):
            self.faults.append(said)
        return is_taken


@dataclass
class Load:
    """All senders together."""

    senders: list[Sender]
    places: list[Doors]
    sent_by: list[threading.Thread] = field(default_factory=list)

    @property
    def doors(self) -> Doors:
        """Where the one collector listens, or the first of several."""
        return self.places[0]

    @property
    def acknowledged(self) -> Total:
        return sum((sender.acknowledged for sender in self.senders), Total())

    @property
    def tried(self) -> Total:
        return sum((sender.tried for sender in self.senders), Total())

    @property
    def refused(self) -> int:
        """How often somebody was told to come again."""
        return sum(sender.answers["503"] + sender.answers["UNAVAILABLE"] for sender in self.senders)

    @property
    def answers(self) -> Counter[str]:
        """What senders were told, and how often."""
        return sum((sender.answers for sender in self.senders), Counter[str]())

    @property
    def faults(self) -> list[str]:
        """Answers that nobody should get."""
        return [fault for sender in self.senders for fault in sender.faults]

    def goes_on(self, bodies: int = 10) -> None:
        """Wait until so many more bodies are acknowledged."""
        enough, before = self.acknowledged["bodies"] + bodies, self.answers
        try:
            until(lambda: self.acknowledged["bodies"] >= enough, patience_s=120)
        except AssertionError as error:
            raise AssertionError(f"{error}; senders heard {dict(self.answers - before)}") from None

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Nobody has a body in hand until the block ends."""
        with ExitStack() as held:
            for sender in self.senders:
                held.enter_context(sender.in_hand)
            yield

    def finish(self) -> Total:
        """Let every sender bring its last body home; what was acknowledged in all."""
        for sender in self.senders:
            sender.is_done = True
        for sender in self.senders:
            sender.join(120)
        assert not any(sender.is_alive() for sender in self.senders)
        assert self.acknowledged == self.tried
        return self.acknowledged


@contextmanager
def load(*, senders: int = 4, collectors: int = 1, clock: Callable[[], float] = time.time) -> Iterator[Load]:
    """Senders at work, ended with the block. Each try goes to any of the collectors."""
    places = [Doors() for _ in range(collectors)]
    one = Load([Sender(number, places, clock) for number in range(senders)], places)
    for sender in one.senders:
        sender.start()
    try:
        yield one
    finally:
        for sender in one.senders:
            sender.is_done = True
