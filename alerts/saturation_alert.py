"""Tickets on what makes a service slow before its budget says so: KV pressure, a growing queue, drift (DESIGN 4.6).

Each speaks of one instance, for causes have a place; what a synthetic load does to it is left out.
"""

from collections.abc import Iterator
from decimal import Decimal

from alerts.annotations import Links, Said
from alerts.group import Alert
from alerts.synthetic_load import less_synthetic
from alerts.trouble_alert import trouble_alert
from slo import promql
from slo.objective import Spec
from slo.promql import INSTANCE_KEY, INSTANCE_LABEL, SUBJECT_KEY, by, of_service, on
from slo.quantity import duration_text
from slo.signals import (
    DRIFT_KIND,
    DRIFT_OF_MIX,
    ENGINE_PREEMPTIONS,
    ENGINE_WAITING,
    KV_OCCUPANCY,
    LABELS,
    LATENCY_DRIFT,
    MODEL_LABEL,
    OLDEST_AGE,
    REQUESTS,
    SERVICE_LABEL,
    SIGNAL,
    SOURCE,
    TTFT_PREDICTED,
)
from slo.trouble import (
    DRIFT,
    KV_FULL,
    KV_PREEMPTIONS,
    KV_PRESSURE,
    KV_WINDOW_S,
    QUEUE_GROWING,
    QUEUE_WAITING,
    QUEUE_WINDOW_S,
    TROUBLES,
)

DRIFT_KEY = (*SUBJECT_KEY, LABELS[SIGNAL], LABELS[SOURCE], LABELS[DRIFT_KIND])


def saturation_alerts(spec: Spec, links: Links) -> Iterator[Alert]:
    """Those that the objectives of a service give a measure for."""
    yield kv_alert(spec, links)
    thresholds = [o.threshold for o in spec.objectives if o.signal == "ttft" and o.threshold is not None]
    if thresholds:
        yield queue_alert(spec, min(thresholds), links)
    yield drift_alert(spec, links)


def kv_alert(spec: Spec, links: Links) -> Alert:
    """The cache is full and sequences are thrown out of it; of several ranks the fullest counts."""
    window = duration_text(KV_WINDOW_S)
    full = f"quantile_over_time(0.95, {KV_OCCUPANCY.prometheus}{of_service(spec)}[{window}])"
    thrown_out = f"increase({ENGINE_PREEMPTIONS.prometheus}{of_service(spec)}[{window}])"
    expr = (
        f"max {by(INSTANCE_KEY)} ({full}) > {promql.number(KV_FULL)}\n"
        f"and {on(INSTANCE_KEY)} round(sum {by(INSTANCE_KEY)} ({thrown_out})) >= {KV_PREEMPTIONS}\n"
        f"{less_synthetic(spec, KV_WINDOW_S)}"
    )
    return trouble_alert(
        spec,
        TROUBLES[KV_PRESSURE],
        expr,
        Said(
            f"An engine of {spec.service} is short of KV cache and throws sequences out.",
            f"{_place()}: the KV cache was {{{{ $value | humanizePercentage }}}} full at its 95th percentile of the "
            f"last {window}, and at least {KV_PREEMPTIONS} sequences were preempted: each is computed anew.",
        ),
        links,
    )


def queue_alert(spec: Spec, threshold_s: Decimal, links: Links) -> Alert:
    """The queue grows, and who joins it now will wait past the TTFT threshold, or the oldest in it has already.

    The wait is the queue over the rate at which requests end (Little); where none ends it is without end; or what the
    sidecar predicts of a first token, by what waits and how fast that drains. The oldest speaks for itself where an
    engine serves out of turn, and where nobody counts what ends.
    """
    window = duration_text(QUEUE_WINDOW_S)
    series = ENGINE_WAITING.prometheus + of_service(spec)
    waiting, grows = f"sum {by(INSTANCE_KEY)} ({series})", f"sum {by(INSTANCE_KEY)} (deriv({series}[{window}]))"
    ended = f"sum {by(INSTANCE_KEY)} (rate({REQUESTS.prometheus}{of_service(spec)}[{window}]))"
    oldest, predicted = (
        f"max {by(INSTANCE_KEY)} ({metric.prometheus}{of_service(spec)})" for metric in (OLDEST_AGE, TTFT_PREDICTED)
    )
    limit = promql.number(threshold_s)
    expr = (
        f"(\n  {waiting} / {ended} > {limit}\n  or {oldest} > {limit}\n  or {predicted} > {limit}\n)\n"
        f"and {on(INSTANCE_KEY)} {waiting} >= {QUEUE_WAITING}\n"
        f"and {on(INSTANCE_KEY)} {grows} > 0\n"
        f"{less_synthetic(spec, QUEUE_WINDOW_S)}"
    )
    return trouble_alert(
        spec,
        TROUBLES[QUEUE_GROWING],
        expr,
        Said(
            f"The queue of an engine of {spec.service} grows, and requests wait longer than a first token may take.",
            f"{_place()}: a first token takes {{{{ $value | humanizeDuration }}}} for whoever joins the queue now, at "
            "the rate at which requests end or by the sidecar's prediction, or has not come for as long to the oldest "
            f"in it; the queue still grows, and the TTFT objective allows {duration_text(threshold_s)}.",
        ),
        links,
    )


def drift_alert(spec: Spec, links: Links) -> Alert:
    """Latency has shifted against its own past, as the collector finds it, and not for another mix of requests."""
    series = LATENCY_DRIFT.prometheus + of_service(spec, **{f"{LABELS[DRIFT_KIND]}!=": DRIFT_OF_MIX})
    signal = "{{ $labels." + LABELS[SIGNAL] + " }} ({{ $labels." + LABELS[SOURCE] + " }})"
    return trouble_alert(
        spec,
        TROUBLES[DRIFT],
        f"max {by(DRIFT_KEY)} ({series}) > 0",
        Said(
            f"Latency of {spec.service} has shifted against its own past.",
            "{{ $labels." + SERVICE_LABEL + " }}, model {{ $labels." + MODEL_LABEL + " }}: " + signal + " is "
            "{{ $value | humanizePercentage }} longer than it was at this time of day; cause: "
            "{{ $labels." + LABELS[DRIFT_KIND] + " }}.",
        ),
        links,
    )


def _place() -> str:
    return "{{ $labels." + SERVICE_LABEL + " }}, instance {{ $labels." + INSTANCE_LABEL + " }}"
