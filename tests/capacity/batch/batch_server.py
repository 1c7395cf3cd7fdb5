"""A server on loopback that batches: so many at once as its knob says, each step longer by the same for each of them.

Any GET says both which models there are and what the knob is set to; a POST of {"max_batch": N} turns it.
"""

import asyncio
import heapq
import json
from dataclasses import dataclass, field

from tests.capacity.sse_server import DONE, END, HEAD, Step, event, refusal, usage


@dataclass
class Batching:
    """The script of such a server: a step takes `step_s` for each sequence that runs."""

    step_s: float
    max_batch: int = 8
    turned: list[int] = field(default_factory=list)
    _ends: list[float] = field(default_factory=list)

    def __call__(self, body: dict[str, object], _index: int) -> list[Step]:
        if "messages" not in body:
            return [self._set(body)]
        messages, tokens = body["messages"], body["max_tokens"]
        assert isinstance(messages, list)
        assert isinstance(tokens, int)
        now = asyncio.get_running_loop().time()
        while self._ends and self._ends[0] <= now:
            heapq.heappop(self._ends)
        waits_s = heapq.nsmallest(len(self._ends) - self.max_batch + 1, self._ends)[-1] - now if self.is_full else 0.0
        running = min(len(self._ends) + 1, self.max_batch)
        decoding_s = (tokens - 1) * self.step_s * running
        heapq.heappush(self._ends, now + waits_s + decoding_s)
        first = HEAD + event(content="a")
        words = len(messages[0]["content"].split())
        return [waits_s, first, decoding_s, event(content="b"), usage(words, tokens), DONE + END]

    @property
    def is_full(self) -> bool:
        return len(self._ends) >= self.max_batch

    def _set(self, body: dict[str, object]) -> bytes:
        wanted = body.get("max_batch")
        if isinstance(wanted, int):
            if wanted > 64:
                return refusal(400, b"at most 64")
            self.max_batch = wanted
            self.turned.append(wanted)
        return refusal(200, json.dumps({"data": [{"id": "m"}], "max_batch": self.max_batch}).encode())
