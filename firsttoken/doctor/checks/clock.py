"""Clocks: how far those of servers, collectors, Prometheus and Alertmanager are from this machine's.

Events are placed in time by the sidecar's clock and judged by the collector's: a difference moves them to other
windows, and beyond five minutes they are refused.
"""

from collections.abc import Iterator

from firsttoken.doctor.facts import Facts
from firsttoken.doctor.finding import Check, Finding
from slo.quantity import about_text

TOLERATED_S = 5.0
"""A Date is cut to a second, and an answer takes its time."""
GRAVE_S = 60.0


def _skewed(facts: Facts) -> Iterator[Finding]:
    for where, offset_s in _offsets(facts):
        if offset_s is not None and abs(offset_s) > TOLERATED_S:
            way = "ahead of" if offset_s > 0 else "behind"
            what = f"its clock is {about_text(abs(offset_s))} {way} this machine's"
            fix = "set both by NTP (timedatectl, chronyc tracking); the wrong one may be this machine's"
            yield Finding("clock-skew", "error" if abs(offset_s) > GRAVE_S else "warning", what, where, fix)


def _offsets(facts: Facts) -> Iterator[tuple[str, float | None]]:
    yield from ((f"server {one.url}", one.offset_s) for one in facts.servers)
    yield from ((f"prometheus {one.url}", one.offset_s) for one in facts.prometheuses)
    yield from ((f"alertmanager {one.url}", one.offset_s) for one in facts.alertmanagers)
    for one in facts.collectors:
        at_s = one.status.at_s if one.status is not None else None
        future_s = None if at_s is None else at_s - facts.now_s
        known_s = one.offset_s if one.offset_s is not None else future_s if (future_s or 0) > 0 else None
        yield f"collector {one.url}", known_s


CHECKS = (Check(("clock-skew",), "clocks that differ", _skewed),)
