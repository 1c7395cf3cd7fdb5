"""Where an engine keeps what it tells of itself: the places to look at in turn, until one of them is an engine's.

    /metrics, /metrics/    most; LiteLLM answers the first with a redirection to the second
    /prometheus/metrics    TensorRT-LLM, whose /metrics is something else
    /slots                 llama.cpp that was started without --metrics: what it does, and nothing of requests
    /v2                    Triton: its name stands here, its metrics at a port of their own
    /                      Ollama: it greets, and has no metrics at all

A page that was named, or that of a named engine, is looked at alone, with and without a slash at its end. Values in,
values out: what fetches, and knows when a server is gone, is the poller.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from sidecar.engine.engines import ENGINES, LLAMACPP, OLLAMA, TRITON, Engine
from sidecar.engine.scrape import AUTO, ServerSample, slots_sample
from sidecar.transport.upstream import Target

TRITON_METRICS_PORT = 8002

_SIGNS = {LLAMACPP.name: "/slots", TRITON.name: "/v2", OLLAMA.name: "/"}
_GREETING = b"Ollama is running"


@dataclass(frozen=True, slots=True)
class Place:
    """A page of a server; with `sign_of` it is no page of metrics, but one by which this engine is known."""

    target: Target
    path: str
    sign_of: str = ""

    @property
    def metrics(self) -> "Place | None":
        """Where the metrics are of an engine that was known by this sign, if they are elsewhere and can be."""
        if self.sign_of != TRITON.name or self.target.unix is not None:
            return None
        target = replace(self.target, scheme="http", port=TRITON_METRICS_PORT, prefix="")
        return Place(target, TRITON.metrics_path or "/")


def places(target: Target, path: str, engine: str = AUTO) -> tuple[Place, ...]:
    """Where to look on a server for an engine (`auto`: for any); a `path` other than `/` is the page itself."""
    if path != "/":
        return tuple(_pages(target, path))
    if engine in ENGINES:
        known = ENGINES[engine]
        pages = [] if known.metrics_path is None else list(_pages(target, known.metrics_path))
        return (*pages, *_signs(target, known)) if pages else ()
    paths = dict.fromkeys(known.metrics_path for known in ENGINES.values() if known.metrics_path is not None)
    pages = [place for usual in paths for place in _pages(target, usual)]
    return (*pages, *(place for known in ENGINES.values() for place in _signs(target, known)))


def _pages(target: Target, path: str) -> Iterator[Place]:
    yield Place(target, path)
    if not path.endswith("/") and "?" not in path:
        yield Place(target, path + "/")


def _signs(target: Target, engine: Engine) -> Iterator[Place]:
    if engine.name in _SIGNS:
        yield Place(target, _SIGNS[engine.name], engine.name)


def known_by(place: Place, body: bytes) -> ServerSample:
    """What the body of a sign says; of one that is none, `engine` is None."""
    if place.sign_of == LLAMACPP.name:
        return slots_sample(body)
    is_it = _names_triton(body) if place.sign_of == TRITON.name else body.strip() == _GREETING
    return ServerSample(place.sign_of if is_it else None)


def _names_triton(body: bytes) -> bool:
    try:
        told = orjson.loads(body)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("name") == "triton"
