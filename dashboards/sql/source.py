"""The answers of the collector's tables to everything that a dashboard with some variables asks."""

from dashboards.model import Datasource
from dashboards.questions import Source
from dashboards.sql.dialect import Dialect
from dashboards.sql.figures import SqlFigures
from dashboards.sql.frame import SqlFrame
from dashboards.sql.health import SqlHealth
from dashboards.sql.incidents import SqlIncidents
from dashboards.sql.latencies import SqlLatencies
from dashboards.sql.load import SqlLoad
from dashboards.sql.objectives import SqlObjectives
from dashboards.sql.selection import Selection
from slo.objective import Spec


def sql_source(datasource: Datasource, specs: tuple[Spec, ...], variables: tuple[str, ...]) -> Source:
    """Figures from the database of a collector."""
    of = Dialect(datasource), Selection(variables)
    return Source(
        datasource,
        SqlFrame(*of),
        SqlFigures(*of),
        SqlObjectives(*of, specs),
        SqlLatencies(*of),
        SqlLoad(*of),
        SqlIncidents(*of),
        SqlHealth(*of),
    )
