"""All that makes the distributed store: its tables, and the questions that it keeps as views with parameters."""

from collections.abc import Iterator

from collector.clickhouse import tables
from collector.clickhouse.burn_views import TRACKED, budget_view, burn_rate_view, tracked_view
from collector.clickhouse.percentile_view import percentile_view
from collector.clickhouse.questions import view

VIEWS = {
    "percentile": (percentile_view, "Latency percentiles of a window: at_s, window_s, tick_s."),
    TRACKED: (tracked_view, "Events of every track over a window; 0 is each objective's own period."),
    "burn_rate": (burn_rate_view, "Burn rate of each objective over a window: at_s, window_s, tick_s."),
    "budget": (budget_view, "Error budget of each objective over its own period: at_s, tick_s."),
}


def statements(cluster: str | None = None) -> Iterator[str]:
    """The statements in their order, none of which changes what is there."""
    yield from tables.statements(cluster)
    for name, (question, comment) in VIEWS.items():
        yield view(name, question(), comment, cluster=tables.on_cluster(cluster))


def script(cluster: str | None = None) -> str:
    """The statements as a script."""
    return "\n\n".join(f"{one};" for one in statements(cluster))
