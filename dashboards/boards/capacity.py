"""Capacity: how much is asked of each service against what it is certified for, and the signs that it is full.

The certified capacity is no signal on the wire: it stands in the files that `firsttoken capacity` writes, and is drawn
where the dashboards were built with them.
"""

from decimal import Decimal

from dashboards import promise
from dashboards.boards.parts import ENGINE_SILENT, GOOD_STEPS, HALF, OUTCOME_COLORS, limited
from dashboards.boards.plan import OF_MODELS, Given, Plan
from dashboards.capacity_result import batch_limits, certified, load_limits
from dashboards.grafana.grid import Panel, Section
from dashboards.grafana.panels import NO_TRAFFIC, stat, text, timeseries
from dashboards.model import SHARE, TOKENS_A_SECOND, About
from dashboards.questions import Source
from slo.promql import SUBJECT_KEY
from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, KV_OCCUPANCY, LABELS, OUTCOME, REQUESTS, TOKENS

HOW_TO_CERTIFY = """\
No capacity is known, so no limit is drawn and no headroom is reckoned. `firsttoken capacity certify` finds the load
that keeps the contract; build the dashboards with `--capacity SERVICE=FILE` for the file that it writes."""


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    """Everything on the page."""
    return (
        Section("Load and headroom", _load(source, given)),
        Section("Concurrency", _concurrency(source, given)),
        Section("Signs of a full service", _signs(source, given)),
        Section("What is certified", (_known(given),), is_open=bool(given.results)),
    )


PLAN = Plan(
    "capacity",
    "Capacity",
    "Load against certified capacity, headroom, concurrency, and the signs that a service is full.",
    OF_MODELS,
    sections,
)


def _load(source: Source, given: Given) -> tuple[Panel, ...]:
    load = About(
        "Load",
        "Requests per second of each service, synthetic ones left out, against the load that is certified or refuted.",
        "reqps", width=HALF, empty=NO_TRAFFIC,
    )  # fmt: skip
    models = About(
        "Load by model", "Requests per second of each model, synthetic ones left out.",
        "reqps", width=HALF, empty=NO_TRAFFIC,
    )  # fmt: skip
    peak = About(
        "Peak of the time shown", "The most requests per second of each service over the time range.",
        "reqps", width=HALF, height=6, empty=NO_TRAFFIC,
    )  # fmt: skip
    return (
        limited(load, source, (source.load.offered(),), load_limits(given.results)),
        timeseries(models, (source.figures.rate(REQUESTS, SUBJECT_KEY),)),
        stat(peak, source.load.peak(), steps=GOOD_STEPS),
        *_headroom(source, given),
    )


def _headroom(source: Source, given: Given) -> tuple[Panel, ...]:
    known = certified(given.results)
    about = About(
        "Headroom",
        "Share of the certified load that is free: 1 - load / certified. Below 0 the contract is not covered.",
        SHARE, width=HALF, height=6, empty=NO_TRAFFIC, least=None, most=Decimal(1),
    )  # fmt: skip
    return (timeseries(about, (source.load.headroom(known),)),) if known else ()


def _concurrency(source: Source, given: Given) -> tuple[Panel, ...]:
    little = About(
        "Requests in flight, and by Little's law",
        "Counted at the sidecars, beside arrivals times mean duration. Where they part, the service is not in balance: "
        "it fills, or requests hang.",
        "short", width=HALF, empty=NO_TRAFFIC,
    )  # fmt: skip
    batch = About(
        "Batch",
        "Requests that the engines of a service run, against the batch size that `firsttoken capacity batch` found.",
        "short", width=HALF, empty=ENGINE_SILENT,
    )  # fmt: skip
    running = source.figures.gauge(ENGINE_RUNNING)
    return (
        timeseries(little, source.load.concurrency()),
        limited(batch, source, (running,), batch_limits(given.results)),
    )


def _signs(source: Source, given: Given) -> tuple[Panel, ...]:
    figures = source.figures
    refused = About(
        "Share refused", "Share of requests that were rejected, over a quota, or timed out.",
        SHARE, empty=NO_TRAFFIC, most=Decimal(1),
    )  # fmt: skip
    waiting = About("Waiting", "Requests that engines hold in their queues.", "short", empty=ENGINE_SILENT)
    full = About(
        "Fullest KV cache", "Share of the KV cache pinned by running requests, of the fullest instance and rank.",
        SHARE, empty=ENGINE_SILENT, most=Decimal(1),
    )  # fmt: skip
    outcomes = About("Outcomes", "Requests per second by how they ended.", "reqps", width=HALF, empty=NO_TRAFFIC)
    tokens = About(
        "Throughput", "Tokens per second, prompts and answers.", TOKENS_A_SECOND, width=HALF, empty=NO_TRAFFIC
    )
    fullest = figures.gauge(KV_OCCUPANCY, fold="max")
    return (
        timeseries(refused, (source.load.refused(),)),
        limited(waiting, source, (figures.gauge(ENGINE_WAITING),), promise.thresholds(given.specs, "queue")),
        limited(full, source, (fullest,), promise.thresholds(given.specs, "kv_occupancy")),
        timeseries(outcomes, (figures.rate(REQUESTS, (LABELS[OUTCOME],)),), is_stacked=True, colors=OUTCOME_COLORS),
        timeseries(tokens, (figures.rate(TOKENS),)),
    )


def _known(given: Given) -> Panel:
    if not given.results:
        return text("Certified capacity", HOW_TO_CERTIFY, height=4)
    lines = ["| Service | Known |", "|---|---|"]
    limits = (*load_limits(given.results), *batch_limits(given.results))
    lines += [f"| {limit.service} | {limit.text} |" for limit in limits]
    return text("Certified capacity", "\n".join(lines), height=3 + len(limits))
