"""What is said of an inference server's own metrics."""

from dataclasses import replace

import pytest

from firsttoken.doctor.facts import Facts, Reach
from sidecar.polling.backing import Sight
from slo.objective import parse
from slo.signals import TTFT
from tests.firsttoken.doctor.healthy import (
    Plant,
    Planted,
    healthy,
    of_code,
    page,
    server,
    sidecar,
    sidecar_text,
    wrong,
)

TOP = (
    'gen_ai_server_request_duration_seconds_bucket{le="80.0",model_name="m",service_name="chat",source=""} 60\n'
    'gen_ai_server_request_duration_seconds_bucket{le="160.0",model_name="m",service_name="chat",source=""} 90\n'
    'gen_ai_server_request_duration_seconds_bucket{le="+Inf",model_name="m",service_name="chat",source=""} 100\n'
)


def alone(facts: Facts) -> Facts:
    """A server that no sidecar of those looked at stands before."""
    return replace(facts, sidecars=(), prometheuses=(), collectors=(), alertmanagers=())


def judged(facts: Facts, threshold: str) -> Facts:
    text = f"service: chat\nobjectives: [{{name: ttft, signal: ttft, percentile: 95, threshold: {threshold}}}]\n"
    return replace(alone(facts), specs=parse(text))


PLANTED: Planted = {
    "a server without metrics": ("engine-unknown", lambda f: server(f, engine="", sight=None)),
    "an engine that is only scraped, and availability": ("sli-unbacked", alone),
    "a threshold between two edges": ("threshold-off-edge", lambda f: judged(f, "600ms")),
    "an old vLLM": ("metric-renamed", lambda f: server(f, names=frozenset({"vllm:gpu_cache_usage_perc"}))),
    "an engine slower than its last bucket": (
        "top-bucket-full",
        lambda f: server(f, reaches=(Reach("e2e", "m", 60.0, 100, 2),)),
    ),
    "a sidecar's own last bucket": ("top-bucket-full", lambda f: sidecar(f, page=page(sidecar_text() + TOP))),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert of_code(plant(healthy()), code)


def test_a_threshold_on_an_edge_is_fine_and_one_off_it_is_told_its_neighbours() -> None:
    assert "threshold-off-edge" not in wrong(judged(healthy(), "500ms"))
    (finding,) = of_code(judged(healthy(), "600ms"), "threshold-off-edge")
    assert finding.fix.startswith("set the threshold to 500ms or 750ms; ")


def test_where_requests_pass_by_the_engine_need_back_nothing() -> None:
    facts = server(healthy(), sight=Sight("vllm", {(TTFT, "m"): (10.0,)}))
    assert not {"sli-unbacked", "threshold-off-edge"} & wrong(facts)


@pytest.mark.parametrize(("count", "beyond"), [(1000, 10), (19, 19), (0, 0)])
def test_a_few_beyond_the_last_edge_are_no_matter(count: int, beyond: int) -> None:
    assert not of_code(server(healthy(), reaches=(Reach("ttft", "m", 10.0, count, beyond),)), "top-bucket-full")


def test_a_page_that_has_both_names_is_no_old_one() -> None:
    names = frozenset({"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"})
    assert not of_code(server(healthy(), names=names), "metric-renamed")
