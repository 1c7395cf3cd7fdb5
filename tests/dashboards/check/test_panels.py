"""What the rules of panels take a query for."""

import pytest

from dashboards.check import panels
from dashboards.model import TOKENS_A_SECOND, JsonObject


def shown(text: str, unit: str, *, key: str = "expr") -> JsonObject:
    defaults: JsonObject = {"unit": unit}
    targets: list[JsonObject] = [{"refId": "A", key: text}]
    one: JsonObject = {"type": "timeseries", "title": "T", "targets": targets, "fieldConfig": {"defaults": defaults}}
    return {"panels": [one]}


UNITS = {
    "a gauge of seconds": ("max by (x) (firsttoken_last_token_age_seconds)", "s"),
    "a quantile": ("histogram_quantile(0.95, sum by (le) (rate(firsttoken_x_bucket[5m])))", "s"),
    "a share": ("max by (x) (firsttoken_kv_cache_occupancy_ratio)", "percentunit"),
    "bytes": ("max by (x) (hw_gpu_memory_usage_bytes)", "bytes"),
    "requests per second": ("sum by (x) (rate(firsttoken_requests_total[5m]))", "reqps"),
    "tokens per second": ("sum by (x) (rate(firsttoken_tokens_total[5m]))", TOKENS_A_SECOND),
    "joules per second": ("sum by (x) (rate(hw_gpu_energy_joules_total[5m]))", "watt"),
}


@pytest.mark.parametrize("kind", UNITS)
def test_the_unit_follows_from_the_metric(kind: str) -> None:
    text, unit = UNITS[kind]
    assert list(panels.true_units(shown(text, unit))) == []
    assert list(panels.true_units(shown(text, "ms"))) == [f"T: ms, not {unit}"]


def test_a_gauge_in_sql_has_the_unit_of_its_metric() -> None:
    text = "SELECT time, metric, value FROM gauge WHERE name = 'last_token_age'"
    assert list(panels.true_units(shown(text, "percent", key="rawSql"))) == ["T: percent, not s"]


def test_what_a_query_makes_of_several_metrics_has_a_unit_of_its_own() -> None:
    text = "rate(firsttoken_tokens_total[5m])\n/ (firsttoken_engine_running > 0)"
    assert list(panels.true_units(shown(text, "anything"))) == []


def test_a_panel_names_the_metric_of_a_series_of_buckets_and_the_table_of_a_query() -> None:
    described = shown("rate(gen_ai_server_request_duration_seconds_bucket[5m])", "s")
    assert next(panels.described(described)) == "T does not name gen_ai_server_request_duration_seconds"
    asked = shown("SELECT * FROM gauge JOIN json_each(x) AS bin WHERE a IN (SELECT b FROM budget)", "s", key="rawSql")
    assert list(panels.described(asked))[:2] == ["T does not name budget", "T does not name gauge"]
