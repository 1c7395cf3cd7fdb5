"""The answers of Prometheus to everything that a dashboard with some variables asks."""

from collections.abc import Sequence

from dashboards import promise
from dashboards.model import PROMETHEUS
from dashboards.prometheus.dcgm import PrometheusDcgm
from dashboards.prometheus.figures import PrometheusFigures
from dashboards.prometheus.frame import PrometheusFrame
from dashboards.prometheus.health import PrometheusHealth
from dashboards.prometheus.incidents import PrometheusIncidents
from dashboards.prometheus.latencies import PrometheusLatencies
from dashboards.prometheus.load import PrometheusLoad
from dashboards.prometheus.objectives import PrometheusObjectives
from dashboards.prometheus.selection import Selection
from dashboards.questions import Source
from slo.objective import Spec


def prometheus_source(specs: Sequence[Spec], variables: tuple[str, ...]) -> Source:
    """Figures from a Prometheus that scrapes sidecars and evaluates the generated rules; some from collectors too."""
    selection = Selection(variables)
    return Source(
        PROMETHEUS,
        PrometheusFrame(selection),
        PrometheusFigures(selection),
        PrometheusObjectives(selection, promise.periods_s(specs), promise.of_time(specs)),
        PrometheusLatencies(selection),
        PrometheusLoad(selection),
        PrometheusIncidents(selection),
        PrometheusHealth(selection),
        PrometheusDcgm(selection),
    )
