"""The ticket for a service that runs above the load it was certified for (DESIGN 4.6): before its objectives feel it.

`firsttoken capacity certify` finds what a service holds, and keeps it in the database when it is told to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collector.judging.lasting import lasting, moments_s, state
from collector.judging.trouble_alert import Said, spec_of, subject, trouble_alert
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.histogram import Counts, Floats
from collector.windowing.fleet import Service
from collector.windowing.recent import Recent
from collector.windowing.windows import Windows
from slo.promised import Promised, changed
from slo.quantity import duration_text
from slo.signals import REQUESTS
from slo.trouble import ABOVE_CERTIFIED, CERTIFIED_WINDOW_S, NO_LOAD, TROUBLES


@dataclass(frozen=True, slots=True)
class Certified:
    """Requests a second that a service is certified for, and the promises that it was certified at, where the
    certificate says."""

    rps: float
    promised: Promised | None = None


CertifiedRps = Mapping[Service, Certified]
"""What services are certified for; one certified in no environment is so in any."""


def wanted(
    windows: Windows, *, certified_rps: CertifiedRps, alerts: Mapping[AlertKey, Alert], now_s: int
) -> Iterator[Wanted]:
    """The alerts of this kind that should pend or fire now."""
    if not certified_rps:
        return
    trouble, tick_s = TROUBLES[ABOVE_CERTIFIED], windows.plan.tick_s
    at_s = moments_s(trouble, now_s=now_s, tick_s=tick_s)
    for service, _ in windows.recent.moving(REQUESTS.sql):
        spec, most = spec_of(windows.plan, service), _most(certified_rps, service)
        if spec is None or most is None:
            continue
        rates = _rates(windows.recent, service, at_s)
        if rates is None:
            continue
        key = AlertKey(ABOVE_CERTIFIED, *service)
        stands = state(key, (lasting(trouble, rates > most.rps, tick_s=tick_s),), alerts=alerts)
        if stands is not None:
            said = _said(service, float(rates[-1]), most.rps, changed(most.promised, spec).text)
            yield trouble_alert(spec, key, trouble, said, state=stands)


def _most(certified_rps: CertifiedRps, service: Service) -> Certified | None:
    _, name = service
    return certified_rps.get(service, certified_rps.get(("", name)))


def _rates(recent: Recent, service: Service, at_s: Counts) -> Floats | None:
    """Requests a second that something was computed for, in the window that ends at each moment; None where more moves
    than is kept."""
    trails = recent.trails(REQUESTS.sql, (service, ""))
    if () not in trails:
        return None
    refused = (trails[part] for part in ((outcome,) for outcome in NO_LOAD) if part in trails)
    everything = trails[()].sums(CERTIFIED_WINDOW_S, at_s=at_s)
    load: Floats = everything - sum(trail.sums(CERTIFIED_WINDOW_S, at_s=at_s) for trail in refused)
    return load / CERTIFIED_WINDOW_S


def _said(service: Service, rate_rps: float, most_rps: float, since: str) -> Said:
    """`since` is what has changed of the promises since it was certified."""
    window = duration_text(CERTIFIED_WINDOW_S)
    rates = f"{rate_rps:.3g} requests a second over the last {window}, certified are {most_rps:.3g}"
    other = f", for other promises than today's ({since}): certify it again" if since else ""
    return Said(
        f"{service[1]} runs above the load that it is certified for.",
        f"{subject(service)}: {rates}{other}.",
    )
