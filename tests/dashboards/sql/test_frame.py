"""Variables, marks and limits, as queries; `test_database` asks them."""

from decimal import Decimal

from dashboards.model import SQLITE
from dashboards.promise import Limit
from dashboards.sql.dialect import Dialect
from dashboards.sql.frame import SqlFrame
from dashboards.sql.selection import Selection
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY

FRAME = SqlFrame(Dialect(SQLITE), Selection((*SERVICE_KEY, OBJECTIVE_LABEL)))


def test_a_dashboard_has_the_variables_that_it_names_in_their_order() -> None:
    assert [variable.name for variable in FRAME.variables()] == ["environment", "service_name", "objective"]
    assert {variable.every for variable in FRAME.variables()} == {"'*'"}


def test_a_change_of_the_contract_is_no_mark_for_the_tables_do_not_know_it() -> None:
    marks = FRAME.marks("alerts", "drift", "starts", "contracts")
    assert [one.name for one in marks] == ["Firing alerts", "Drift", "Starts"]


def test_a_limit_stands_at_both_ends_of_the_range() -> None:
    text = FRAME.limits((Limit("chat", "", Decimal("12.5"), "certified 12.5/s"),)).text
    assert "SELECT $__from / 1000 AS time UNION ALL SELECT $__to / 1000" in text
    assert "'certified 12.5/s' AS metric, 12.5 AS value" in text
