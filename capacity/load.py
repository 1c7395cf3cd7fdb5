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

from capacity.client import Target
from capacity.prompt import chat_body
from capacity.record import Load, Record
from capacity.schedule import Arrival
from capacity.sending import DEFAULT_LIMITS, Limits, Sender
from slo.signals import SYNTHETIC_CLASS


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole load: which requests, in the order they are due, as which class, from which seed of prompts."""

    target: Target
    arrivals: tuple[Arrival, ...]
    seconds: float
    limits: Limits = DEFAULT_LIMITS
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
        self._sender = Sender(plan.target, plan.limits, plan.request_class)
        self._prompts = Random(plan.seed)  # noqa: S311  chance for prompts, no secret
        self._tasks: set[asyncio.Task[None]] = set()
        self._records: list[Record] = []
        self._started = 0
        self._failed = 0

    async def run(self) -> Load:
        started_at_s = time.time()
        self._sender.begin()
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
            self._sender.close()
        records = tuple(sorted(self._records, key=lambda record: record.intended_s))
        return Load(self._plan.target.url, started_at_s, self._sender.now_s(), len(self._plan.arrivals), records)

    async def _stopped_before(self, at_s: float) -> bool:
        """Sleep until it is time; whether the load was stopped before."""
        delay_s = at_s - self._sender.now_s()
        if delay_s <= 0:
            return self._stop.is_set()
        try:
            async with asyncio.timeout(delay_s):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self, arrival: Arrival, body: bytes) -> None:
        task = asyncio.create_task(self._sender.send(arrival, body, self._keep))
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

    def _keep(self, record: Record) -> None:
        self._records.append(record)
        self._failed += record.outcome != "ok"
        self._tell()

    def _tell(self) -> None:
        self._on_progress(Progress(self._sender.now_s(), self._started, len(self._records), self._failed))
