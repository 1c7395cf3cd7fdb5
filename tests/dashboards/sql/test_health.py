"""Whether the figures can be relied on, as queries; `test_database` asks them."""

from dashboards.model import SQLITE
from dashboards.sql.dialect import Dialect
from dashboards.sql.health import SqlHealth
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY

HEALTH = SqlHealth(Dialect(SQLITE), Selection(SERVICE_KEY))


def test_the_tables_know_nothing_of_scrapes_rules_and_commits() -> None:
    assert HEALTH.scrapes() == HEALTH.rule_failures() == HEALTH.commit_time() == ()


def test_what_they_know_is_read_from_the_table_that_keeps_it() -> None:
    reads = (HEALTH.heard(), *HEALTH.instances(), HEALTH.evaluation_age(), *HEALTH.errors_of_quantiles())
    assert [query.reads for query in reads] == [("known",), ("instance",), ("percentile",), ("percentile",)]
    assert [query.reads for query in HEALTH.intake()] == [("batch",)]
