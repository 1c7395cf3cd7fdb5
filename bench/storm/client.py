"""One client of the storm: asks, reads, waits, leaves, as the kind of its request says, and tells the ledger."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from storm.kinds import KINDS, Kind, Request, request
from storm.ledger import Ledger
from storm.wire import BrokenError, Expected, Head, Wire

PATIENCE_S = 60.0  # nothing in the storm takes as long
LATE_S = 6.0  # a request is begun only if it should be over so soon after the storm's end
THINKS_S = 0.3
PLAIN = tuple(kind for kind in KINDS if kind.plain)
(LEAVES_STREAM,) = (kind for kind in KINDS if kind.name == "leaves a stream")
CALLS = (
    ("GET /v1/models", 200), ("GET /metrics?a=b", 200), ("HEAD /version", 200), ("GET /nothing", 404),
    ("OPTIONS /v1/chat/completions", 404),
)  # fmt: skip


class Client:
    """Asks one request after the other until `end_s` (monotonic)."""

    def __init__(self, number: int, port: int, *, rng: random.Random, ledger: Ledger, end_s: float) -> None:
        self._port, self._rng, self._ledger, self._end_s = port, rng, ledger, end_s
        self._last = number * 1_000_000
        self._wire: Wire | None = None
        self._manners: dict[str, Callable[[Kind], Awaitable[None]]] = {
            "reads": self._reads,
            "slow": self._reads,
            "leaves": self._leaves,
            "half": self._half,
            "refused": self._refused,
            "lines up": self._lines_up,
            "looks": self._looks,
        }

    async def run(self) -> None:
        shares = [kind.share for kind in KINDS]
        await asyncio.sleep(self._rng.uniform(0, 1))
        while time.monotonic() < self._end_s:
            (kind,) = self._rng.choices(KINDS, shares)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._manners[kind.manner](kind)
            except (BrokenError, OSError) as error:  # a TimeoutError is one
                self._ledger.surprise(kind, f"{type(error).__name__} {error}")
                self._hang_up()
            await asyncio.sleep(self._rng.uniform(0, THINKS_S))
        self._hang_up()

    def _new(self, kind: Kind) -> Request | None:
        """A request, unless it would last too long beyond the end."""
        self._last += 1
        asked = request(kind, self._last, self._rng)
        return asked if time.monotonic() + asked.lasts_s < self._end_s + LATE_S else None

    async def _connected(self, *, small: bool = False) -> Wire:
        if small:
            self._hang_up()
        if self._wire is None:
            self._wire = await Wire.to(self._port, small=small)
        return self._wire

    def _hang_up(self, *, reset: bool = False) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close(reset=reset)

    async def _send(self, wire: Wire, asked: Request) -> None:
        """A request: at once, with a pause in its body, or in chunks with pauses."""
        body, manner = asked.body(), self._rng.random()
        if manner < 0.7:
            await wire.send(asked.whole())
        elif manner < 0.85 or not asked.minor:
            whole = asked.whole()
            cut = len(whole) - self._rng.randint(1, len(body))
            await wire.send(whole[:cut])
            await asyncio.sleep(self._rng.uniform(0, 1.5))
            await wire.send(whole[cut:])
        else:
            await wire.send(asked.head("Transfer-Encoding: chunked"))
            step = len(body) // 3 + 1
            for start in range(0, len(body), step):
                piece = body[start : start + step]
                await asyncio.sleep(self._rng.uniform(0, 0.4))
                await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await wire.send(b"0\r\n\r\n")

    # Reading.

    async def _read(self, wire: Wire, asked: Request, since_s: float, *, pauses: int = 0) -> bool:
        """Read the answer and compare it; whether the connection is good for another request."""
        expected = Expected(asked)
        head, ended = await self._compare(wire, asked, expected, pauses)
        if not expected.same:
            saw = "other bytes"
        elif head is not None and head.status != asked.script.status:
            saw = str(head.status)
        elif not ended:
            saw = "broken"
        else:
            saw = "whole" if expected.is_complete else "incomplete"
        self._ledger.answered(asked, saw, took_s=time.monotonic() - since_s)
        return ended and head is not None and head.keeps

    async def _compare(self, wire: Wire, asked: Request, expected: Expected, pauses: int) -> tuple[Head | None, bool]:
        """The head, if one came, and whether the body ended as it should."""
        head = None
        try:
            head = await wire.head()
            while data := await wire.more():
                if head.status == asked.script.status:
                    expected.take(data)
                if pauses and expected.tokens:
                    pauses -= 1
                    await asyncio.sleep(0.2)
        except BrokenError:
            return head, False
        return head, True

    # Manners.

    async def _reads(self, kind: Kind) -> None:
        if (asked := self._new(kind)) is None:
            return
        slow = kind.manner == "slow"
        wire = await self._connected(small=slow)
        self._ledger.asked(asked)
        await self._send(wire, asked)
        if not await self._read(wire, asked, time.monotonic(), pauses=8 if slow else 0) or slow:
            self._hang_up()

    async def _leaves(self, kind: Kind) -> None:
        if (asked := self._new(kind)) is not None:
            wire = await self._connected(small=asked.is_full)
            self._ledger.asked(asked)
            await self._send(wire, asked)
            await self._leave(wire, asked)

    async def _leave(self, wire: Wire, asked: Request) -> None:
        """Read as many tokens as the kind says, wait, and go."""
        since_s, expected = time.monotonic(), Expected(asked)
        if asked.tokens:
            await wire.head()
            while expected.same and expected.tokens <= asked.tokens:
                if not (data := await wire.more()):
                    raise BrokenError("ended")
                expected.take(data)
        await asyncio.sleep(asked.after_s)
        self._hang_up(reset=self._rng.random() < 0.5)
        now_s = time.monotonic()
        self._ledger.left(asked, at_s=now_s, took_s=now_s - since_s, same=expected.same)

    async def _half(self, kind: Kind) -> None:
        """Send a part, be it of the head or of the body, and leave."""
        if (asked := self._new(kind)) is None:
            return
        wire, whole = await self._connected(), asked.whole()
        await wire.send(whole[: self._rng.randrange(len(whole))])
        await asyncio.sleep(self._rng.uniform(0, 1))
        self._hang_up(reset=self._rng.random() < 0.5)

    async def _refused(self, kind: Kind) -> None:
        """Send on and on while the answer is there already."""
        if (asked := self._new(kind)) is None:
            return
        wire = await self._connected()
        self._ledger.asked(asked)
        async with _beside(wire.send(asked.whole())):
            await self._read(wire, asked, time.monotonic())
            self._hang_up()

    async def _lines_up(self, _: Kind) -> None:
        """Several requests in one write; now and then leave within the first, so that the others were never asked."""
        leaves = self._rng.random() < 0.3
        kinds = [self._rng.choice(PLAIN) for _ in range(self._rng.randint(2, 4))]
        if leaves:
            kinds[0] = LEAVES_STREAM
        queue = [replace(asked, minor=1, close=False) for kind in kinds if (asked := self._new(kind)) is not None]
        if len(queue) < len(kinds):
            return
        wire = await self._connected()
        for asked in queue[:1] if leaves else queue:
            self._ledger.asked(asked)
        async with _beside(wire.send(b"".join(asked.whole() for asked in queue))):
            if leaves:
                await self._leave(wire, queue[0])
            elif not await self._read_all(wire, queue):
                self._hang_up()

    async def _read_all(self, wire: Wire, queue: list[Request]) -> bool:
        due_s = time.monotonic()
        for asked in queue:
            if not await self._read(wire, asked, due_s):
                return False
            due_s += asked.lasts_s
        return True

    async def _looks(self, kind: Kind) -> None:
        """Ask for something that is no completion."""
        wire = await self._connected()
        call, status = self._rng.choice(CALLS)
        await wire.send(f"{call} HTTP/1.1\r\nHost: api.test\r\n\r\n".encode())
        head = await wire.head()
        if not call.startswith("HEAD"):
            while await wire.more():
                pass
        if head.status != status:
            self._ledger.surprise(kind, f"{call}: {head.status}")
        if not head.keeps:
            self._hang_up()


@contextlib.asynccontextmanager
async def _beside(sending: Awaitable[None]) -> AsyncIterator[None]:
    """Send while something else is done; that the other side took no more of it is no fault."""
    task = asyncio.ensure_future(sending)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await task
