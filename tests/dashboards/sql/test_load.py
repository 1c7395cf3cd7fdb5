"""How much is asked of a service, as queries; `test_database` asks them."""

from decimal import Decimal

from dashboards.model import SQLITE
from dashboards.promise import Limit
from dashboards.sql.dialect import Dialect
from dashboards.sql.load import SqlLoad
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY

LOAD = SqlLoad(Dialect(SQLITE), Selection(SERVICE_KEY))


def test_each_service_has_its_own_capacity_and_one_without_has_no_headroom() -> None:
    text = LOAD.headroom((Limit("chat", "", Decimal("12.50"), ""), Limit("batch", "", Decimal(3), ""))).text
    assert "SELECT 'chat' AS of_service, 12.5 AS bears UNION ALL SELECT 'batch' AS of_service, 3 AS bears" in text
    assert " JOIN " in text
    assert "LEFT JOIN" not in text


def test_the_peak_is_that_of_the_load_that_is_drawn() -> None:
    assert LOAD.offered().text in LOAD.peak().text
