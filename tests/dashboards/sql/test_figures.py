"""Any gauge or counter that the tables keep."""

from dashboards.model import POSTGRES
from dashboards.sql.dialect import Dialect
from dashboards.sql.figures import SqlFigures
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY
from slo.signals import GPU_POWER, KV_OCCUPANCY, REQUESTS, TELEMETRY_FAULTS, TICKS

FIGURES = SqlFigures(Dialect(POSTGRES), Selection(SERVICE_KEY))


def test_the_tables_keep_what_is_sent_and_not_what_pages_say() -> None:
    assert [FIGURES.keeps(metric) for metric in (REQUESTS, GPU_POWER, TELEMETRY_FAULTS, TICKS)] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_query_names_its_table_and_its_metric() -> None:
    assert FIGURES.gauge(KV_OCCUPANCY).reads == ("gauge kv_cache_occupancy",)
    assert FIGURES.rate(REQUESTS).reads == ("counter requests",)
