"""One streamed request, sent only when asked for, to see how its answer comes: at once, late, or all together.

It carries the class `synthetic`, so that no objective judges it, and asks for a few tokens. Times and numbers of events
are kept, nothing of what the answer says.
"""

import http.client
import json
import time
from itertools import pairwise

from firsttoken.doctor.address import Address, plain_text
from firsttoken.doctor.ask import why
from firsttoken.doctor.facts import StreamSeen
from firsttoken.errors import UnreachableError
from firsttoken.http_json import Access, connection
from slo.signals import SYNTHETIC_CLASS

PATH = "/v1/chat/completions"
CLASS_HEADER = "x-firsttoken-class"
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
    }
    if authorization := where.authorization or (f"Bearer {access.token}" if access.token else ""):
        headers["Authorization"] = authorization
    try:
        opened = connection(where.at(PATH), timeout_s, access)
    except UnreachableError as error:
        return StreamSeen(plain_text(str(error)))
    try:
        opened.connect()
        sent_s = time.monotonic()
        opened.request("POST", _path(where), _body(model), headers)
        response = opened.getresponse()
        head_s = time.monotonic() - sent_s
        if response.status != 200:
            said = plain_text(response.read(300).decode("utf-8", "replace"))
            return StreamSeen(f"answers {response.status} to a streamed request: {said}")
        encoding = response.getheader("content-encoding", "identity")
        return StreamSeen("", head_s, "" if encoding == "identity" else encoding, together(_reads(response, sent_s)))
    except (OSError, http.client.HTTPException) as error:
        return StreamSeen(f"gives no streamed answer: {why(error)}")
    finally:
        opened.close()


def _path(where: Address) -> str:
    return "/" + where.at(PATH).partition("://")[2].partition("/")[2]


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


def together(reads: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Reads that came together as one, at the moment of the first."""
    bursts: list[list[tuple[float, int]]] = [reads[:1]] if reads else []
    for before, after in pairwise(reads):
        if after[0] - before[0] <= TOGETHER_S:
            bursts[-1].append(after)
        else:
            bursts.append([after])
    return tuple((burst[0][0], sum(count for _, count in burst)) for burst in bursts)
