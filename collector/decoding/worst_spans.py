"""The worst requests among the spans of a body: those that took longest by each latency, and some that failed.

Thousands of spans come a second, and a few are looked at by people. So a span is not opened to be ranked. In those of a
sidecar a latency is a double, before which stand the end of its key and bytes that are always the same; those are
looked for in all spans at once (`worst`). Of foreign spans the latencies are read anyway, side by side (`spans`), and
what is no longer than ten others of its hour is passed over (`beyond`). The few that rank highest are opened with
protobuf, and what stands in them is what counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import heappush, heappushpop
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.decoding import wire
from collector.values.histogram import Counts, Floats
from collector.values.measurement import MAX_VALUE, NS, Request, Resource
from slo import signals
from slo.quantity import HOUR_S

MAX_WORST = 3
"""Of each latency, and of those that failed, in the spans of one sender in one body; of fewer spans all."""
MAX_HIGHEST = 10
"""Values remembered of an hour, as many as requests are kept of it."""
MAX_FLOORS = 1_000
"""Hours, services, models and latencies of which they are remembered."""
ID_BYTES = (16, 8)
_LATENCIES = {
    signals.LATENCY_TTFT: signals.TTFT.sql,
    signals.LATENCY_TPOT: signals.TPOT.sql,
    signals.LATENCY_E2E: signals.E2E.sql,
}
RANKED = frozenset(_LATENCIES.values())
"""The latencies that a request may be among the worst by."""
_EIGHT = 8
_TAILS = [int.from_bytes(key.encode()[-_EIGHT:], "little") for key in _LATENCIES]
"""How the keys end, as the numbers that eight bytes are."""
_DOUBLE = b"\x12\x09\x21"
"""What stands between a key and the eight bytes of a double."""
_TELLING = frozenset(
    (
        *_LATENCIES,
        signals.REQUEST_MODEL,
        signals.RESPONSE_MODEL,
        signals.CLASS,
        signals.OUTCOME,
        signals.INPUT_TOKENS,
        signals.OUTPUT_TOKENS,
    )
)
_FAILING = b"\x7a\x02\x18\x02"
"""The status of a span that failed, and says no more."""
_LAST_NS = 2**63 - 1


def worst(spans: Sequence[bytes], resource: Resource) -> Iterator[Request]:
    """The worst requests among the spans of one sender, in no order; each once."""
    places = range(len(spans)) if len(spans) <= MAX_WORST else sorted(_chosen(spans))
    return all_opened((spans[place] for place in places), resource)


def beyond(of: tuple[str, ...], values_s: Floats, at_ns: int) -> Sequence[int]:
    """Where the highest of the values stand, unless ten of that hour were as high. `of` says whose latency it is."""
    highest = _highest((*of, at_ns // (HOUR_S * NS)))
    floor = highest[0] if len(highest) >= MAX_HIGHEST else -1.0
    if not values_s.max() > floor:
        return ()
    at = np.flatnonzero(values_s > floor)
    places: list[int] = at[np.argsort(values_s[at])][-MAX_WORST:].tolist()
    for value in set(values_s[places].tolist()).difference(highest):  # a body that comes again is not ten bodies
        (heappush if len(highest) < MAX_HIGHEST else heappushpop)(highest, value)
    return places


@lru_cache(maxsize=MAX_FLOORS)
def _highest(_of: tuple[str | int, ...]) -> list[float]:
    """The highest values that were met, each once, as a heap."""
    return []


def all_opened(spans: Iterable[bytes], resource: Resource) -> Iterator[Request]:
    """Each request that there is in the spans."""
    for span in spans:
        request = opened(span, resource)
        if request is not None:
            yield request


def _chosen(spans: Sequence[bytes]) -> set[int]:
    """The places of those to be opened."""
    joined = b"".join(spans)
    read, ends = np.frombuffer(joined, np.uint8), np.cumsum([*map(len, spans)])
    found = [*_slowest(joined, read), *(_behind(read, _FAILING, 0)[-MAX_WORST:] - 1)]
    return set(np.searchsorted(ends, found, side="right").tolist())


def _slowest(joined: bytes, read: NDArray[np.uint8]) -> Iterator[int]:
    """Where the highest values of each latency stand."""
    at = _behind(read, _DOUBLE, 2)
    at = at[(at >= len(_DOUBLE) + _EIGHT) & (at <= read.size - _EIGHT)]
    tails = _eights(joined, "<u8")[at - len(_DOUBLE) - _EIGHT]
    for tail in _TAILS:
        mine = at[tails == tail]
        values = _eights(joined, "<f8")[mine]
        is_one = (values >= 0) & (values <= MAX_VALUE)
        yield from mine[is_one][np.argsort(values[is_one])[-MAX_WORST:]].tolist()


def _behind(read: NDArray[np.uint8], mark: bytes, rare: int) -> Counts:
    """The places right behind each mark. One of its bytes, the one that is rare elsewhere, is looked for first."""
    last = read.size - len(mark)
    at = np.flatnonzero(read == mark[rare]) - rare
    at = at[(at >= 0) & (at <= last)]
    for place, byte in enumerate(mark):
        at = at[read[at + place] == byte]
    return at + len(mark)


def _eights(joined: bytes, kind: str) -> NDArray[Any]:
    """What the eight bytes from each byte on are, as numbers of a kind."""
    return np.ndarray((max(len(joined) - _EIGHT + 1, 0),), kind, joined, strides=(1,))


def opened(span: bytes, resource: Resource) -> Request | None:
    """The request that a span tells of; None when it tells of none of the users', or of one that cannot be found."""
    try:
        read = Span.FromString(span)
    except DecodeError:
        return None
    if (len(read.trace_id), len(read.span_id)) != ID_BYTES:
        return None
    if not 0 < read.start_time_unix_nano <= read.end_time_unix_nano <= _LAST_NS:
        return None
    texts = {pair.key: wire.value_text(pair.value) or "" for pair in read.attributes if pair.key in _TELLING}
    if texts.get(signals.CLASS) == signals.SYNTHETIC_CLASS:
        return None
    request = Request(
        resource,
        trace_id=read.trace_id.hex(),
        span_id=read.span_id.hex(),
        model=wire.model(texts) or signals.UNKNOWN_MODEL,
        class_=texts.get(signals.CLASS, ""),
        outcome=texts.get(signals.OUTCOME, ""),
        has_failed=read.status.code == Status.STATUS_CODE_ERROR,
        end_ns=read.end_time_unix_nano,
        took_s=(read.end_time_unix_nano - read.start_time_unix_nano) / NS,
        latencies=dict(_latencies(texts)),
        input_tokens=_whole(texts.get(signals.INPUT_TOKENS, "")),
        output_tokens=_whole(texts.get(signals.OUTPUT_TOKENS, "")),
    )
    return request if request.ranks() else None


def _latencies(texts: wire.Attributes) -> Iterable[tuple[str, float]]:
    for key, signal in _LATENCIES.items():
        try:
            value = float(texts[key])
        except (KeyError, ValueError):
            continue
        if 0 <= value <= MAX_VALUE:
            yield signal, value


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
