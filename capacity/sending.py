"""One request, sent to the target and written down: what every kind of load does for each of its requests.

Times in the records count from the sender's start, on one monotonic clock. What is in flight is bounded; a request that
finds no room waits here, and that wait shows as lateness.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from capacity.client import CHAT_PATH, Client, Exchange, Target, request_bytes
from capacity.errors import WorkloadError
from capacity.record import Record, outcome_of
from capacity.schedule import Arrival

DEFAULT_MAX_IN_FLIGHT = 1024
DEFAULT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_in_flight` requests at once; each is given up `timeout_s` after it was sent."""

    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT
    timeout_s: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        if self.max_in_flight < 1:
            raise WorkloadError(f"--max-in-flight {self.max_in_flight}: must be at least 1")
        if not self.timeout_s > 0:
            raise WorkloadError(f"--timeout {self.timeout_s:g}: must be above 0 s")


DEFAULT_LIMITS = Limits()


class Sender:
    """Sends requests of one class to one target."""

    def __init__(self, to: Target, limits: Limits, request_class: str | None) -> None:
        self._to = to
        self._limits = limits
        self._class = request_class
        self._client = Client(to, self.now_s)
        self._slots = asyncio.Semaphore(limits.max_in_flight)
        self._start_s = time.perf_counter()

    def begin(self) -> None:
        """Count time from now."""
        self._start_s = time.perf_counter()

    def now_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start_s

    async def send(self, arrival: Arrival, body: bytes, keep: Callable[[Record], None]) -> None:
        """Send one request and hand over its record, also when this is cancelled."""
        exchange = Exchange()
        outcome, error = "cancelled", ""
        try:
            async with self._slots:
                await self._exchange(exchange, body)
            outcome, error = outcome_of(exchange.reply), exchange.reply.error
        except TimeoutError:
            outcome, error = "timeout", f"gave up after {self._limits.timeout_s:g} s"
        except OSError as fault:
            outcome, error = "error", f"no connection: {fault.strerror or fault}"
        finally:
            keep(self._record(arrival, exchange, outcome=outcome, error=error))

    async def _exchange(self, exchange: Exchange, body: bytes) -> None:
        request = request_bytes(self._to, CHAT_PATH, body=body, request_class=self._class)
        # The try to connect counts as sending: a server that lets nobody in is not the client's lateness.
        exchange.sent_s = self.now_s()
        async with asyncio.timeout(self._limits.timeout_s):
            await self._client.run(exchange, request)

    def _record(self, arrival: Arrival, exchange: Exchange, *, outcome: str, error: str) -> Record:
        reply = exchange.reply
        return Record(
            model=arrival.model,
            intended_s=arrival.at_s,
            end_s=self.now_s(),
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

    def close(self) -> None:
        self._client.close()
