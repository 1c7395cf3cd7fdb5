"""One worker of several: the door, the eye on its requests, and the pipe to its parent.

    clients ─▶ Door ─▶ Relay ─▶ Pool ─▶ the server
                         └─▶ Eye ─▶ Tally ─▶ Report ─▶ parent        parent ─▶ State, Reload ─▶ Eye
                              └─▶ Emitter ─▶ OTLP (spans)

It judges its own requests at their own deadlines, and knows nothing of the other workers. What it counts goes to the
parent each second, and at once when the parent asks; so does what its requests in flight would count as, should it be
killed. It ends when it is told to, and when its parent is gone: nobody would count it then.

Run as `python -m sidecar.worker PIPE SOCKET...`: the numbers of its end of the pipe, and of what it listens on.
"""

import asyncio
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace

if __name__ == "__main__":  # first of all: Ctrl-C reaches every process of a terminal, and the parent says when to end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

import uvloop

from sidecar import limits, log
from sidecar.otlp_settings import Lane
from sidecar.serving.lifecycle import Ending, chore, every, raise_file_limit, settle, tell_loop_faults
from sidecar.serving.proxy_server import ProxyServer
from sidecar.serving.telemetry import emitter_of, eye_of, judge_by
from sidecar.usage.usage_policy import UsagePolicy
from sidecar.workers.worker_pipe import (
    TOLD_EVERY_S,
    Ask,
    Drain,
    Hurry,
    Message,
    Pipe,
    Ready,
    Reload,
    Report,
    Start,
    State,
    pipe_over,
)
from slo.objective import Spec
from slo.signals import Metric

PROGRAM = "firsttoken sidecar worker"


class Worker:
    """All of one worker, wired."""

    def __init__(self, start: Start, pipe: Pipe, loop: asyncio.AbstractEventLoop) -> None:
        self._plan = replace(start.plan, export=replace(start.plan.export, metrics=None))
        self._pipe, self._loop = pipe, loop
        self._emitter = emitter_of(self._plan)
        self._eye = eye_of(self._plan, loop, self._emitter)
        judge_by(start.spec, self._eye)
        self._eye.usage = UsagePolicy(start.options.inject_usage, start.options.scrape.engine)
        self._proxy = ProxyServer(start.options, self._eye)
        self._exports: dict[tuple[Metric, Lane, str], int] = {}
        self._known: frozenset[str] = frozenset()
        self._answers = self._outages = 0
        self._heard_s = time.monotonic()

    async def run(self, sockets: list[socket.socket]) -> None:
        """Serve on `sockets` until told to end, or until the parent is gone."""
        raise_file_limit()
        await self._proxy.open_on(sockets)
        ending = Ending(numbers=(signal.SIGTERM,))  # which may come beside the parent's own word: once is enough
        self._emitter.start()
        acts = [every(TOLD_EVERY_S, self._second, look=self._eye.look), self._listen(ending)]
        if self._emitter.wants_spans:
            delay_s = self._plan.export.span_delay_s
            acts.append(every(delay_s, self._emitter.flush_spans, look=self._eye.look))
        chores = [chore(act, look=self._eye.look) for act in acts]
        settle()
        self._pipe.send(Ready())
        await ending.wait()
        await self._proxy.drain()
        self._eye.look(self._eye.catch_up)
        await self._loop.run_in_executor(None, self._emitter.close, limits.FLUSH_S)
        for task in chores:
            task.cancel()
        self._eye.look(self._report)
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.FLUSH_S):
                await self._pipe.close()

    # What the parent says.

    async def _listen(self, ending: Ending) -> None:
        try:
            while (message := await self._pipe.receive()) is not None:
                if isinstance(message, Drain):
                    ending.ask()
                elif isinstance(message, Hurry):
                    self._proxy.door.hurry()
                elif isinstance(message, Reload):
                    self._eye.look(self._judge_by, message.spec)
                    await self._proxy.reload()
                else:
                    self._eye.look(self._take, message)
        finally:
            ending.ask()  # the parent is gone, or cannot be heard any more: it has another take this place

    def _take(self, message: Message) -> None:
        if isinstance(message, State):
            self._learn(message)
        elif isinstance(message, Ask):
            self._answers = message.number
            self._report()

    def _judge_by(self, spec: Spec | None) -> None:
        self._report()  # while what was counted is still between the edges of the spec before
        judge_by(spec, self._eye)

    def _learn(self, state: State) -> None:
        eye, self._heard_s = self._eye, time.monotonic()
        eye.occupied(state.kv_occupancy)
        eye.overload_429 = state.overload_429
        if state.engine is not None:
            eye.usage.engine_is(state.engine)
        if state.outages != self._outages:
            self._outages = state.outages
            eye.usage.server_gone()
        eye.labels.take_over(state.models, served=state.served)
        self._known = frozenset(state.models)

    # What the parent is told.

    def _second(self) -> None:
        self._proxy.door.sweep()
        if time.monotonic() - self._heard_s > limits.STALE_INTERVALS * TOLD_EVERY_S:
            self._eye.occupied(None)
        if not self._pipe.is_backed_up:  # else it waits: an increment that is not told grows
            self._report()

    def _report(self) -> None:
        eye = self._eye
        eye.catch_up()
        exports = self._emitter.counts()
        grown = {key: count - self._exports.get(key, 0) for key, count in exports.items()}
        self._exports = exports
        self._pipe.send(
            Report(
                exports=tuple((*key, more) for key, more in grown.items() if more),
                models=tuple(name for name in eye.labels.known if name not in self._known),
                gauges=tuple(eye.gauges(time.monotonic_ns())),
                at_stake=tuple(eye.at_stake()),
                in_flight=eye.in_flight,
                synthetic_in_flight=eye.synthetic_in_flight,
                busy_since_ns=eye.busy_since_ns,
                last_token_ns=eye.last_token_ns,
                reached=self._proxy.door.pool.reached,
                answers=self._answers,
                increment=eye.tally.increment(),  # last: from here on these counts are nowhere else
            )
        )


async def serve(numbers: list[int]) -> None:
    """Be the worker that the parent says, over files of these numbers: the pipe's two, then those to listen on."""
    inward, outward, *sockets = [socket.socket(fileno=number) for number in numbers]
    pipe = await pipe_over((inward, outward))
    start = await pipe.receive()
    if not isinstance(start, Start):
        return  # the parent is gone already
    options = start.options
    log.set_up(f"{PROGRAM} {start.number}", level=options.log_level, form=options.log_format)
    tell_loop_faults()
    await Worker(start, pipe, asyncio.get_running_loop()).run(sockets)


if __name__ == "__main__":
    uvloop.run(serve([int(number) for number in sys.argv[1:]]))
