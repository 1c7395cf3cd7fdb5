"""How long requests took, by a real Prometheus. Every value of the page lies between 0.2 and 0.3 s."""

from decimal import Decimal

from dashboards.prometheus.latencies import PrometheusLatencies
from dashboards.prometheus.selection import Selection
from slo.promql import SERVICE_KEY
from slo.signals import TTFT

LATENCIES = PrometheusLatencies(Selection(SERVICE_KEY))
P95 = Decimal("0.95")


def test_the_past_is_asked_at_its_own_time_and_drawn_thin() -> None:
    now, day, week = LATENCIES.against_past(TTFT, P95)
    assert ("offset" in now.text, "offset 1d" in day.text, "offset 7d" in week.text) == (False, True, True)
    assert (now.look, day.look, week.look) == ("plain", "thin", "thin")


def test_a_quantile_adds_buckets_before_it_is_taken() -> None:
    (asked,) = LATENCIES.percentiles(TTFT, [P95])
    assert asked.text == (
        "histogram_quantile(0.95, sum by (le, environment, service_name, model_name) "
        "(rate(gen_ai_server_time_to_first_token_seconds_bucket"
        '{environment=~"$environment",service_name=~"$service_name",source!="engine"}[$__rate_interval])))'
    )
