"""What share of an instance's requests is synthetic, and what to leave out for it (`slo.trouble`).

An engine's gauges say how full it is, not with whose requests: a run of `firsttoken capacity certify` fills cache and
queue on purpose. The sidecar counts the requests that end by class, so the share is recorded by instance; of an
instance that counts none itself (a sidecar that only scrapes an engine behind another one) the service's share stands.
A service that never had a synthetic request has no such series, and nothing is left out.
"""

from alerts.group import Recording
from slo import promql
from slo.objective import Spec
from slo.promql import INSTANCE_KEY, SERVICE_KEY, by, of_service, on
from slo.quantity import duration_text
from slo.signals import CLASS, HEARTBEAT, LABELS, REQUESTS, SERVICE_LABEL, SYNTHETIC_CLASS
from slo.trouble import SYNTHETIC_LOOK_S, SYNTHETIC_MOST


def synthetic_rule(spec: Spec) -> Recording:
    """The share of each instance that is heard."""
    counts = f"sum {by(INSTANCE_KEY)} ({REQUESTS.prometheus}{of_service(spec)})"
    uncounted = f"sum {by(INSTANCE_KEY)} ({HEARTBEAT.prometheus}{of_service(spec)}) unless {on(INSTANCE_KEY)} {counts}"
    expr = (
        f"{_share(spec, INSTANCE_KEY)}\n"
        f"or\n0 * ({uncounted})\n+ {on(SERVICE_KEY)} group_left () ({_share(spec, SERVICE_KEY)})"
    )
    return Recording(promql.SYNTHETIC_SHARE, expr, {SERVICE_LABEL: spec.service})


def less_synthetic(spec: Spec, window_s: int) -> str:
    """The end of an expression on instances: without those that a synthetic load filled in the window."""
    share = f"max_over_time({promql.SYNTHETIC_SHARE}{of_service(spec)}[{duration_text(window_s)}])"
    return f"unless {on(INSTANCE_KEY)} {share} > {promql.number(SYNTHETIC_MOST)}"


def _share(spec: Spec, key: tuple[str, ...]) -> str:
    def ended(**more: str) -> str:
        series = REQUESTS.prometheus + of_service(spec, **more)
        return f"sum {by(key)} (increase({series}[{duration_text(SYNTHETIC_LOOK_S)}]))"

    return f"{ended(**{LABELS[CLASS]: SYNTHETIC_CLASS})} / ({ended()} > 0)"
