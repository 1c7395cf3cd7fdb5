"""Engines' own counters: tokens and outcomes under our names."""

import pytest

from sidecar.engine.engine_counts import CountKey, read_counts, read_zeros, started_s
from sidecar.engine.engine_requests import TOLD
from sidecar.engine.engines import ENGINES
from tests.sidecar.engine_pages import engine, histogram, kept, page

M = 'engine="0",model_name="m"'
IN, OUT = "input", "output"

KEPT: dict[str, tuple[str, dict[str, int]]] = {
    "vllm-0.33.prom": ("vllm", {IN: 812_345, OUT: 204_222, "ok": 998, "error": 1, "cancelled": 0}),
    "vllm_metrics_after.txt": ("vllm", {IN: 215, OUT: 596, "ok": 15, "error": 0, "cancelled": 0, "rejected": 0}),
    "vllm-0.8.5.prom": ("vllm", {}),
    "sglang-0.5.23.prom": ("sglang", {IN: 60_111, OUT: 29_001}),
    "tgi-3.3.prom": ("tgi", {"ok": 125, "rejected": 4, "client_error": 1}),
    "llamacpp.prom": ("llamacpp", {IN: 143 + 512, OUT: 673}),
    "llamasrv_metrics_busy.txt": ("llamacpp", {IN: 36 + 120, OUT: 186}),
    "trtllm-serve.prom": ("trtllm", {"ok": 60}),
    "triton-trtllm.prom": ("triton", {}),
    "lmdeploy-0.18.prom": ("lmdeploy", {}),
    "dynamo-frontend.prom": ("dynamo", {OUT: 20_000, "ok": 90}),
    "litellm_metrics.txt": ("litellm", {IN: 36, OUT: 51, "ok": 3}),
}


def counted(*parts: str, of: str) -> dict[str, int]:
    return summed(read_counts(page(*parts), engine(of), TOLD[of]))


def summed(found: dict[CountKey, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for key, count in found.items():
        ((_, value),) = key.attributes
        totals[value] = totals.get(value, 0) + count
    return totals


@pytest.mark.parametrize("name", KEPT)
def test_what_each_engine_counts(name: str) -> None:
    engine_name, expected = KEPT[name]
    found = read_counts(kept(name), engine(engine_name), TOLD[engine_name])
    assert summed(found) == expected


@pytest.mark.parametrize("name", ["vllm:prompt_tokens_total", "vllm:prompt_tokens"])
def test_a_counter_is_known_with_and_without_its_suffix(name: str) -> None:
    assert counted(f"{name}{{{M}}} 7", of="vllm") == {IN: 7}


def test_statuses_become_outcomes() -> None:
    lines = [
        f'trtllm_request_error_total{{http_code="{code}",model_name="m"}} 1' for code in (400, 422, 429, 499, 500, 503)
    ]
    assert counted(*lines, of="trtllm") == {"client_error": 2, "quota": 1, "cancelled": 1, "error": 1, "rejected": 1}


def test_a_reason_without_a_meaning_is_left_out() -> None:
    lines = [f'vllm:request_success_total{{finished_reason="{reason}",{M}}} 2' for reason in ("stop", "moonshine")]
    assert counted(*lines, of="vllm") == {"ok": 2}


def test_what_several_processes_tell_counts_once() -> None:
    lines = [f'vllm:prompt_tokens_total{{{M},pid="{pid}"}} {count}' for pid, count in ((1, 4), (2, 9), (3, 0))]
    assert counted(*lines, of="vllm") == {IN: 9}


def test_schedulers_that_repeat_each_other_count_once() -> None:
    lines = [f'sglang:prompt_tokens_total{{model_name="m",dp_rank="{d}",tp_rank="{t}"}} 5' for d in "01" for t in "01"]
    assert counted(*lines, of="sglang") == {IN: 10}


def test_parts_of_tokens_are_whole_tokens() -> None:
    lines = ["tgi_request_count 1", "tgi_request_input_length_sum 12.0", "tgi_request_generated_tokens_sum -1"]
    assert counted(*lines, of="tgi") == {IN: 12}


def test_vllms_answers_of_one_token_are_known_by_their_length() -> None:
    tpot = histogram("vllm:request_time_per_output_token_seconds", {"0.01": 3, "+Inf": 3})
    lengths = histogram("vllm:request_generation_tokens", {"1.0": 2, "2.0": 3, "+Inf": 3})
    assert list(read_zeros(page(tpot, lengths), engine("vllm"), TOLD["vllm"]).values()) == [2]
    assert read_zeros(page(tpot), engine("vllm"), TOLD["vllm"]) == {}
    assert read_zeros(page(lengths), engine("vllm"), TOLD["vllm"]) == {}


def test_the_start_of_the_process_is_known_where_one_tells_it() -> None:
    assert started_s(page("process_start_time_seconds 1.5e9")) == 1.5e9
    assert started_s(page('process_start_time_seconds{pid="1"} 1\nprocess_start_time_seconds{pid="2"} 2')) is None
    assert started_s(page("x 1")) is None


def test_an_engine_that_counts_nothing_counts_nothing() -> None:
    for name in ENGINES:
        assert read_counts(page("up 1"), engine(name), TOLD[name]) == {}
