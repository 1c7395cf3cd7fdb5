"""Every dashboard there is, over any datasource."""

from collections.abc import Mapping

from dashboards.boards import capacity, gpu, incidents, kv_cache, latency, slo_overview, telemetry_health
from dashboards.boards.plan import Given, Plan, drawn
from dashboards.errors import LibraryMissingError
from dashboards.model import PROMETHEUS, Datasource, JsonObject
from dashboards.prometheus.source import prometheus_source
from dashboards.questions import Source

PLANS: tuple[Plan, ...] = (
    slo_overview.PLAN,
    latency.PLAN,
    kv_cache.PLAN,
    capacity.PLAN,
    gpu.PLAN,
    incidents.PLAN,
    telemetry_health.PLAN,
)


def catalogue(given: Given, datasource: Datasource, *, min_step_s: int) -> Mapping[str, JsonObject]:
    """Every dashboard over a datasource, by the name of its file. Raises `LibraryMissingError`."""
    suffix = "" if datasource is PROMETHEUS else f"-{datasource.name}"
    return {
        f"{plan.name}{suffix}.json": drawn(plan, source_of(plan, given, datasource), given, min_step_s=min_step_s)
        for plan in PLANS
    }


def source_of(plan: Plan, given: Given, datasource: Datasource) -> Source:
    """Where the figures of a dashboard come from. Raises `LibraryMissingError`."""
    if datasource is PROMETHEUS:
        return prometheus_source(given.specs, plan.variables)
    try:
        from dashboards.sql.source import sql_source
    except ModuleNotFoundError as error:
        raise LibraryMissingError(
            f"--datasource {datasource.name} needs {error.name}: pip install 'firsttoken[collector]'"
        ) from None
    return sql_source(datasource, given.specs, plan.variables)
