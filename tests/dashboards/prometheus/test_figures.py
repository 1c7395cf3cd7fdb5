"""Any gauge or counter, in PromQL and by a real Prometheus."""

from dashboards.prometheus.figures import PrometheusFigures, real
from dashboards.prometheus.selection import Selection
from slo.promql import INSTANCE_LABEL, SERVICE_KEY
from slo.signals import HEARTBEAT, KV_OCCUPANCY, REQUESTS, TELEMETRY_FAULTS, TICKS, TOKENS

FIGURES = PrometheusFigures(Selection((*SERVICE_KEY, INSTANCE_LABEL)))


def test_lines_are_named_by_their_labels_and_what_comes_after() -> None:
    query = FIGURES.gauge(KV_OCCUPANCY, (*SERVICE_KEY, INSTANCE_LABEL), fold="max", name="full", ref="B")
    assert (query.legend, query.ref) == ("{{environment}} {{service_name}} {{instance}} full", "B")
    assert query.text.startswith("max by (environment, service_name, instance) (firsttoken_kv_cache_occupancy_ratio{")
    assert query.reads == ("firsttoken_kv_cache_occupancy_ratio",)


def test_synthetic_requests_are_left_out_of_requests_alone() -> None:
    assert real(REQUESTS) == {"class!=": "synthetic"}
    assert real(TOKENS) == {}


def test_a_counter_born_late_is_0_while_its_teller_lives() -> None:
    faults = FIGURES.rate(TELEMETRY_FAULTS, (*SERVICE_KEY, "reason"), alive=HEARTBEAT)
    assert "\nor on (environment, service_name) 0 * group by (environment, service_name)" in faults.text
    assert faults.reads == (TELEMETRY_FAULTS.prometheus, HEARTBEAT.prometheus)
    assert "{" not in FIGURES.rate(TICKS, ("job",)).text


def test_prometheus_keeps_everything() -> None:
    assert FIGURES.keeps(TELEMETRY_FAULTS)
