"""How a streamed answer comes through: at once, or held back by what stands in front of the server.

The burst in which an answer begins tells a buffer from a slow engine: tokens are made one after another, so many that
arrive together were waiting for each other somewhere.
"""

from collections.abc import Iterator
from statistics import median

from firsttoken.doctor.facts import Facts, ServerFacts, StreamSeen
from firsttoken.doctor.finding import Check, Finding

LEAST_EVENTS = 8
"""An answer of fewer events does not tell how it comes. So many in a burst, on average, were collected on the way: a
buffer of nginx (4 KiB) holds a dozen, and an engine that makes several tokens at a time sends fewer."""
LEAST_WAIT_S = 0.1
"""A whole answer within less may really be made at once."""
MANY_FIRST = 5
"""A first burst with so many times the events of a usual one was held back."""
HOLDS = {
    "nginx": "proxy_buffering off; proxy_http_version 1.1; gzip off for text/event-stream",
    "haproxy": "option http-no-delay in the frontend and the backend",
    "envoy": "no buffer filter on the route, no compressor for text/event-stream",
    "varnish": "pipe the path of the API instead of caching it",
    "cloudflare": "no compression and no buffering for text/event-stream",
    "apache": "SetEnv proxy-sendchunked 1; no mod_deflate for text/event-stream; flushpackets=on",
}
"""By a word in the headers `Server` and `Via`: what lets streams through there."""


def _stream(facts: Facts) -> Iterator[Finding]:
    for one in facts.servers:
        if one.stream is not None:
            yield from _of(one, one.stream)


def _of(server: ServerFacts, seen: StreamSeen) -> Iterator[Finding]:
    where = f"server {server.url}"
    if seen.error:
        fix = "send it a request by hand; the probe asks for a streamed chat completion of its first model"
        yield Finding("probe-failed", "error", seen.error, where, fix)
    elif seen.encoding:
        what = f"compresses the event stream ({seen.encoding}): events wait until a block of it is full"
        yield Finding("stream-compressed", "error", what, where, _fix(server, "leave text/event-stream uncompressed"))
    elif _is_collected(seen):
        pieces = f"{len(seen.bursts)} pieces" if len(seen.bursts) > 1 else "one piece"
        what = (
            f"{seen.events} events came in {pieces}, the first after {seen.bursts[0][0]:.2f} s: something collects them"
        )
        yield Finding("stream-buffered", "error", what, where, _fix(server, "switch buffering off for the API's path"))
    elif _is_late(seen):
        at_s, count = seen.bursts[0]
        what = (
            f"the first {count} events came together after {at_s:.2f} s, the others one by one: the first chunk is "
            "held back"
        )
        fix = _fix(server, "let small packets through at once (HAProxy: option http-no-delay)")
        yield Finding("first-chunk-late", "error", what, where, fix)


def is_held_back(seen: StreamSeen) -> bool:
    """Whether an answer came as if something held it back; a busy machine can look so once, but not time and again."""
    return _is_collected(seen) or _is_late(seen)


def _is_collected(seen: StreamSeen) -> bool:
    waited = bool(seen.bursts) and seen.bursts[-1][0] >= LEAST_WAIT_S
    return waited and seen.events >= LEAST_EVENTS * len(seen.bursts)


def _is_late(seen: StreamSeen) -> bool:
    if len(seen.bursts) < LEAST_EVENTS // 2 or seen.events < LEAST_EVENTS:
        return False
    usual = median(count for _, count in seen.bursts[1:])
    return seen.bursts[0][1] >= MANY_FIRST * max(usual, 1)


def _fix(server: ServerFacts, otherwise: str) -> str:
    holds = [f"{name}: {how}" for name, how in HOLDS.items() if name in server.via.lower()]
    return "; ".join(holds) or f"{otherwise}, in whatever stands before the server"


def _in_front(facts: Facts) -> Iterator[Finding]:
    for one in facts.servers:
        for name, how in HOLDS.items():
            if one.stream is None and name in one.via.lower():
                what = f"{name} stands in front: unless it is told otherwise it holds streams back"
                yield Finding(
                    "proxy-in-front", "note", what, f"server {one.url}", f"{how}; --probe looks whether it does"
                )


CHECKS = (
    Check(
        ("probe-failed", "stream-compressed", "stream-buffered", "first-chunk-late"),
        "with --probe: a streamed answer that is compressed, collected or begun late on its way",
        _stream,
    ),
    Check(("proxy-in-front",), "a reverse proxy known to hold streams back, by its headers", _in_front),
)
