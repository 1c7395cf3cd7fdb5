"""KV cache and batching: how full the cache is, what that costs, and how well the engine's batch is used."""

from decimal import Decimal

from dashboards import promise
from dashboards.boards import parts
from dashboards.boards.parts import ENGINE_SILENT, LATENCIES, limited
from dashboards.boards.plan import OF_MODELS, Given, Plan
from dashboards.capacity_result import batch_limits
from dashboards.grafana.grid import Panel, Section
from dashboards.grafana.panels import NO_TRAFFIC, timeseries
from dashboards.model import SHARE, TOKENS_A_SECOND, About
from dashboards.questions import Source
from slo.promql import INSTANCE_LABEL, SERVICE_KEY, SUBJECT_KEY
from slo.signals import (
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    IN_FLIGHT,
    KV_CAPACITY,
    KV_OCCUPANCY,
    LABELS,
    PREFIX_HIT_RATIO,
    RANK,
    TOKEN_TYPE,
    TOKENS,
)

BY_INSTANCE = (*SERVICE_KEY, INSTANCE_LABEL)


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    """Everything on the page."""
    tpot = next(of for of in LATENCIES if of[0] == "tpot")
    return (
        Section("KV cache", _cache(source, given)),
        Section("Batch", (*_batch(source, given), parts.latency(source, given, *tpot))),
        Section("Tokens", _tokens(source)),
    )


PLAN = Plan(
    "kv-cache",
    "KV cache and batching",
    "How full the KV cache is, what the engine preempts and reuses, and how many requests and tokens its batch holds.",
    (*OF_MODELS, INSTANCE_LABEL),
    sections,
)


def _cache(source: Source, given: Given) -> tuple[Panel, ...]:
    figures = source.figures
    occupancy = About(
        "Occupancy by instance",
        "Share of KV blocks or tokens pinned by running requests, of the fullest rank. What a prefix cache merely "
        "keeps is not counted: it can be had back at once.",
        SHARE, empty=ENGINE_SILENT, most=Decimal(1),
    )  # fmt: skip
    ranks = About(
        "Occupancy by rank", "The same of each rank, where an engine has several: they should be even.",
        SHARE, empty=ENGINE_SILENT, most=Decimal(1),
    )  # fmt: skip
    capacity = About("Capacity", "Tokens that the KV cache of each model can hold.", "short", empty=ENGINE_SILENT)
    preempted = About(
        "Preemptions",
        "Requests per second that the engine threw out of its batch for want of cache: each is computed again.",
        "eps", empty=ENGINE_SILENT,
    )  # fmt: skip
    hits = About(
        "Prefix-cache hits", "Share of prompt tokens that were found in the prefix cache.",
        SHARE, empty=ENGINE_SILENT, most=Decimal(1),
    )  # fmt: skip
    fullest = figures.gauge(KV_OCCUPANCY, BY_INSTANCE, fold="max")
    return (
        limited(occupancy, source, (fullest,), promise.thresholds(given.specs, "kv_occupancy")),
        timeseries(ranks, (figures.gauge(KV_OCCUPANCY, (*BY_INSTANCE, LABELS[RANK]), fold="max"),)),
        timeseries(capacity, (figures.gauge(KV_CAPACITY, SUBJECT_KEY),)),
        timeseries(preempted, (figures.rate(ENGINE_PREEMPTIONS, BY_INSTANCE),)),
        timeseries(hits, (figures.gauge(PREFIX_HIT_RATIO, BY_INSTANCE, fold="max"),)),
    )


def _batch(source: Source, given: Given) -> tuple[Panel, ...]:
    figures = source.figures
    running = About(
        "Running by instance",
        "Requests in the engine's batch, against the batch size that `firsttoken capacity batch` found, if any.",
        "short", empty=ENGINE_SILENT,
    )  # fmt: skip
    waiting = About("Waiting by instance", "Requests that the engine holds in its queue.", "short", empty=ENGINE_SILENT)
    both = About(
        "In flight and running",
        "Requests in flight at the sidecar beside those that the engine runs: what lies between waits.",
        "short", empty=NO_TRAFFIC,
    )  # fmt: skip
    in_flight = figures.gauge(IN_FLIGHT, name="in flight", ref="inflight")
    batch = figures.gauge(ENGINE_RUNNING, name="running", ref="running")
    return (
        limited(running, source, (figures.gauge(ENGINE_RUNNING, BY_INSTANCE),), batch_limits(given.results)),
        limited(
            waiting,
            source,
            (figures.gauge(ENGINE_WAITING, BY_INSTANCE),),
            promise.thresholds(given.specs, "queue"),
        ),
        timeseries(both, (in_flight, batch)),
    )


def _tokens(source: Source) -> tuple[Panel, ...]:
    figures = source.figures
    kinds = About(
        "Tokens", "Tokens per second of requests that ended, prompt and answer.", TOKENS_A_SECOND, empty=NO_TRAFFIC
    )
    models = About(
        "Tokens by model", "Tokens per second of requests that ended, of each model.", TOKENS_A_SECOND, empty=NO_TRAFFIC
    )
    speed = About(
        "Tokens per running request",
        "Output tokens per second over requests in the batch: what one stream gets.",
        TOKENS_A_SECOND, empty=NO_TRAFFIC,
    )  # fmt: skip
    return (
        timeseries(kinds, (figures.rate(TOKENS, (*SERVICE_KEY, LABELS[TOKEN_TYPE])),)),
        timeseries(models, (figures.rate(TOKENS, SUBJECT_KEY),)),
        timeseries(speed, (source.load.speed(),)),
    )
