"""A server on loopback with a queue: so many requests at once, a fixed time each, first come first served.

The script of `sse_server` says how long each answer takes; here that is the wait for a free place, and the work.
"""

import asyncio
import heapq

from tests.capacity.sse_server import DONE, END, HEAD, Script, Step, event, refusal, usage

LISTED = refusal(200, b'{"data": [{"id": "m"}]}')
TOKENS_EACH, TOKENS_AROUND = 2, 5


def queue(places: int, work_s: float) -> Script:
    """The script of such a server; it lists model `m`, and counts two tokens a word and five around them."""
    free = [0.0] * places

    def script(body: dict[str, object], _index: int) -> list[Step]:
        if not body:
            return [LISTED]
        now = asyncio.get_running_loop().time()
        begins = max(now, free[0])
        heapq.heapreplace(free, begins + work_s)
        messages, tokens = body["messages"], body["max_tokens"]
        assert isinstance(messages, list)
        assert isinstance(tokens, int)
        prompt = TOKENS_EACH * len(messages[0]["content"].split()) + TOKENS_AROUND
        first = HEAD + event(content="a")
        return [begins - now + work_s / 2, first, work_s / 2, event(content="b"), usage(prompt, tokens), DONE + END]

    return script
