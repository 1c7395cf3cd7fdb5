"""A real server as the search sees it: loads it as it is asked to, and tells what came of it.

A run's load goes on, request by request as each is due, while the search makes up its mind, and ends when another run
is asked for. Between runs the server comes to rest: requests that are still open are dropped, and the next run waits
until single requests are again answered as fast as when it was idle.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random

from capacity.certify.evidence import WARM_UP_PARTS
from capacity.certify.facts import Facts, alone, at_work, facts, flood_rate
from capacity.certify.promises import Promises, series
from capacity.certify.sensitivity import varied
from capacity.certify.trial import Answer, Ask, AskAlone, AskFlood, AskRun, Ceiling, Seen
from capacity.certify.workload import Tokens, Workload, measured
from capacity.client import Target
from capacity.errors import UnreachableError
from capacity.prompt import chat_body
from capacity.record import Record
from capacity.schedule import Arrival
from capacity.sending import Limits, Sender
from capacity.summary import quantile

OVERLOAD = 1.5
"""A run from overload begins with so many times the requests that the server can work on at once."""
FIRST_FLOOD, FLOOD_ROUNDS = 32, 4
FULL_PART = 0.9
LEAST_ANSWERS = 20
AFTER_REFUSAL_S = 0.1
CALM_TIMES, CALM_SLACK_S = 3.0, 0.1
CALM_IN_A_ROW = 2
CALM_WITHIN_S = 180.0
SHORT_WORDS, LONG_WORDS = 8, 72

Progress = Callable[[Ask, int, float], None]
"""Told of the ask, how many of its requests are judged, and for how many seconds it has been going on."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Whom to ask, and how."""

    target: Target
    workload: Workload
    promises: Promises
    limits: Limits
    request_class: str | None
    seed: int


class Endpoint:
    """Answers the search's questions about one server."""

    def __init__(self, setting: Setting, progress: Progress) -> None:
        self._setting = setting
        self._progress = progress
        self._run: _Run | None = None
        self._alone: list[Record] = []
        self._alone_s = 0.0
        self._overload = 0

    async def measure_words(self) -> Workload:
        """Ask twice, to see that the server answers and how many tokens a word makes. Raises UnreachableError."""
        counted = []
        for words in (SHORT_WORDS, LONG_WORDS):
            record = await self._one(f"words {words}", Tokens(fixed=0, each=1), words)
            if record.outcome != "ok":
                raise UnreachableError(
                    f"{self._setting.target.url} answers {record.status or 'nothing'} to a first request "
                    f"({record.error or record.outcome}): a load would say nothing"
                )
            counted.append((words, record.input_tokens))
        workload = replace(self._setting.workload, tokens=measured(*counted))
        self.use(workload)
        return workload

    def use(self, workload: Workload) -> None:
        """Draw requests from this from now on."""
        self._setting = replace(self._setting, workload=workload)

    def remember(self, answer: Answer, calm_s: float) -> None:
        """Take what an earlier sitting has found: how fast a calm server is, and what fills it."""
        self._alone_s = calm_s or self._alone_s
        if isinstance(answer, Ceiling):
            self._overload = math.ceil(OVERLOAD * answer.at_once)

    @property
    def calm_s(self) -> float:
        """How long a request takes that is alone, 19 times of 20; 0 while it is not known."""
        return self._alone_s

    def alone_facts(self) -> dict[str, object]:
        """What the requests were like that were sent alone."""
        return alone(self._setting.target.url, self._alone)

    async def answer(self, ask: Ask) -> Answer:
        """Do what is asked, and say what came of it. Raises UnreachableError."""
        if isinstance(ask, AskAlone):
            return await self._answer_alone(ask)
        if isinstance(ask, AskFlood):
            ceiling = await self._flood(ask)
            self.remember(ceiling, 0.0)
            return ceiling
        if self._run is None or self._run.ask.number != ask.number:
            await self.end_run()
            await self._calm_down()
            setting = replace(self._setting, workload=varied(self._setting.workload, ask.variation))
            self._run = _Run(setting, ask, self._overload if ask.start == "overload" else 0)
        return await self._run.until(ask, self._progress)

    async def end_run(self) -> Facts | None:
        """End the run that goes on, if one does; its facts."""
        run, self._run = self._run, None
        if run is None:
            return None
        return await run.end()

    # Alone.

    async def _answer_alone(self, ask: AskAlone) -> Seen:
        while len(self._alone) < ask.requests:
            number = len(self._alone)
            record = await self._one(f"alone {number}", self._setting.workload.tokens, None)
            self._alone.append(record)
            self._progress(ask, len(self._alone), sum(one.e2e_s for one in self._alone))
            if len(self._alone) == LEAST_ANSWERS and not any(one.outcome == "ok" for one in self._alone):
                raise UnreachableError(f"none of {LEAST_ANSWERS} single requests was answered well: {record.error}")
        stays = sorted(record.e2e_s for record in self._alone)
        self._alone_s = quantile(stays, 0.95)
        bad = tuple(series(objective, self._alone) for objective in self._setting.promises.judged)
        return Seen(bad, sum(stays), 1.0)

    async def _one(self, name: str, tokens: Tokens, words: int | None) -> Record:
        """A request alone, due when it is sent; of so many words where that is given."""
        setting = self._setting
        chance = Random(f"{setting.seed} {name}")  # noqa: S311  chance for a load, no secret
        arrival, body = replace(setting.workload, tokens=tokens).request(0.0, chance)
        if words is not None:
            body = chat_body(Arrival(0.0, setting.workload.model, words, 1), chance)
        records: list[Record] = []
        sender = Sender(setting.target, setting.limits, setting.request_class)
        try:
            sender.begin()
            await sender.send(arrival, body, records.append)
        finally:
            sender.close()
        return records[0]

    async def _calm_down(self) -> None:
        """Wait until single requests are answered as fast as on an idle server."""
        calm, tried = 0, 0
        loop = asyncio.get_running_loop()
        until_s = loop.time() + CALM_WITHIN_S
        while calm < CALM_IN_A_ROW:
            record = await self._one(f"calm {tried}", self._setting.workload.tokens, None)
            is_calm = record.outcome == "ok" and record.e2e_s <= CALM_TIMES * self._alone_s + CALM_SLACK_S
            calm, tried = calm + 1 if is_calm else 0, tried + 1
            if loop.time() > until_s and not is_calm:
                raise UnreachableError(
                    f"{self._setting.target.url} did not come to rest within {CALM_WITHIN_S:g} s after a run: "
                    "is somebody else using it?"
                )

    # Flood.

    async def _flood(self, ask: AskFlood) -> Ceiling:
        """Flood with more and more at once, until more does not fill the server further."""
        at_once, before = FIRST_FLOOD, 0.0
        while True:
            records = await self._flood_with(at_once, ask)
            ok = [record.end_s for record in records if record.outcome == "ok"]
            if len(ok) < LEAST_ANSWERS:
                raise UnreachableError(
                    f"of {len(records)} requests, {at_once} at once, only {len(ok)} were answered: "
                    "the server's ceiling cannot be measured"
                )
            rate, error = flood_rate(ok)
            working = at_work(records)
            most = self._setting.limits.max_in_flight
            if working < FULL_PART * at_once or rate < 1.05 * before or 2 * at_once > most:
                return Ceiling(rate, error, working)
            at_once, before = 2 * at_once, rate

    async def _flood_with(self, at_once: int, ask: AskFlood) -> list[Record]:
        setting = self._setting
        requests = setting.workload.requests(1.0, f"{setting.seed} flood {at_once}")
        sender = Sender(setting.target, setting.limits, setting.request_class)
        records: list[Record] = []
        left = at_once * FLOOD_ROUNDS

        async def keep_asking() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                arrival, body = next(requests)
                await sender.send(arrival, body, records.append)
                self._progress(ask, len(records), sender.now_s())
                if records[-1].outcome != "ok":
                    await asyncio.sleep(AFTER_REFUSAL_S)

        sender.begin()
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(at_once):
                    workers.create_task(keep_asking())
        finally:
            sender.close()
        return records


