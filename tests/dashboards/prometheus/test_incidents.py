"""What went wrong, as expressions; `test_live` asks them."""

from dashboards.prometheus.incidents import PrometheusIncidents
from dashboards.prometheus.selection import Selection
from slo.promql import SERVICE_KEY

INCIDENTS = PrometheusIncidents(Selection(SERVICE_KEY))


def test_the_past_is_the_range_shown_and_the_present_is_now() -> None:
    assert INCIDENTS.past().text.count("[$__range]") == 2
    assert "$__range" not in INCIDENTS.alerts().text
    assert {INCIDENTS.past().shape, INCIDENTS.alerts().shape} == {"table"}


def test_no_alert_and_no_shift_are_0_rather_than_nothing() -> None:
    assert 'or label_replace(vector(0), "notify", "page", "", "")' in INCIDENTS.firing().text
    assert "or on (environment, service_name) 0 * group by" in INCIDENTS.drift().text
