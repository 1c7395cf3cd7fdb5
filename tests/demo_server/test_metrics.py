"""Held against a page of a real vLLM: names, types, labels and bounds."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from demo_server.metrics import Metrics, Timeline
from tests.demo_server.support import samples

VLLM = (Path(__file__).parents[1] / "data" / "demo_server" / "vllm_metrics.txt").read_text()


def families(page: str) -> dict[str, str]:
    return {family.name: family.type for family in text_string_to_metric_families(page)}


def shapes(page: str, model: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Every vLLM sample's name and labels, with the model's name removed and info labels cut to those we show."""
    shown = {"engine", "le", "finished_reason"}
    return {
        (name, frozenset((k, v) for k, v in labels if k in shown))
        for name, labels in samples(page)
        if name.startswith("vllm:") and not name.endswith("_created") and ("model_name", model) in labels
    } | {(name, frozenset({("engine", "0")})) for name, _ in samples(page) if name == "vllm:cache_config_info"}


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics(("demo", "other"))
    made.show_cache(blocks=10, block_size=16, usage=lambda: 0.25)
    return made


def test_every_series_is_one_that_vllm_has_with_its_bounds(metrics: Metrics) -> None:
    page = metrics.page().decode()
    assert shapes(page, "demo") == shapes(VLLM, "tiny")
    ours, theirs = families(page), families(VLLM)
    assert {name: ours[name] for name in theirs} == theirs


def test_every_series_stands_at_zero_before_the_first_request(metrics: Metrics) -> None:
    values = samples(metrics.page().decode())
    assert {
        value
        for (name, _), value in values.items()
        if name.startswith("vllm:") and not name.endswith(("_created", "_perc", "_info"))
    } == {0.0}
    models = {dict(labels)["model_name"] for name, labels in values if name == "vllm:request_success_total"}
    assert models == {"demo", "other"}


def test_the_cache_is_told_under_every_name(metrics: Metrics) -> None:
    values = samples(metrics.page().decode())
    for model in ("demo", "other"):
        labels = {"model_name": model, "engine": "0"}
        assert values["vllm:kv_cache_usage_perc", frozenset(labels.items())] == 0.25
        size = {"block_size": "16", "num_gpu_blocks": "10", "kv_cache_size_tokens": "160"}
        assert values["vllm:cache_config_info", frozenset((labels | size).items())] == 1


def read(metrics: Metrics, name: str) -> float:
    return samples(metrics.page().decode())[f"vllm:{name}", frozenset({"model_name": "demo", "engine": "0"}.items())]


def test_a_request_leaves_its_times(metrics: Metrics) -> None:
    timeline = Timeline(arrived_s=10.0, scheduled_s=12.0)
    demo = metrics.of("demo")
    for now_s in (13.0, 13.5, 15.0):
        demo.token(timeline, 7, now_s)
    demo.finished(timeline, 3, "length")
    assert {
        name: (read(metrics, f"{name}_seconds_count"), read(metrics, f"{name}_seconds_sum"))
        for name in (
            *("time_to_first_token", "inter_token_latency", "request_time_per_output_token", "e2e_request_latency"),
            *("request_queue_time", "request_prefill_time", "request_decode_time", "request_inference_time"),
        )
    } == {
        "time_to_first_token": (1, 3.0),
        "inter_token_latency": (2, 2.0),
        "request_time_per_output_token": (1, 1.0),
        "e2e_request_latency": (1, 5.0),
        "request_queue_time": (1, 2.0),
        "request_prefill_time": (1, 1.0),
        "request_decode_time": (1, 2.0),
        "request_inference_time": (1, 3.0),
    }
    assert (read(metrics, "prompt_tokens_total"), read(metrics, "generation_tokens_total")) == (7, 3)


def test_one_token_has_a_time_per_token_of_zero_as_at_vllm(metrics: Metrics) -> None:
    timeline = Timeline(arrived_s=0.0, scheduled_s=0.0)
    metrics.of("demo").token(timeline, 1, 5.0)
    metrics.of("demo").finished(timeline, 1, "stop")
    assert read(metrics, "request_time_per_output_token_seconds_count") == 1
    assert read(metrics, "request_time_per_output_token_seconds_sum") == 0


def test_a_request_that_failed_before_its_first_token_has_no_times(metrics: Metrics) -> None:
    metrics.of("demo").finished(Timeline(arrived_s=0.0), 0, "error")
    assert read(metrics, "e2e_request_latency_seconds_count") == 0
    error = {"model_name": "demo", "engine": "0", "finished_reason": "error"}
    assert samples(metrics.page().decode())["vllm:request_success_total", frozenset(error.items())] == 1


def test_tokens_looked_up_and_found_are_counted(metrics: Metrics) -> None:
    metrics.of("demo").admitted(40, 32)
    metrics.of("demo").admitted(8, 0)
    found = samples(metrics.page().decode())
    labels = frozenset({"model_name": "demo", "engine": "0"}.items())
    assert found["vllm:prefix_cache_queries_total", labels] == 48
    assert found["vllm:prefix_cache_hits_total", labels] == 32


def test_a_preemption_counts_once_and_says_what_it_cost(metrics: Metrics) -> None:
    metrics.of("demo").preempted(40)
    metrics.of("demo").preempted(2)
    assert read(metrics, "num_preemptions_total") == 2
    lost = samples(metrics.page().decode())
    assert lost["demo_server:preempted_tokens_total", frozenset({"model_name": "demo", "engine": "0"}.items())] == 42
