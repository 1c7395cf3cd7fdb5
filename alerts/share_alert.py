"""Alerts on a share of a service's requests: empty replies, client errors, abandonment, broken streams (DESIGN 4.6).

No objective judges these, and yet a service of which nine requests in ten come to nothing is down, whatever its
latencies say. The share is reached over both windows, with enough requests in enough different minutes: the counter is
compared with itself a minute earlier, which asks nothing of how often Prometheus scrapes. Traffic is the whole of it,
quota refusals too, but for the synthetic class, which is nobody's.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from alerts.annotations import Links, Said
from alerts.group import Alert
from alerts.trouble_alert import trouble_alert
from slo import promql
from slo.objective import Notify, Spec
from slo.promql import SERVICE_KEY, by, of_service, on
from slo.quantity import duration_text, percent_text
from slo.signals import CLASS, LABELS, OUTCOME, REQUESTS, SERVICE_LABEL, SYNTHETIC_CLASS
from slo.trouble import (
    PAGE_FROM,
    SHARE_LONG_S,
    SHARE_MIN_EVENTS,
    SHARE_MIN_MINUTES,
    SHARE_SHORT_S,
    SHARES,
    TROUBLES,
    Share,
)

NOT_SYNTHETIC = {f"{LABELS[CLASS]}!=": SYNTHETIC_CLASS}


def share_alerts(spec: Spec, links: Links) -> Iterator[Alert]:
    """Each of them as a ticket, and where it may be one as a page."""
    for share in SHARES:
        yield _alert(spec, share, links, at_least=share.ticket_from, notify="ticket")
        if share.may_page:
            yield _alert(spec, share, links, at_least=PAGE_FROM, notify="page")


def _alert(spec: Spec, share: Share, links: Links, *, at_least: Decimal, notify: Notify) -> Alert:
    more = {} if share.outcome is None else {LABELS[OUTCOME]: share.outcome} | NOT_SYNTHETIC
    counted = share.metric.prometheus + of_service(spec, **more)
    needed = promql.number(at_least)
    grew = f"count {by(SERVICE_KEY)} ({counted} > {counted} offset 1m)"
    minutes = f"count_over_time(({grew})[{duration_text(SHARE_LONG_S)}:1m])"
    expr = "\n".join(
        (
            f"{_share(spec, counted, SHARE_LONG_S)} >= {needed}",
            f"and {on(SERVICE_KEY)} {_share(spec, counted, SHARE_SHORT_S)} >= {needed}",
            f"and {on(SERVICE_KEY)} {_increase(counted, SHARE_LONG_S)} >= {SHARE_MIN_EVENTS}",
            f"and {on(SERVICE_KEY)} {minutes} >= {SHARE_MIN_MINUTES}",
        )
    )
    return trouble_alert(
        spec,
        replace(TROUBLES[share.name], notify=notify),
        expr,
        Said(
            f"{percent_text(at_least)} or more of the requests of {spec.service} {share.words}.",
            "{{ $labels." + SERVICE_LABEL + " }}: {{ $value | humanizePercentage }} of the requests of the last "
            f"{duration_text(SHARE_LONG_S)} {share.words}; told from {percent_text(at_least)} on.",
        ),
        links,
    )


def _share(spec: Spec, counted: str, window_s: int) -> str:
    everything = REQUESTS.prometheus + of_service(spec, **NOT_SYNTHETIC)
    return f"{_increase(counted, window_s)} / ({_increase(everything, window_s)} > 0)"


def _increase(series: str, window_s: int) -> str:
    return f"sum {by(SERVICE_KEY)} (increase({series}[{duration_text(window_s)}]))"
