"""Engines' own histograms, as each page tells them, and what came between two pages."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine.engine_histograms import added, at_edges, increase, read_histograms, within, without_zeros
from sidecar.engine.engine_requests import TOLD
from slo.signals import E2E, TPOT, TTFT, Metric
from tests.sidecar.engine_pages import TTFT_NAME, VLLM, engine, histogram, kept, page, ttft

KEPT: dict[str, tuple[str, dict[tuple[Metric, str | None], tuple[int, float, float]]]] = {
    # name of the page: engine, and of each metric and model the count, the first edge and the last edge in seconds
    "vllm-0.33.prom": (
        "vllm",
        {
            (TTFT, "Qwen/Qwen3-8B"): (999, 0.001, 2560.0),
            (TPOT, "Qwen/Qwen3-8B"): (999, 0.01, 80.0),
            (E2E, "Qwen/Qwen3-8B"): (999, 0.3, 7680.0),
        },
    ),
    "vllm-0.8.5.prom": ("vllm", {(TTFT, "m"): (40, 0.001, 2560.0)}),
    "vllm-0.10-multiproc-pid.prom": ("vllm", {}),
    "vllm_metrics_after.txt": (
        "vllm",
        # One client left: vLLM counts it in the time to its first token, and nowhere else.
        {(TTFT, "tiny"): (16, 0.001, 2560.0), (TPOT, "tiny"): (15, 0.01, 80.0), (E2E, "tiny"): (15, 0.3, 7680.0)},
    ),
    "sglang-0.5.23.prom": (
        "sglang",
        {(TTFT, "m"): (120, 0.1, 400.0), (TPOT, "m"): (110, 0.002, 8.0), (E2E, "m"): (120, 0.1, 2400.0)},
    ),
    "tgi-3.3.prom": ("tgi", {(E2E, None): (125, 0.00015, 145.611)}),
    "llamacpp.prom": ("llamacpp", {}),
    "llamasrv_metrics_busy.txt": ("llamacpp", {}),
    "trtllm-serve.prom": (
        "trtllm",
        {(TTFT, "m"): (60, 0.001, 2560.0), (TPOT, "m"): (60, 0.01, 80.0), (E2E, "m"): (60, 0.3, 7680.0)},
    ),
    "triton-trtllm.prom": ("triton", {}),
    "lmdeploy-0.18.prom": ("lmdeploy", {(TTFT, "m"): (50, 0.001, 2560.0), (E2E, "m"): (50, 0.3, 7680.0)}),
    "dynamo-frontend.prom": ("dynamo", {(TTFT, "Qwen/Qwen3-0.6B"): (90, 0.0, 480.0)}),
    "litellm_metrics.txt": ("litellm", {(TTFT, "tiny"): (3, 0.005, 300.0), (E2E, "tiny"): (3, 0.005, 300.0)}),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_each_engine_tells(name: str) -> None:
    engine_name, expected = KEPT[name]
    found = read_histograms(kept(name), engine(engine_name), TOLD[engine_name])
    seen = {
        (key.metric, key.model): (one.count, one.bounds[0], pytest.approx(one.bounds[-1], rel=1e-5))
        for key, one in found.items()
    }
    assert seen == expected


def read(*parts: str, of: str = "vllm") -> dict[tuple[Metric, str | None], EdgeBuckets]:
    found = read_histograms(page(*parts), engine(of), TOLD[of])
    assert len({(key.metric, key.model) for key in found}) == len(found)
    return {(key.metric, key.model): one for key, one in found.items()}


def test_counts_lie_between_the_engines_own_edges() -> None:
    found = read(histogram(TTFT_NAME, {"0.25": 2, "0.5": 5, "+Inf": 6}, total_s=3.5))
    assert found == {(TTFT, "m"): EdgeBuckets((0.25, 0.5), (2, 3, 1), 3.5)}


def test_edges_may_stand_in_any_order() -> None:
    assert read(histogram(TTFT_NAME, {"+Inf": 6, "0.5": 5, "0.25": 2})) == {
        (TTFT, "m"): EdgeBuckets((0.25, 0.5), (2, 3, 1), 1.0)
    }


def test_milliseconds_become_seconds_without_a_digit_too_many() -> None:
    found = read(
        'nv_trt_llm_request_metrics{model="llm",request_type="scheduled",version="1"} 1',
        histogram(
            "nv_inference_first_response_histogram_ms",
            {"100": 1, "700": 3, "+Inf": 4},
            labels='model="llm",version="1"',
            total_s=2500.0,
        ),
        histogram("nv_inference_first_response_histogram_ms", {"100": 9, "+Inf": 9}, labels='model="ensemble"'),
        of="triton",
    )
    # The pipeline around the model answers to the same requests: counting it too would count each twice.
    assert found == {(TTFT, "llm"): EdgeBuckets((0.1, 0.7), (1, 2, 1), 2.5)}


def test_vllm_inside_triton_is_read_under_its_own_names() -> None:
    found = read(
        'nv_inference_request_success{model="v",version="1"} 3',
        histogram(TTFT_NAME, {"0.5": 3, "+Inf": 3}, labels='model="v",version="1"'),
        histogram("vllm:time_per_output_token_seconds", {"0.5": 3, "+Inf": 3}, labels='model="v",version="1"'),
        of="triton",
    )
    assert found.keys() == {(TTFT, "v")}


def test_a_renamed_series_counts_once() -> None:
    both = [
        histogram(f"sglang{mark}time_to_first_token_seconds", {"0.1": 1, "+Inf": 2}, labels='model_name="m"')
        for mark in (":", "_")
    ]
    assert read(*both, of="sglang")[TTFT, "m"].count == 2
    assert read(both[1], of="sglang")[TTFT, "m"].count == 2


def test_whole_answers_have_no_first_token() -> None:
    name = "sglang:time_to_first_token_seconds"
    found = read(
        histogram(name, {"0.1": 1, "+Inf": 2}, labels='is_streaming="true",model_name="m"'),
        histogram(name, {"0.1": 5, "+Inf": 9}, labels='is_streaming="false",model_name="m"'),
        of="sglang",
    )
    assert found[TTFT, "m"].count == 2


def test_what_several_processes_tell_counts_once() -> None:
    twice = [ttft(4, count, labels=f'engine="0",model_name="m",pid="{pid}"') for pid, count in (("1", 0), ("2", 3))]
    assert read(*twice)[TTFT, "m"].count == 7
    assert read(*reversed(twice))[TTFT, "m"].count == 7


def test_ranks_stay_apart() -> None:
    ranks = [ttft(n, 0, labels=f'engine="{n}",model_name="m"') for n in (1, 2)]
    found = read_histograms(page(*ranks), VLLM, TOLD["vllm"])
    assert sorted(one.count for one in found.values()) == [1, 2]


NO_HISTOGRAMS = {
    "counts that fall along the edges": histogram(TTFT_NAME, {"0.25": 3, "0.5": 2, "+Inf": 6}),
    "counts that are no whole numbers": f'{TTFT_NAME}_bucket{{le="1"}} 0.5\n{TTFT_NAME}_bucket{{le="+Inf"}} 1',
    "no edges but the last": histogram(TTFT_NAME, {"+Inf": 6}),
    "edges that are none": histogram(TTFT_NAME, {"fast": 1, "nan": 2, "-1": 3}),
    "a count beyond all counting": histogram(TTFT_NAME, {"1": 1 << 50, "+Inf": 1 << 50}),
    "no total at all": f'{TTFT_NAME}_bucket{{le="1"}} 3',
}


@pytest.mark.parametrize("sentence", NO_HISTOGRAMS)
def test_what_contradicts_itself_is_none(sentence: str) -> None:
    assert read(NO_HISTOGRAMS[sentence]) == {}


def test_a_total_may_stand_in_the_count_alone() -> None:
    lines = f'{TTFT_NAME}_bucket{{le="1"}} 3\n{TTFT_NAME}_count 5'
    assert read(lines)[TTFT, None] == EdgeBuckets((1.0,), (3, 2), None)


def test_a_sum_that_is_no_number_is_unknown() -> None:
    assert read(ttft(1, 1, total_s=math.nan))[TTFT, "m"].sum is None
    assert read(ttft(1, 1, total_s=-1.0))[TTFT, "m"].sum is None


BOUNDS = (0.5, 1.0)


def buckets(*counts: int, total_s: float | None = 1.0, bounds: tuple[float, ...] = BOUNDS) -> EdgeBuckets:
    return EdgeBuckets(bounds, counts, total_s)


INCREASES: dict[str, tuple[EdgeBuckets | None, EdgeBuckets, EdgeBuckets | None]] = {
    "more came": (buckets(1, 0, 2), buckets(1, 3, 4, total_s=7.5), buckets(0, 3, 2, total_s=6.5)),
    "nothing came": (buckets(1, 0, 2), buckets(1, 0, 2), buckets(0, 0, 0, total_s=0.0)),
    "a series that was not there was born since": (None, buckets(1, 0, 2), buckets(1, 0, 2)),
    "a restart counts from 0": (buckets(5, 5, 5), buckets(1, 0, 2), buckets(1, 0, 2)),
    "a bucket that fell is a restart, whatever the total": (buckets(5, 0, 0), buckets(1, 9, 9), buckets(1, 9, 9)),
    "other edges are a restart": (
        buckets(1, 0, 2),
        buckets(9, 9, bounds=(0.7,)),
        buckets(9, 9, bounds=(0.7,)),
    ),
    "fewer edges after a fall are a restart": (
        buckets(5, 5, 5),
        buckets(1, 2, bounds=(0.5,)),
        buckets(1, 2, bounds=(0.5,)),
    ),
    "an edge that is missing is waited for": (buckets(1, 0, 2), buckets(1, 3, bounds=(0.5,)), None),
    "a sum that is missing is waited for": (buckets(1, 0, 2), buckets(1, 0, 3, total_s=None), None),
    "a sum that never was is not": (
        buckets(1, 0, 2, total_s=None),
        buckets(1, 0, 3, total_s=None),
        buckets(0, 0, 1, total_s=None),
    ),
    "a sum never shrinks": (
        buckets(1, 0, 2, total_s=3.0),
        buckets(1, 0, 3, total_s=2.9),
        buckets(0, 0, 1, total_s=0.0),
    ),
}


@pytest.mark.parametrize("sentence", INCREASES)
def test_increases(sentence: str) -> None:
    before, now, grown = INCREASES[sentence]
    assert increase(before, now) == grown


COUNTS = st.lists(st.tuples(*[st.integers(0, 50)] * 3), min_size=1, max_size=20)


@given(COUNTS, st.integers(0, 20))
def test_increases_over_a_restart_add_up_to_all_that_came(steps: list[tuple[int, int, int]], restart: int) -> None:
    """Of a process that grows step by step and restarts once, every value is counted exactly once, unless what came
    since the restart hides it: then less, never more."""
    held = EdgeBuckets(BOUNDS, (0, 0, 0), 0.0)
    told, counted = held, [0, 0, 0]
    for place, step in enumerate(steps):
        if place == restart:
            held = EdgeBuckets(BOUNDS, (0, 0, 0), 0.0)
        held = added((held, EdgeBuckets(BOUNDS, step, 0.0)))
        grown = increase(told, held)
        assert grown is not None
        counted, told = [a + b for a, b in zip(counted, grown.counts, strict=True)], held
    came = [sum(step[i] for step in steps) for i in range(3)]
    assert all(0 <= a <= b for a, b in zip(counted, came, strict=True))
    if restart >= len(steps) or restart == 0:
        assert counted == came


@given(st.lists(st.floats(0, 3), max_size=50), st.lists(st.floats(0, 3), max_size=50))
def test_histograms_of_different_edges_add_up_at_those_they_share(a: list[float], b: list[float]) -> None:
    def of(values: list[float], bounds: tuple[float, ...]) -> EdgeBuckets:
        edges = (-math.inf, *bounds, math.inf)
        counts = (sum(low < value <= high for value in values) for low, high in pairwise(edges))
        return EdgeBuckets(bounds, tuple(counts), sum(values))

    whole = added((of(a, (0.5, 1.0, 2.0)), of(b, (0.25, 0.5, 2.0))))
    assert (whole.bounds, whole.counts) == ((0.5, 2.0), of([*a, *b], (0.5, 2.0)).counts)
    assert whole.sum == pytest.approx(sum(a) + sum(b))


def test_a_sum_of_which_a_part_is_unknown_is_unknown() -> None:
    assert added((buckets(1, 1, 1), buckets(1, 1, 1, total_s=None))).sum is None


def test_fewer_edges_keep_every_value() -> None:
    assert at_edges(buckets(1, 2, 4), (1.0,)) == EdgeBuckets((1.0,), (3, 4), 1.0)
    assert at_edges(buckets(1, 2, 4), BOUNDS) == buckets(1, 2, 4)


def test_values_of_no_request_are_taken_out_as_far_as_they_are_there() -> None:
    assert without_zeros(buckets(3, 2, 1), 2).counts == (1, 2, 1)
    assert without_zeros(buckets(3, 2, 1), 9).counts == (0, 2, 1)


def test_only_an_edge_parts_good_from_bad() -> None:
    assert within(buckets(3, 2, 1), 0.5) == 3
    assert within(buckets(3, 2, 1), 1.0) == 5
    assert within(buckets(3, 2, 1), 0.75) is None
    assert within(buckets(3, 2, 1), math.inf) is None
