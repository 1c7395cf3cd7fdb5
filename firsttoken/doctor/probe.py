"""One streamed request, sent only when asked for, to see how its answer comes: at once, late, or all together.

It carries the class `synthetic`, so that no objective judges it, and asks for a few tokens. Times and numbers of events
are kept, nothing of what the answer says.
"""

import http.client
import json
import time
from itertools import pairwise

from firsttoken.deadline import hung_up_after
from firsttoken.doctor.address import Address, plain_text
from firsttoken.doctor.ask import authorized, why
from firsttoken.doctor.facts import StreamSeen
from firsttoken.errors import UnreachableError
from firsttoken.http_json import Access, connection, request_target
from slo.signals import CLASS_HEADER, SYNTHETIC_CLASS

PATH = "/v1/chat/completions"
MAX_TOKENS = 32
TIMEOUT_S = 60.0
MAX_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 1 << 16
TOGETHER_S = 0.003
"""Reads that follow each other within this came together: chunks are read one by one."""


def probe(where: Address, model: str, *, access: Access, timeout_s: float = TIMEOUT_S) -> StreamSeen:
    """Ask for a short streamed answer and note when each part of it came. Raises nothing."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "gzip, br, zstd, identity;q=0.5",
        CLASS_HEADER: SYNTHETIC_CLASS,
        **authorized(where, access),
    }
    url = where.at(PATH)
    try:
        opened = connection(url, timeout_s, access)
    except UnreachableError as error:
        return StreamSeen(plain_text(str(error)))
    try:
        with hung_up_after(opened, timeout_s) as is_over:
            seen = _streamed(opened, request_target(url), _body(model), headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return StreamSeen(f"gives no streamed answer: {why(error)}")
    finally:
        opened.close()
    return StreamSeen(f"gives no streamed answer that ends within {timeout_s:g} s") if is_over.is_set() else seen


def _streamed(opened: http.client.HTTPConnection, target: str, body: bytes, headers: dict[str, str]) -> StreamSeen:
    """How one answer came. Raises what http.client does."""
    sent_s = time.monotonic()
    opened.request("POST", target, body, headers)
    response = opened.getresponse()
    head_s = time.monotonic() - sent_s
    if response.status != 200:
        said = plain_text(response.read(300).decode("utf-8", "replace"))
        return StreamSeen(f"answers {response.status} to a streamed request: {said}")
    encoding = response.getheader("content-encoding", "identity")
    return StreamSeen("", head_s, "" if encoding == "identity" else encoding, bursts(_reads(response, sent_s)))


def _body(model: str) -> bytes:
    asked = {
        "model": model,
        "stream": True,
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "messages": [{"role": "user", "content": "Count from one to twenty, in words."}],
    }
    return json.dumps(asked).encode()


def _reads(response: http.client.HTTPResponse, sent_s: float) -> list[tuple[float, int]]:
    found, length, last = [], 0, b"\n"
    while length < MAX_BYTES and (chunk := response.read1(CHUNK_BYTES)):
        at_s = time.monotonic() - sent_s
        found.append((at_s, (last + chunk).count(b"\ndata:")))
        length, last = length + len(chunk), chunk[-5:]
    return found


def bursts(reads: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Reads that came together as one, at the moment of the first; each a time in seconds and a number of events."""
    together: list[list[tuple[float, int]]] = [reads[:1]] if reads else []
    for before, after in pairwise(reads):
        if after[0] - before[0] <= TOGETHER_S:
            together[-1].append(after)
        else:
            together.append([after])
    return tuple((burst[0][0], sum(count for _, count in burst)) for burst in together)
