"""Whether the figures can be relied on, as expressions; `test_live` asks them."""

from dashboards.prometheus.health import PrometheusHealth
from dashboards.prometheus.selection import Selection
from slo.promql import INSTANCE_LABEL, SERVICE_KEY

HEALTH = PrometheusHealth(Selection((*SERVICE_KEY, INSTANCE_LABEL)))


def test_an_instance_is_remembered_after_it_fell_silent() -> None:
    silent, since = HEALTH.instances()
    assert "firsttoken:last_heard:timestamp{" in silent.text
    assert (silent.ref, since.ref, silent.shape) == ("silent", "since", "table")


def test_only_our_own_targets_and_rules_are_looked_at() -> None:
    (scrapes,) = HEALTH.scrapes()
    assert "up and on (job)" in scrapes.text
    assert all('rule_group=~".*;firsttoken:.*"' in query.text for query in HEALTH.rule_failures())


def test_a_telemetry_that_is_heard_every_minute_is_known_in_full() -> None:
    assert "[60m:1m]) / 60, 1)" in HEALTH.heard().text
