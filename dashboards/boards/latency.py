"""Latency: how long requests took, against what is promised, by model, instance and length of prompt, and how much of
it the engine itself admits to."""

from decimal import Decimal

from dashboards.boards import parts
from dashboards.boards.parts import LATENCIES, chart
from dashboards.boards.plan import OF_OBJECTIVES, Given, Plan
from dashboards.grafana.grid import Panel, Section
from dashboards.grafana.panels import NO_TRAFFIC, heatmap, timeseries
from dashboards.model import About
from dashboards.questions import Source
from slo.promql import INSTANCE_LABEL, SERVICE_KEY
from slo.signals import LABELS, OVERDUE, SIGNAL, TTFT_BY_PROMPT, Metric

P95 = Decimal("0.95")


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    """Everything on the page."""
    return (
        Section("Against the promise, by model", tuple(parts.latency(source, given, *of) for of in LATENCIES)),
        Section("Distribution", tuple(_buckets(source, title, metric) for _, title, metric in LATENCIES)),
        Section(
            "At the sidecar and by the engine", tuple(_both(source, title, metric) for _, title, metric in LATENCIES)
        ),
        Section("By instance", tuple(panel for of in LATENCIES for panel in _by_instance(source, of[1], of[2]))),
        Section("What changes it, and what it hides", (_by_prompt(source), *_hidden(source))),
    )


PLAN = Plan(
    "latency",
    "Latency",
    "Time to first token, time per output token, request duration: percentiles, distribution, where they differ.",
    (*OF_OBJECTIVES, INSTANCE_LABEL),
    sections,
    ("alerts", "drift", "starts"),
    shows_told=True,
)


def _buckets(source: Source, title: str, metric: Metric) -> Panel:
    about = About(
        f"Distribution: {title.lower()}",
        "How many requests took how long, as sidecars measured; dots are requests with a trace.",
        "short", empty=NO_TRAFFIC,
    )  # fmt: skip
    return heatmap(about, source.latencies.buckets(metric), axis_unit="s")


def _both(source: Source, title: str, metric: Metric) -> Panel:
    about = About(
        f"{title}, both views",
        "p95 as the sidecar measured it, which includes every queue, beside the engine's own from its coarser buckets. "
        "What lies between is time before the engine.",
        "s", empty=NO_TRAFFIC,
    )  # fmt: skip
    return timeseries(about, source.latencies.beside_engine(metric, P95))


def _by_instance(source: Source, title: str, metric: Metric) -> tuple[Panel, ...]:
    mean = About(
        f"{title}: mean by instance",
        "Mean of the requests that have a value, of each sidecar: one that stands out is ill, or has other work.",
        "s", empty=NO_TRAFFIC,
    )  # fmt: skip
    p95 = About(f"{title}: p95 by instance", "95th percentile of each sidecar's requests.", "s", empty=NO_TRAFFIC)
    return (
        timeseries(mean, (source.latencies.mean_by_instance(metric),)),
        *chart(p95, source.latencies.percentile_by_instance(metric, P95)),
    )


def _by_prompt(source: Source) -> Panel:
    about = About(
        "Time to first token by length of prompt",
        f"{TTFT_BY_PROMPT.description} When only the whole gets slower, prompts got longer.",
        "s", empty="No server has told prompt lengths",
    )  # fmt: skip
    return timeseries(about, (source.latencies.by_prompt(P95),))


def _hidden(source: Source) -> tuple[Panel, ...]:
    overdue = About(
        "Overdue now",
        "Requests past a deadline and still without a value: percentiles cannot show them yet.",
        "short", empty=NO_TRAFFIC,
    )  # fmt: skip
    censored = About(
        "Ended without a value",
        "Requests per second that ended past a deadline without ever having a value.",
        "reqps", empty=NO_TRAFFIC,
    )  # fmt: skip
    return (
        timeseries(overdue, (source.figures.gauge(OVERDUE, (*SERVICE_KEY, LABELS[SIGNAL])),)),
        timeseries(censored, (source.latencies.censored(),)),
    )
