"""How long requests took, by both databases."""

from decimal import Decimal

from dashboards.model import SQLITE
from dashboards.sql.dialect import Dialect
from dashboards.sql.latencies import SqlLatencies
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY
from slo.signals import TTFT

LATENCIES = SqlLatencies(Dialect(SQLITE), Selection(SERVICE_KEY))


def test_a_percentile_that_the_tables_do_not_keep_has_no_line() -> None:
    asked = LATENCIES.percentiles(TTFT, (Decimal("0.5"), Decimal("0.97")))
    assert [query.ref for query in asked] == ["p50"]
    assert LATENCIES.percentile_by_instance(TTFT, Decimal("0.95")) == ()
