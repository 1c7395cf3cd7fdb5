"""What went wrong, as queries; `test_database` asks them."""

from dashboards.model import POSTGRES
from dashboards.sql.dialect import Dialect
from dashboards.sql.incidents import SqlIncidents
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY

INCIDENTS = SqlIncidents(Dialect(POSTGRES), Selection(SERVICE_KEY))


def test_a_table_names_its_columns_as_prometheus_names_its_labels() -> None:
    for query in (INCIDENTS.alerts(), INCIDENTS.past()):
        assert "service AS service_name, model AS model_name, objective, tier AS burn_tier" in query.text
        assert query.shape == "table"
    assert "instance AS instance, first_s * 1000 AS since" in INCIDENTS.starts().text


def test_what_is_read_is_named() -> None:
    assert INCIDENTS.firing().reads == ("alert_event", "budget")
    assert INCIDENTS.drift().reads == ("drift", "percentile")
    assert INCIDENTS.contracts().reads == ("slo_count",)
