"""A server held full: exactly so many requests outstanding, a new one sent the moment one ends.

The answers of the first ones are cut to random lengths, so that not all of them end and begin together for ever; none
of these is judged. Load goes on while the search makes up its mind, and ends when another run is asked for.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from capacity.certify.endpoint import AFTER_REFUSAL_S, LEAST_ANSWERS, Setting
from capacity.errors import UnreachableError
from capacity.prompt import chat_body
from capacity.record import Record
from capacity.schedule import Arrival
from capacity.sending import Sender


@dataclass(slots=True)
class Outstanding:
    """One run. Records are kept in the order in which requests ended."""

    setting: Setting
    batch: int
    name: str
    records: list[Record] = field(default_factory=list)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _workers: list[asyncio.Task[None]] = field(default_factory=list)
    _sender: Sender | None = None

    async def until(self, requests: int) -> list[Record]:
        """The first so many requests that ended. Raises UnreachableError where none is answered well."""
        if self._sender is None:
            self._begin()
        while len(self.records) < requests:
            self._moved.clear()
            moved = asyncio.create_task(self._moved.wait())
            await asyncio.wait({moved, *self._workers}, return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            for worker in self._workers:
                if worker.done():
                    worker.result()
            if len(self.records) >= LEAST_ANSWERS and not any(one.outcome == "ok" for one in self.records):
                raise UnreachableError(
                    f"none of {len(self.records)} requests, {self.batch} at once, was answered well: "
                    f"{self.records[-1].error or self.records[-1].outcome}"
                )
        return self.records[:requests]

    async def end(self) -> None:
        """Drop what is open."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._sender is not None:
            self._sender.close()

    def _begin(self) -> None:
        setting = self.setting
        sender = self._sender = Sender(
            setting.target, replace(setting.limits, max_in_flight=self.batch), setting.request_class
        )
        requests = setting.workload.requests(1.0, f"{setting.seed} {self.name}")
        chance = Random(f"{setting.seed} {self.name} first")  # noqa: S311  chance for a load, no secret
        sender.begin()
        self._workers = [asyncio.create_task(self._ask(sender, requests, chance)) for _ in range(self.batch)]

    async def _ask(self, sender: Sender, requests: Iterator[tuple[Arrival, bytes]], chance: Random) -> None:
        kept: list[Record] = []  # the first answer is a part of one, and no measurement
        first, _ = next(requests)
        cut = replace(first, at_s=sender.now_s(), output_tokens=chance.randint(1, first.output_tokens))
        await sender.send(cut, chat_body(cut, chance, shared_words=self.setting.workload.shared_words), kept.append)
        while True:
            drawn, body = next(requests)
            await sender.send(replace(drawn, at_s=sender.now_s()), body, self._keep)
            if self.records[-1].outcome != "ok":
                await asyncio.sleep(AFTER_REFUSAL_S)

    def _keep(self, record: Record) -> None:
        self.records.append(record)
        self._moved.set()
