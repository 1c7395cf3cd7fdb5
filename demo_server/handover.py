"""Where the engine thread and the event loop meet.

The engine delivers a step's outputs in one call; one wake-up of the loop hands each to the `Flow` of its request. A
flow that its reader closes before the end cancels the request, whatever the reason: a client that left, an error, a
shutdown.
"""

import asyncio
from contextlib import suppress

from demo_server.engine import Engine
from demo_server.sequence import GenerationRequest, Output


class Flow:
    """One request's outputs, as the event loop sees them."""

    __slots__ = ("_news", "_outputs", "has_ended", "sequence_id")

    def __init__(self, sequence_id: int) -> None:
        self.sequence_id = sequence_id
        self.has_ended = False
        self._outputs: list[Output] = []
        self._news = asyncio.Event()

    def put(self, output: Output) -> None:
        """Add an output for the reader."""
        self._outputs.append(output)
        self.has_ended = output.finish is not None
        self._news.set()

    def leave(self) -> None:
        """Wake the reader: its client has left."""
        self._news.set()

    async def take(self) -> list[Output]:
        """All outputs since the last call, at least one; none means that the client has left."""
        await self._news.wait()
        self._news.clear()
        outputs, self._outputs = self._outputs, []
        return outputs


class Handover:
    """The flows of all open requests. Everything but `deliver` belongs to the event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._flows: dict[int, Flow] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the engine, delivering into `loop`."""
        self._loop = loop
        self._engine.start(self.deliver)

    def open(self, request: GenerationRequest) -> Flow:
        """Submit a request. Raises what `Engine.submit` raises."""
        flow = Flow(self._engine.submit(request))
        # Outputs reach the loop as a callback, and this one has not returned yet: none can come before the flow.
        self._flows[flow.sequence_id] = flow
        return flow

    def close(self, flow: Flow) -> None:
        """End a flow; cancels its request if it has not ended."""
        self._flows.pop(flow.sequence_id, None)
        if not flow.has_ended:
            self._engine.cancel(flow.sequence_id)

    def break_off(self) -> None:
        """End every open flow with an error: the server is going away."""
        for flow in self._flows.values():
            if not flow.has_ended:
                flow.put(Output(flow.sequence_id, "", 0, "error"))

    def deliver(self, outputs: list[Output]) -> None:
        """Called by the engine thread."""
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has closed: the process is ending and nobody reads any more
            self._loop.call_soon_threadsafe(self._hand_out, outputs)

    def _hand_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            flow = self._flows.get(output.sequence_id)
            if flow is not None and not flow.has_ended:
                flow.put(output)
