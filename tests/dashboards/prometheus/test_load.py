"""How much is asked of a service, as expressions; `test_live` asks them."""

from decimal import Decimal

from dashboards.prometheus.load import PrometheusLoad
from dashboards.prometheus.selection import Selection
from dashboards.promise import Limit
from slo.promql import SERVICE_KEY

LOAD = PrometheusLoad(Selection(SERVICE_KEY))


def test_the_peak_is_over_the_range_at_the_steps_of_the_chart() -> None:
    peak = LOAD.peak()
    assert peak.text == f"max_over_time(({LOAD.offered().text})[$__range:$__interval])"
    assert peak.shape == "latest"


def test_each_service_has_its_own_capacity_and_one_without_has_no_headroom() -> None:
    text = LOAD.headroom((Limit("chat", "", Decimal("12.50"), ""), Limit("batch", "", Decimal(3), ""))).text
    assert 'label_replace(vector(12.5), "service_name", "chat", "", "")' in text
    assert 'label_replace(vector(3), "service_name", "batch", "", "")' in text
    assert "/ on (service_name) group_left ()" in text


def test_the_engines_own_durations_are_not_counted_in_flight() -> None:
    _, little = LOAD.concurrency()
    assert 'source!="engine"' in little.text
    assert "_sum{" in little.text
