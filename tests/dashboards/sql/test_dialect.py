"""What the two databases write differently."""

from collector import schema
from dashboards.model import POSTGRES, SQLITE
from dashboards.sql.dialect import Dialect


def test_a_time_range_is_the_plugins_own_or_both_ends() -> None:
    assert Dialect(POSTGRES).in_range("at_s") == "$__unixEpochFilter(at_s)"
    assert Dialect(SQLITE).in_range("at_s") == "at_s BETWEEN $__from / 1000 AND $__to / 1000"
    for datasource in (POSTGRES, SQLITE):
        earlier = Dialect(datasource).in_range("at_s", earlier_s=60)
        assert earlier == "at_s BETWEEN $__from / 1000 - 60 AND $__to / 1000 - 60"
        assert Dialect(datasource).latest(schema.budget).startswith("(SELECT MAX(at_s) FROM budget WHERE ")
