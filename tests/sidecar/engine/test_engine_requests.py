"""The map of what engines tell of requests: complete, and true to what each page really shows."""

from pathlib import Path

import pytest

from sidecar.engine.engine_requests import ATTRIBUTE, TOLD, names
from sidecar.engine.engines import ENGINES
from slo.signals import E2E, LATENCY_METRICS, OUTCOMES, REQUESTS, SIGNALS, TOKENS


def test_every_engine_has_its_row() -> None:
    assert TOLD.keys() == ENGINES.keys()


@pytest.mark.parametrize("engine", TOLD)
def test_each_latency_is_told_or_it_is_said_why_not(engine: str) -> None:
    told = TOLD[engine]
    untold = dict(told.untold)
    assert untold.keys() <= SIGNALS.keys()
    for signal in ("ttft", "tpot", "e2e"):
        is_told = any(row.metric is SIGNALS[signal].metric for row in told.histograms)
        assert is_told != (signal in untold), f"{engine} {signal}"


def test_outcomes_and_tokens_are_ours() -> None:
    for told in TOLD.values():
        for row in told.counts:
            values = {value for _, value in row.values} if row.label else {row.value}
            assert values <= (set(OUTCOMES) if row.metric is REQUESTS else {"input", "output"})
            assert row.metric in ATTRIBUTE
            assert bool(row.label) != bool(row.value)


STEP_TIMES = (
    "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds", "sglang:time_per_output_token_seconds",
    "sglang:inter_token_latency_seconds", "lmdeploy:time_per_output_token_seconds", "lmdeploy:iter_token_latency",
    "dynamo_frontend_inter_token_latency_seconds", "tgi_request_mean_time_per_token_duration",
    "litellm_deployment_latency_per_output_token",
)  # fmt: skip


@pytest.mark.parametrize("name", STEP_TIMES)
def test_a_time_that_is_none_per_request_is_never_read(name: str) -> None:
    assert f"{name}_bucket" not in names()


def test_histograms_are_of_latencies() -> None:
    assert {row.metric for told in TOLD.values() for row in told.histograms} == set(LATENCY_METRICS)
    assert E2E in LATENCY_METRICS
    assert {row.metric for told in TOLD.values() for row in told.counts} == {REQUESTS, TOKENS}


def test_the_docs_say_what_each_engine_backs() -> None:
    text = (Path(__file__).parents[3] / "docs" / "numbers.md").read_text()
    table = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    head, *rows = [[cell.strip() for cell in line] for line in table]
    said = {engine: dict(zip(head[1:], cells, strict=True)) for engine, *cells in rows}
    assert said.keys() == TOLD.keys()
    for name, told in TOLD.items():
        backed = {row.metric.sql for row in told.histograms}
        backed |= {{TOKENS: "tokens", REQUESTS: "outcomes"}[row.metric] for row in told.counts}
        backed |= {"queue"} if ENGINES[name].waiting else set()
        backed |= {"kv_occupancy"} if ENGINES[name].kv_occupancy else set()
        assert {column for column, answer in said[name].items() if answer == "yes"} == backed, name
