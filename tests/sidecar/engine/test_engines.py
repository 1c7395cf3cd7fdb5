"""The engine map itself: every name leads somewhere and no engine hides another."""

import re

import pytest

from sidecar.engine.engines import ENGINES, Engine, Series

SIGNALS = (
    "running", "waiting", "kv_occupancy", "kv_capacity_tokens", "preemptions", "prefix_hits", "prefix_queries",
    "prefix_hit_ratio",
)  # fmt: skip
NAME = re.compile(r"[a-z][a-z0-9_]*:?[a-z0-9_]+")


def series_of(engine: Engine) -> list[Series]:
    first = [series for signal in SIGNALS for series in getattr(engine, signal)]
    return first + [other for series in first for other in (series.times, series.over) if other is not None]


def test_the_engines_that_the_flag_takes() -> None:
    assert set(ENGINES) == {
        "vllm", "sglang", "tgi", "llamacpp", "trtllm", "triton", "lmdeploy", "dynamo", "litellm", "ollama",
    }  # fmt: skip
    assert all(key == engine.name for key, engine in ENGINES.items())


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_an_engine_is_recognised_by_its_own_metrics_alone(engine: Engine) -> None:
    others = {name for other in ENGINES.values() if other is not engine for name in other.probe}
    assert not set(engine.probe) & others
    assert bool(engine.probe) == (engine.metrics_path is not None)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_names_are_metric_names(engine: Engine) -> None:
    for series in series_of(engine):
        assert series.names
        assert all(NAME.fullmatch(name) for name in series.names)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_an_engine_with_occupancy_says_what_it_means(engine: Engine) -> None:
    if engine.kv_occupancy:
        assert engine.kv_means != ENGINES["tgi"].kv_means


def test_counts_can_be_asked_for_without_a_trace_where_the_source_shows_it() -> None:
    assert {name for name, engine in ENGINES.items() if engine.usage_chunk is not None} == {"vllm", "sglang", "trtllm"}
    assert [name for name, e in ENGINES.items() if e.usage_chunk is not None and e.usage_chunk.moves_fingerprint] == [
        "vllm"
    ]


def test_only_tgi_means_overload_by_429() -> None:
    assert [engine.name for engine in ENGINES.values() if engine.overload_429] == ["tgi"]
