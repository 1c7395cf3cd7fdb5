"""An inference server by its own pages: which engine it is, what it shows of its requests, and what it calls things.

Where an engine's metrics are, which it is and what they mean is the sidecar's knowledge (`sidecar.engine`); it is read
here, not repeated. `RENAMED` is the doctor's own: names that people wrote into their dashboards and rules, and that a
version of the engine changed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from firsttoken.doctor.ask import Answer
from firsttoken.doctor.facts import Reach
from firsttoken.json_fields import object_of, objects_at, text_at
from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine.engine_histograms import SeriesKey, added, read_histograms
from sidecar.engine.engine_requests import TOLD
from sidecar.engine.engine_search import Place, known_by, places
from sidecar.engine.engines import ENGINES
from sidecar.engine.metrics_text import Page, read_page
from sidecar.engine.scrape import sample_of
from sidecar.polling.backing import Sight
from sidecar.transport.upstream import parse_target
from slo.signals import SIGNALS

VERSION_PATHS = ("/version", "/server_info", "/get_server_info", "/info", "/props", "/api/version")
_VERSION_KEYS = ("version", "build_info")
MODELS_PATH = "/v1/models"


@dataclass(frozen=True, slots=True)
class Rename:
    """A metric that an engine calls otherwise since some version."""

    old: str
    new: str
    since: str


RENAMED: Mapping[str, tuple[Rename, ...]] = {
    "vllm": (
        Rename("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "0.9.2; the old name is gone since 0.12"),
        Rename("vllm:gpu_prefix_cache_queries_total", "vllm:prefix_cache_queries_total", "0.9.2"),
        Rename("vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total", "0.9.2"),
        Rename(
            "vllm:time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "0.10.2; the time per output token of a request is vllm:request_time_per_output_token_seconds",
        ),
    ),
    "sglang": (
        Rename("sglang:queue_time_s", "sglang:queue_time_seconds", "0.5.5"),
        Rename("sglang:avg_request_queue_latency", "sglang:queue_time_seconds", "0.5.5"),
        Rename("sglang:num_aborted_requests", "sglang:num_aborted_requests_total", "0.5.5"),
        Rename("sglang:time_per_output_token_seconds", "sglang:inter_token_latency_seconds", "0.4.6"),
    ),
    "llamacpp": (
        Rename("llamacpp:kv_cache_usage_ratio", "nothing: /slots tells it", "2025"),
        Rename("llamacpp:kv_cache_tokens", "nothing: /slots tells it", "2025"),
    ),
}
PREFIXES = ("vllm:", "sglang:", "sglang_", "tgi_", "llamacpp:", "trtllm_", "nv_trt_llm_", "nv_inference_", "lmdeploy:",
            "dynamo_", "litellm_")  # fmt: skip
"""How the names of metrics begin that an inference server tells."""
_PART = re.compile(r"_(bucket|sum|count)$")


@dataclass(frozen=True, slots=True)
class EngineSeen:
    """An engine that was recognised, with its page."""

    engine: str
    url: str
    sight: Sight
    reaches: tuple[Reach, ...]
    names: frozenset[str]


def find(root: str, fetch: Callable[[str], Answer]) -> EngineSeen | None:
    """The engine at a root URL, looked for where engines keep what they tell; None when no page is one's.

    A `Place` that a sign leads to is asked next, as the sidecar's poller does. Raises ValueError for a URL that the
    sidecar could not take either.
    """
    target = parse_target(root)
    for place in places(target, "/"):
        answer = fetch(_url(place))
        if answer.is_fine:
            seen = _of_sign(place, answer.body, fetch) if place.sign_of else _of_page(place, answer.body)
            if seen is not None:
                return seen
    return None


def _url(place: Place) -> str:
    return f"{place.target.url}{place.path}"


def _of_sign(place: Place, body: bytes, fetch: Callable[[str], Answer]) -> EngineSeen | None:
    """The engine that a sign shows: by its metrics where these are found, else by what the sign itself tells."""
    sample = known_by(place, body)
    if sample.engine is None:
        return None
    if place.metrics is not None:
        metrics = fetch(_url(place.metrics))
        seen = _of_page(place.metrics, metrics.body) if metrics.is_fine else None
        if seen is not None:
            return seen
    sight = Sight(sample.engine, occupancy=sample.kv_occupancy is not None, waiting=sample.waiting is not None)
    return EngineSeen(sample.engine, _url(place), sight, (), frozenset())


def _of_page(place: Place, body: bytes) -> EngineSeen | None:
    page = read_page(body)
    sample = sample_of(page)
    if sample.engine is None:
        return None
    engine, told = ENGINES[sample.engine], TOLD[sample.engine]
    by_model = _by_model(read_histograms(page, engine, told))
    edges = {(SIGNALS[signal].metric, model): each.bounds for (signal, model), each in by_model.items()}
    sight = Sight(
        engine.name,
        {(metric, model): bounds for (metric, model), bounds in edges.items() if metric is not None},
        occupancy=sample.kv_occupancy is not None,
        waiting=sample.waiting is not None,
        models=sample.models,
    )
    reaches = tuple(_reach(signal, model, each) for (signal, model), each in by_model.items())
    return EngineSeen(engine.name, _url(place), sight, reaches, _names(page))


def _by_model(found: Mapping[SeriesKey, EdgeBuckets]) -> dict[tuple[str, str], EdgeBuckets]:
    """Each latency of each model, its ranks together."""
    parts: dict[tuple[str, str], list[EdgeBuckets]] = {}
    for key, each in found.items():
        parts.setdefault((key.metric.sql, key.model or ""), []).append(each)
    return {key: added(some) for key, some in parts.items()}


def _reach(signal: str, model: str, each: EdgeBuckets) -> Reach:
    return Reach(signal, model, each.bounds[-1] if each.bounds else 0.0, each.count, each.counts[-1])


def _names(page: Page) -> frozenset[str]:
    """The metrics of a page by the names that people write, histograms without their parts too."""
    return frozenset(page.samples) | {family(name) for name in page.samples}


def family(name: str) -> str:
    """The metric of a series, without the part of a histogram that the series is."""
    return _PART.sub("", name)


def version(answers: Iterable[Answer]) -> str:
    """The first version that any of these pages tells; '' when none does."""
    return next(iter(_versions(answers)), "")


def _versions(answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        told = object_of(answer.json)
        yield from filter(None, (text_at(told, key) for key in _VERSION_KEYS))


def first_model(answer: Answer) -> str:
    """The first model that a server lists; '' when it lists none."""
    return next((text_at(one, "id") for one in objects_at(answer.json, "data")), "")


def renames(engine: str, names: frozenset[str]) -> Iterator[Rename]:
    """Renamed metrics that the page still calls by their old name alone."""
    for one in RENAMED.get(engine, ()):
        if one.old in names and one.new not in names:
            yield one
