"""The engine thread: takes requests in, makes one step after another, gives outputs out.

A turn is: take what came in; let the scheduler plan; let the runner begin; meanwhile make text of all that the step
before gave and hand it over, in one call; take the tokens; wait if a floor or a fault says so; settle each (stop,
limits), for the next plan must know who goes on. With nothing to do it sleeps until something comes in. All state
belongs to the engine thread; methods of the first group may be called from one other thread and do no more than leave a
note in the inbox. If a turn raises, every request, present or future, ends with an error and `failure` says why.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from demo_server.errors import EngineFailedError, QueueFullError
from demo_server.faults import HEALTHY, Faults, step_target_s, withheld_blocks
from demo_server.metrics import Metrics, ModelMetrics, Timeline
from demo_server.scheduler import Policy, Scheduler, Step
from demo_server.sequence import FinishReason, GenerationRequest, Output, Sequence
from demo_server.text import EOS, TextStream

Deliver = Callable[[list[Output]], None]

_logger = logging.getLogger(__name__)

# How often a wait looks whether a fault was lifted or the server is to stop.
GLANCE_S = 0.05


class Runner(Protocol):
    """What computes a step. The model's runner is one; tests script others."""

    def begin(self, step: Step, sequences: Mapping[int, Sequence]) -> Callable[[], Mapping[int, int]]:
        """Begin a step. Calling the answer waits for it and gives the next token of every sequence whose tokens are all
        computed after it, by sequence id."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """`step_floor_s`: the least a step takes. `max_queue`: how many may wait for their first admission (None: any)."""

    step_floor_s: float = 0.0
    max_queue: int | None = None


@dataclass(slots=True)
class Live:
    """One request in the engine."""

    request: GenerationRequest
    sequence: Sequence
    text: TextStream
    timeline: Timeline
    metrics: ModelMetrics
    is_running: bool = False

    def move(self, *, to_running: bool) -> None:
        """Keep the two gauges in step with where the scheduler put the sequence."""
        self.is_running = to_running
        self.metrics.running.inc(1 if to_running else -1)
        self.metrics.waiting.inc(-1 if to_running else 1)

    def leave(self) -> None:
        """Take the request out of the gauges."""
        (self.metrics.running if self.is_running else self.metrics.waiting).dec()


class News(NamedTuple):
    """What one token meant for its request, settled but not yet told. `text` is None where nobody has looked yet.

    A tuple, for it is made in a third of the time, and a GPU waits for a batch of them between its steps.
    """

    live: Live
    token: int
    text: str | None
    generated: int
    finish: FinishReason | None


class Engine:
    """Runs a scheduler and a runner on a thread of its own."""

    def __init__(self, scheduler: Scheduler, runner: Runner, *, metrics: Metrics, limits: Limits) -> None:
        self.failure: Exception | None = None
        self.faults = HEALTHY
        self._scheduler = scheduler
        self._runner = runner
        self._metrics = metrics
        self._limits = limits
        self._live: dict[int, Live] = {}
        self._sequences: dict[int, Sequence] = {}
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._deliver: Deliver = _nowhere
        self._untold: list[News] = []  # of one step, settled at:
        self._settled_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        # Requests not yet answered in full. The gate orders a submission against the engine's death, so that none is
        # taken by a thread that is gone.
        self._gate = threading.Lock()
        self._open: set[int] = set()
        # Each of the two has one writer; their difference is how many wait for a first admission.
        self._submitted = 0
        self._left_queue = 0
        pool = scheduler.pool
        metrics.show_cache(blocks=pool.total, block_size=pool.block_size, usage=lambda: pool.usage)

    @property
    def policy(self) -> Policy:
        """The limits of a step, as they are now."""
        return self._scheduler.policy

    def start(self, deliver: Deliver) -> None:
        """Begin. `deliver` is called on the engine thread, once a step, with that step's outputs."""
        self._deliver = deliver
        self._thread.start()

    def submit(self, request: GenerationRequest) -> int:
        """Take a request and return its sequence id. Raises QueueFullError or EngineFailedError."""
        with self._gate:
            if self.failure is not None:
                raise EngineFailedError(f"the engine has failed: {self.failure}")
            waiting = self._submitted - self._left_queue
            if self._limits.max_queue is not None and waiting >= self._limits.max_queue:
                raise QueueFullError(f"{waiting} requests are waiting already (--max-queue {self._limits.max_queue})")
            self._submitted += 1
            self._open.add(self._submitted)
            self._inbox.put(partial(self._accept, self._submitted, request, time.monotonic()))
            return self._submitted

    def cancel(self, sequence_id: int) -> None:
        """Forget a request whose client left; its blocks are free before the next step."""
        self._inbox.put(partial(self._forget, sequence_id))

    def set_faults(self, faults: Faults) -> None:
        """Switch faults on or off, from the next glance on."""
        self.faults = faults
        self._inbox.put(_wake)

    def set_policy(self, policy: Policy) -> None:
        """Change the limits from the next step on; running sequences above a smaller batch finish."""
        self._scheduler.policy = policy
        self._inbox.put(_wake)

    def stop(self, timeout_s: float) -> bool:
        """Let the thread end after its current step and wait for it; whether it did."""
        self._stopping.set()
        self._inbox.put(_wake)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
            self._tell()
        except Exception as error:
            # Whatever it is, nobody may be left waiting for a dead thread.
            _logger.exception("the engine has failed")
            self._fail(error)

    def _turn(self) -> None:
        self._take_in()
        if self.faults.hang:
            self._tell()
            self._sleep_until_note()
            return
        pool = self._scheduler.pool
        pool.withhold(withheld_blocks(self.faults, pool.total))
        started_s = time.monotonic()
        step = self._scheduler.plan(admit_limit=1 if self.faults.queue else None)
        self._note_moves(step, started_s)
        if step.chunks:
            collect = self._runner.begin(step, self._sequences)
            self._tell()
            tokens = collect()
            self._pace(started_s)
            self._settle(step, tokens)
        elif not step.preempted:
            self._tell()
            self._sleep_until_note()

    def _take_in(self) -> None:
        while not self._inbox.empty():  # this thread alone takes notes out
            self._inbox.get()()

    def _sleep_until_note(self) -> None:
        self._inbox.get()()

    def _accept(self, sequence_id: int, request: GenerationRequest, arrived_s: float) -> None:
        sequence = Sequence(sequence_id, request.prompt, request.sampling)
        live = Live(
            request,
            sequence,
            text=TextStream(request.sampling.stop),
            timeline=Timeline(arrived_s),
            metrics=self._metrics.of(request.model),
        )
        self._scheduler.add(sequence)
        self._live[sequence_id] = live
        self._sequences[sequence_id] = sequence
        live.metrics.waiting.inc()

    def _forget(self, sequence_id: int) -> None:
        if sequence_id in self._live:
            self._remove(self._live[sequence_id])

    def _remove(self, live: Live) -> None:
        self._scheduler.finish(live.sequence)
        live.leave()
        if live.timeline.scheduled_s is None:
            self._left_queue += 1
        self._open.discard(live.sequence.id)
        del self._live[live.sequence.id], self._sequences[live.sequence.id]

    def _note_moves(self, step: Step, now_s: float) -> None:
        for lost in step.preempted:
            live = self._live[lost.sequence_id]
            live.move(to_running=False)
            live.metrics.preempted(lost.computed)
        for sequence_id, reused in zip(step.admitted, step.reused, strict=True):
            live = self._live[sequence_id]
            live.move(to_running=True)
            live.metrics.admitted(len(live.sequence), reused)
            if live.timeline.scheduled_s is None:
                live.timeline.scheduled_s = now_s
                self._left_queue += 1

    def _pace(self, started_s: float) -> None:
        measured_s = time.monotonic() - started_s
        while not self._stopping.is_set():
            target_s = step_target_s(self.faults, measured_s=measured_s, floor_s=self._limits.step_floor_s)
            left_s = started_s + target_s - time.monotonic()
            if left_s <= 0:
                return
            self._stopping.wait(min(left_s, GLANCE_S))

    def _settle(self, step: Step, tokens: Mapping[int, int]) -> None:
        """Do to the sequences what the next plan must know of; what clients and scrapes must know can wait."""
        self._settled_s = time.monotonic()
        for chunk in step.chunks:
            self._sequences[chunk.sequence_id].advance(chunk.count)
        for sequence_id, token in tokens.items():
            self._untold.append(self._settle_token(self._live[sequence_id], token))

    def _settle_token(self, live: Live, token: int) -> News:
        live.sequence.append(token)
        generated = live.sequence.output_tokens
        # Text decides who goes on only where it may hold a stop string.
        text = live.text.push(token) if live.request.sampling.stop else None
        finish = _ending(live, token, generated)
        if finish is not None:
            self._remove(live)
        return News(live, token, text, generated, finish)

    def _tell(self) -> None:
        """Count the tokens of the last step and hand its outputs over: counted first, as who reads one may scrape."""
        untold, self._untold = self._untold, []
        outputs = [_output(news) for news in untold]
        for news in untold:
            live = news.live
            live.metrics.token(live.timeline, live.sequence.prompt_tokens, self._settled_s)
            if news.finish is not None:
                live.metrics.finished(live.timeline, news.generated, news.finish)
        if untold:
            self._deliver(outputs)

    def _fail(self, error: Exception) -> None:
        self._tell()
        with self._gate:
            self.failure = error
        for live in self._live.values():
            live.leave()
            live.metrics.finished(live.timeline, live.sequence.output_tokens, "error")
        generated = {sequence_id: live.sequence.output_tokens for sequence_id, live in self._live.items()}
        self._deliver([Output(each, "", generated.get(each, 0), "error") for each in sorted(self._open)])


def _output(news: News) -> Output:
    stream = news.live.text
    text = stream.push(news.token) if news.text is None else news.text
    if news.finish == "length" or (news.finish == "stop" and stream.stop_reason is None):
        text += stream.flush()
    return Output(news.live.sequence.id, text, news.generated, news.finish, stream.stop_reason)


def _ending(live: Live, token: int, generated: int) -> FinishReason | None:
    request = live.request
    finish: FinishReason | None = None
    if live.text.stop_reason is not None or (token == EOS and not request.sampling.ignore_eos):
        finish = "stop"
    elif generated >= request.sampling.max_tokens:
        finish = "length"
    break_after = request.break_after
    if break_after is not None and (finish is not None or generated >= break_after):
        finish = "error"
    return finish


def _wake() -> None:
    """A note that says nothing but wakes the engine."""


def _nowhere(_outputs: list[Output]) -> None:
    """Where outputs go before `start`."""
