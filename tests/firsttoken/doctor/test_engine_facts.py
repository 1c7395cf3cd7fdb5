"""Servers by their own pages: kept pages of every engine, found where that engine keeps them."""

import json

import pytest

from firsttoken.doctor.ask import Answer
from firsttoken.doctor.engine_facts import EngineSeen, Rename, find, first_model, renames, version
from firsttoken.json_fields import Object
from slo.signals import E2E, TTFT
from tests.firsttoken.doctor.front import MODELS, PAGES

ROOT = "http://server:8000"


def found(pages: dict[str, bytes]) -> EngineSeen | None:
    """What is found on a server that has these pages and no others."""
    return find(ROOT, lambda url: Answer(url, 200, pages[url]) if url in pages else Answer(url, 404))


def kept(name: str) -> bytes:
    return (PAGES / name).read_bytes()


ENGINES = {
    "vllm": ("/metrics", "vllm-0.33.prom"),
    "sglang": ("/metrics", "sglang-0.5.23.prom"),
    "tgi": ("/metrics", "tgi-3.3.prom"),
    "llamacpp": ("/metrics", "llamacpp.prom"),
    "lmdeploy": ("/metrics", "lmdeploy-0.18.prom"),
    "dynamo": ("/metrics", "dynamo-frontend.prom"),
    "trtllm": ("/prometheus/metrics", "trtllm-serve.prom"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_known_by_its_page(engine: str) -> None:
    path, name = ENGINES[engine]
    seen = found({f"{ROOT}{path}": kept(name)})
    assert seen is not None
    assert (seen.engine, seen.url, seen.sight.engine) == (engine, f"{ROOT}{path}", engine)


def test_engines_that_are_known_by_a_sign() -> None:
    ollama = found({f"{ROOT}/": b"Ollama is running"})
    assert ollama is not None
    assert (ollama.engine, ollama.reaches) == ("ollama", ())
    triton = {f"{ROOT}/v2": b'{"name": "triton"}', "http://server:8002/metrics": kept("triton-trtllm.prom")}
    seen = found(triton)
    assert seen is not None
    assert (seen.engine, seen.url) == ("triton", "http://server:8002/metrics")
    hidden = found({f"{ROOT}/v2": b'{"name": "triton"}'})
    assert hidden is not None
    assert (hidden.engine, hidden.url, hidden.names) == ("triton", f"{ROOT}/v2", frozenset())


def test_a_server_without_metrics_is_none() -> None:
    assert found({}) is None
    assert found({f"{ROOT}/metrics": b"up 1\n"}) is None


def test_edges_reach_and_names_are_those_of_the_page() -> None:
    seen = found({f"{ROOT}/metrics": kept("vllm-0.33.prom")})
    assert seen is not None
    edges = seen.sight.edges_of(TTFT, None)
    assert edges is not None
    assert (edges[0], edges[-1]) == (0.001, 2560.0)
    reach = next(one for one in seen.reaches if one.signal == E2E.sql)
    assert (reach.edge_s, reach.beyond <= reach.count) == (7680.0, True)
    assert {"vllm:kv_cache_usage_perc", "vllm:time_to_first_token_seconds"} <= seen.names


def test_an_old_vllm_calls_things_otherwise() -> None:
    old, new = found({f"{ROOT}/metrics": kept("vllm-0.8.5.prom")}), found({f"{ROOT}/metrics": kept("vllm-0.33.prom")})
    assert old is not None
    assert new is not None
    assert "vllm:gpu_cache_usage_perc" in {one.old for one in renames("vllm", old.names)}
    assert list(renames("vllm", new.names)) == []
    assert list(renames("nobody", old.names)) == []
    assert all(isinstance(one, Rename) and one.since for one in renames("vllm", old.names))


VERSIONS: dict[str, tuple[list[Object], str]] = {
    "vLLM": ([{"version": "0.33.0"}], "0.33.0"),
    "llama.cpp": ([{"default_generation_settings": {}, "build_info": "b11434-abc"}], "b11434-abc"),
    "no version": ([{"version": 3}, {}], ""),
    "the second page": ([{}, {"version": "0.5.23"}], "0.5.23"),
}


@pytest.mark.parametrize(("bodies", "told"), VERSIONS.values(), ids=VERSIONS.keys())
def test_a_version_is_read_off_any_of_the_usual_pages(bodies: list[Object], told: str) -> None:
    answers = [Answer("u", 404), *(Answer("u", 200, json.dumps(body).encode()) for body in bodies)]
    assert version(answers) == told


def test_the_first_model_is_the_one_to_ask() -> None:
    assert first_model(Answer("u", 200, MODELS)) == "m"
    assert first_model(Answer("u", 200, b'{"data": []}')) == first_model(Answer("u", 404)) == ""