@dataclass(slots=True)
class _Run:
    """Open-loop load that goes on until it is ended."""

    setting: Setting
    ask: AskRun
    overload: int
    _records: dict[int, Record] = field(default_factory=dict)
    _judged: int = 0
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _sender: Sender | None = None
    _load: asyncio.Task[None] | None = None

    async def until(self, ask: AskRun, progress: Progress) -> Seen:
        """Go on until so many requests, counted from the first, are answered."""
        if self._load is None:
            self._sender = Sender(self.setting.target, self.setting.limits, self.setting.request_class)
            self._load = asyncio.create_task(self._go_on(self._sender))
        while self._judged < ask.requests:
            self._moved.clear()
            moved = asyncio.create_task(self._moved.wait())
            await asyncio.wait({moved, self._load}, return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            if self._load.done():
                self._load.result()
            progress(ask, min(self._judged, ask.requests), self._now_s())
        records = [self._records[number] for number in range(ask.requests)]
        bad = tuple(series(objective, records) for objective in self.setting.promises.judged)
        seconds = records[-1].intended_s
        late = sorted(record.late_s for record in records if record.late_s is not None)
        stays = sum(record.e2e_s for record in records)
        is_late = bool(late) and quantile(late, 0.99) > self.setting.promises.late_s
        return Seen(bad, seconds, stays / seconds, is_late)

    async def end(self) -> Facts:
        """Drop what is open; the facts of what was judged, without the warm-up."""
        tasks = {*self._tasks} | ({self._load} if self._load else set())
        judged = [self._records[number] for number in range(self._judged)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._sender is not None:
            self._sender.close()
        first_s = judged[len(judged) // WARM_UP_PARTS].intended_s
        return facts(self.setting.target.url, [*self._records.values()], first_s, judged[-1].intended_s)

    def _now_s(self) -> float:
        return 0.0 if self._sender is None else self._sender.now_s()

    async def _go_on(self, sender: Sender) -> None:
        name = f"{self.setting.seed} run {self.ask.number}"
        requests = self.setting.workload.requests(self.ask.rate_rps, name)
        loop = asyncio.get_running_loop()
        sender.begin()
        flood = self.setting.workload.requests(1.0, f"{name} overload")
        for _ in range(self.overload):
            self._begin(sender.send(*next(flood), _forget), loop)
        for number, (arrival, body) in enumerate(requests):
            delay_s = arrival.at_s - sender.now_s()
            await asyncio.sleep(max(delay_s, 0))
            self._begin(sender.send(arrival, body, self._keeper(number)), loop)

    def _begin(self, sending: Coroutine[object, None, None], loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _keeper(self, number: int) -> Callable[[Record], None]:
        def keep(record: Record) -> None:
            self._records[number] = record
            while self._judged in self._records:
                self._judged += 1
            self._moved.set()

        return keep


def _forget(_record: Record) -> None:
    """Requests that only make the overload are not judged."""
