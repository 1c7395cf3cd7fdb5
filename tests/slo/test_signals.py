"""Names derived from one table are the names users know (DESIGN 4.3)."""

import re

import pytest

from slo import signals


@pytest.mark.parametrize(
    ("metric", "prometheus", "sql"),
    [
        (signals.TTFT, "gen_ai_server_time_to_first_token_seconds", "ttft"),
        (signals.TPOT, "gen_ai_server_time_per_output_token_seconds", "tpot"),
        (signals.E2E, "gen_ai_server_request_duration_seconds", "e2e"),
        (signals.SLO_EVENTS, "firsttoken_slo_events_total", "slo_events"),
        (signals.CENSORED, "firsttoken_censored_seconds", "censored"),
        (signals.REQUESTS, "firsttoken_requests_total", "requests"),
        (signals.IN_FLIGHT, "firsttoken_requests_in_flight", "requests_in_flight"),
        (signals.OLDEST_AGE, "firsttoken_requests_oldest_age_seconds", "requests_oldest_age"),
        (signals.WAITING_FIRST_TOKEN, "firsttoken_requests_waiting_first_token", "requests_waiting_first_token"),
        (signals.OVERDUE, "firsttoken_requests_overdue", "requests_overdue"),
        (signals.LAST_TOKEN_AGE, "firsttoken_last_token_age_seconds", "last_token_age"),
        (signals.HEARTBEAT, "firsttoken_heartbeat_total", "heartbeat"),
        (signals.ENGINE_RUNNING, "firsttoken_engine_running", "engine_running"),
        (signals.ENGINE_WAITING, "firsttoken_engine_waiting", "engine_waiting"),
        (signals.ENGINE_PREEMPTIONS, "firsttoken_engine_preemptions_total", "engine_preemptions"),
        (signals.KV_OCCUPANCY, "firsttoken_kv_cache_occupancy_ratio", "kv_cache_occupancy"),
        (signals.KV_CAPACITY, "firsttoken_kv_cache_capacity_tokens", "kv_cache_capacity"),
        (signals.PREFIX_HIT_RATIO, "firsttoken_prefix_cache_hit_ratio", "prefix_cache_hit_ratio"),
        (signals.TOKENS, "firsttoken_tokens_total", "tokens"),
        (signals.GPU_UTILIZATION, "hw_gpu_utilization_ratio", "hw_gpu_utilization"),
        (signals.GPU_MEMORY_USAGE, "hw_gpu_memory_usage_bytes", "hw_gpu_memory_usage"),
        (signals.GPU_MEMORY_UTILIZATION, "hw_gpu_memory_utilization_ratio", "hw_gpu_memory_utilization"),
        (signals.GPU_POWER, "hw_gpu_power_watts", "hw_gpu_power"),
        (signals.GPU_ENERGY, "hw_gpu_energy_joules_total", "hw_gpu_energy"),
        (signals.GPU_TEMPERATURE, "hw_gpu_temperature_celsius", "hw_gpu_temperature"),
        (signals.GPU_THROTTLE, "hw_gpu_throttle_seconds_total", "hw_gpu_throttle"),
        (signals.GPU_ERRORS, "hw_gpu_errors_total", "hw_gpu_errors"),
        (signals.CONFIG_RELOAD_OK, "firsttoken_config_last_reload_successful", "config_last_reload_successful"),
        (signals.BURN_RATE, "firsttoken_burn_rate", "burn_rate"),
        (signals.BUDGET_REMAINING, "firsttoken_error_budget_remaining_ratio", "error_budget_remaining"),
        (signals.BUDGET_EXHAUSTED_IN, "firsttoken_budget_exhausted_in_seconds", "budget_exhausted_in"),
        (signals.LATENCY, "firsttoken_latency_seconds", "latency"),
    ],
)
def test_the_names_are_those_of_the_design(metric: signals.Metric, prometheus: str, sql: str) -> None:
    assert (metric.prometheus, metric.sql) == (prometheus, sql)


def test_every_metric_is_named_once_and_legally() -> None:
    metrics = (*signals.WIRE_METRICS, *signals.GPU_METRICS, *signals.SIDECAR_METRICS, *signals.COLLECTOR_METRICS)
    assert len({m.name for m in metrics}) == len({m.prometheus for m in metrics}) == len(metrics)
    for metric in metrics:
        assert re.fullmatch(r"[a-z_][a-z0-9_]*", metric.prometheus)
        assert metric.description.endswith(".")
        assert all(label.isidentifier() for label in metric.labels)


def test_labels_do_not_collide_with_those_a_kubernetes_scrape_sets() -> None:
    assert not set(signals.LABELS.values()) & {"service", "namespace", "pod", "container", "job", "instance", "model"}


def test_every_signal_names_an_alert_and_a_known_metric() -> None:
    for name, signal in signals.SIGNALS.items():
        assert name == signal.name
        assert re.fullmatch(r"LLM[A-Za-z0-9]+BudgetBurn", signal.alert)
        assert signal.metric is None or signal.metric in signals.WIRE_METRICS


def test_bucket_edges_ascend_and_reach_from_a_millisecond_past_100_seconds() -> None:
    edges = signals.LATENCY_BUCKETS_S
    assert list(edges) == sorted(set(edges))
    assert edges[0] == 0.001
    assert edges[-1] >= 100
