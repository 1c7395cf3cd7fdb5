"""The open-loop load: each request goes out when it is due, whatever became of those before it.

A closed loop waits for an answer before it asks again and so asks least when the server is slowest. This one asks by
its schedule and counts every wait from the moment the request was due. What is in flight is bounded; a request that
finds no room waits here, and that wait is counted too and shows as lateness. Takes a plan, gives a frozen `Load`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from capacity.client import CHAT_PATH, Client, Exchange, Target, request_bytes
from capacity.errors import WorkloadError
from capacity.prompt import chat_body
from capacity.record import Load, Record, outcome_of
from capacity.schedule import Arrival
from slo.signals import SYNTHETIC_CLASS

DEFAULT_MAX_IN_FLIGHT = 1024
DEFAULT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_in_flight` requests at once; each is given up `timeout_s` after it was sent."""

    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT
    timeout_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        if self.max_in_flight < 1 or not self.timeout_s > 0:
            raise WorkloadError("max-in-flight must be at least 1 and timeout above 0 s")


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole load: which requests, in the order they are due, as which class, from which seed of prompts."""

    target: Target
    arrivals: tuple[Arrival, ...]
    seconds: float
    limits: Limits = Limits()
    request_class: str | None = SYNTHETIC_CLASS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is."""

    elapsed_s: float
    sent: int
    done: int
    failed: int


async def run(
    plan: Plan, *, stop: asyncio.Event | None = None, on_progress: Callable[[Progress], None] | None = None
) -> Load:
    """Run a load to its end, or until `stop` is set: then what is in flight is left, with outcome `cancelled`."""
    load = _Running(plan, stop or asyncio.Event(), on_progress or (lambda _progress: None))
    return await load.run()


class _Running:
    """One load under way."""

    def __init__(self, plan: Plan, stop: asyncio.Event, on_progress: Callable[[Progress], None]) -> None:
        self._plan = plan
        self._stop = stop
        self._on_progress = on_progress
        self._client = Client(plan.target, self._now_s)
        self._slots = asyncio.Semaphore(plan.limits.max_in_flight)
        self._prompts = Random(plan.seed)  # noqa: S311  chance for prompts, no secret
        self._tasks: set[asyncio.Task[None]] = set()
        self._records: list[Record] = []
        self._started = 0
        self._failed = 0
        self._start_s = time.perf_counter()

    def _now_s(self) -> float:
        return time.perf_counter() - self._start_s

    async def run(self) -> Load:
        started_at_s = time.time()
        self._start_s = time.perf_counter()
        try:
            for arrival in self._plan.arrivals:
                body = chat_body(arrival, self._prompts)  # made before its time, so that making it costs no lateness
                if await self._stopped_before(arrival.at_s):
                    break
                self._begin(arrival, body)
            await self._wait_for_answers()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._client.close()
        records = tuple(sorted(self._records, key=lambda record: record.intended_s))
        return Load(self._plan.target.url, started_at_s, self._now_s(), len(self._plan.arrivals), records)

    async def _stopped_before(self, at_s: float) -> bool:
        """Sleep until it is time; whether the load was stopped before."""
        delay_s = at_s - self._now_s()
        if delay_s <= 0:
            return self._stop.is_set()
        try:
            async with asyncio.timeout(delay_s):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self, arrival: Arrival, body: bytes) -> None:
        task = asyncio.create_task(self._one(arrival, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._started += 1
        self._tell()

    async def _wait_for_answers(self) -> None:
        stopping = asyncio.create_task(self._stop.wait())
        try:
            while self._tasks and not stopping.done():
                await asyncio.wait({stopping, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _one(self, arrival: Arrival, body: bytes) -> None:
        exchange = Exchange()
        outcome, error = "cancelled", ""
        try:
            async with self._slots:
                await self._exchange(exchange, body)
            outcome, error = outcome_of(exchange.reply), exchange.reply.error
        except TimeoutError:
            outcome, error = "timeout", f"gave up after {self._plan.limits.timeout_s:g} s"
        except OSError as fault:
            outcome, error = "error", f"no connection: {fault.strerror or fault}"
        finally:
            self._keep(arrival, exchange, outcome=outcome, error=error)

    async def _exchange(self, exchange: Exchange, body: bytes) -> None:
        request = request_bytes(self._plan.target, CHAT_PATH, body=body, request_class=self._plan.request_class)
        # The try to connect counts as sending: a server that lets nobody in is not the client's lateness.
        exchange.sent_s = self._now_s()
        async with asyncio.timeout(self._plan.limits.timeout_s):
            await self._client.run(exchange, request)

    def _keep(self, arrival: Arrival, exchange: Exchange, *, outcome: str, error: str) -> None:
        reply = exchange.reply
        self._records.append(
            Record(
                model=arrival.model,
                intended_s=arrival.at_s,
                end_s=self._now_s(),
                outcome=outcome,
                sent_s=exchange.sent_s,
                written_s=exchange.written_s,
                first_token_s=reply.first_token_s,
                last_token_s=reply.last_token_s,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                status=reply.status,
                error=error,
            )
        )
        self._failed += outcome != "ok"
        self._tell()

    def _tell(self) -> None:
        self._on_progress(Progress(self._now_s(), self._started, len(self._records), self._failed))
