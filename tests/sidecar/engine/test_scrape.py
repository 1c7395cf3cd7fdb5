"""Servers' own metrics: what each engine's page tells, and that the unknown stays unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.engine.scrape import (
    AUTO,
    ENGINES,
    Rank,
    ServerSample,
    hit_ratio,
    increase,
    metrics_path,
    preempted,
    read,
    read_slots,
)
from tests.sidecar.streams import CAPTURES

PAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "C01 vLLM's older name": ('vllm:gpu_cache_usage_perc{model_name="m"} 0.5', {"kv_occupancy": 0.5, "engine": "vllm"}),
    "C01 vLLM's newer name": ('vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5', {"kv_occupancy": 0.5}),
    "C01 both names are never added": (
        'vllm:gpu_cache_usage_perc{model_name="m"} 0.4\nvllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5',
        {"kv_occupancy": 0.5, "ranks": ()},
    ),
    "C02 SGLang's older prefix": (
        'sglang:token_usage{model_name="m"} 0.28\nsglang:num_queue_reqs{model_name="m"} 3',
        {"engine": "sglang", "kv_occupancy": 0.28, "waiting": 3.0},
    ),
    "C02 SGLang's newer prefix": (
        'sglang_token_usage{model_name="m",tp_rank="0"} 0.28\nsglang_num_queue_reqs{model_name="m",tp_rank="0"} 3',
        {"engine": "sglang", "kv_occupancy": 0.28, "waiting": 3.0},
    ),
    "C03 llama.cpp tells no occupancy: unknown, not 0": (
        "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\nllamacpp:n_tokens_max 4096",
        {"engine": "llamacpp", "kv_occupancy": None, "running": 1.0, "waiting": 0.0},
    ),
    "C04 a NaN costs nothing but itself": (
        "llamacpp:n_busy_slots_per_decode -nan\nllamacpp:requests_processing 2\nx_ratio +Inf\ny_ratio Nan",
        {"running": 2.0, "dropped": 3},
    ),
    "C04 a NaN occupancy is unknown": (
        'vllm:kv_cache_usage_perc{engine="0"} nan\nvllm:num_requests_running{engine="0"} 1',
        {"kv_occupancy": None, "running": 1.0, "dropped": 1},
    ),
    "a count that no integer of the wire could hold is unknown": (
        'vllm:num_requests_running{engine="0"} 1e300\nvllm:num_preemptions_total{engine="0"} 1e17',
        {"running": None, "preemptions_total": None},
    ),
    "C05 several ranks: shares are the highest, counts are added": (
        (
            'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.90\n'
            'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.20\n'
            'vllm:num_requests_running{engine="0",model_name="m"} 8\n'
            'vllm:num_requests_running{engine="1",model_name="m"} 1'
        ),
        {"kv_occupancy": 0.9, "running": 9.0, "ranks": (Rank("0", 0.9, None), Rank("1", 0.2, None)), "models": ("m",)},
    ),
    "C12 vLLM's perc is a share": ('vllm:kv_cache_usage_perc{model_name="m"} 0.93', {"kv_occupancy": 0.93}),
    "C12 Triton's fraction": (
        (
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.93\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 930\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 1000'
        ),
        {"engine": "triton", "kv_occupancy": 0.93},
    ),
    "C12 Triton's used over max": (
        (
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 930\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 1000\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="m"} 64'
        ),
        {"kv_occupancy": 0.93, "kv_capacity_tokens": 64000.0},
    ),
    "Triton's capacity over two models": (
        (
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="a"} 100\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="b"} 50\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="a"} 64\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="b"} 64'
        ),
        {"kv_capacity_tokens": 9600.0},
    ),
    "C12 a max of 0 gives unknown, no error": (
        (
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 0\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 0'
        ),
        {"kv_occupancy": None},
    ),
    "C12 a share over 1 is refused and counted, never divided": (
        'vllm:kv_cache_usage_perc{engine="0"} 93',
        {"kv_occupancy": None, "dropped": 1},
    ),
    "a share that rounds over 1 is 1": ('vllm:kv_cache_usage_perc{engine="0"} 1.0001', {"kv_occupancy": 1.0}),
    "several processes tell the same gauge, one of them truly": (
        (
            'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="9"} 0.65\n'
            'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="8"} 0.0\n'
            'vllm:num_requests_running{engine="0",model_name="m",pid="9"} 4\n'
            'vllm:num_requests_running{engine="0",model_name="m",pid="8"} 0'
        ),
        {"kv_occupancy": 0.65, "running": 4.0, "ranks": ()},
    ),
    "vLLM's capacity in tokens": (
        'vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="440000",num_gpu_blocks="27000"} 1.0',
        {"kv_capacity_tokens": 440000.0},
    ),
    "vLLM's capacity in blocks": (
        (
            'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1.0\n'
            'vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="500"} 1.0'
        ),
        {"kv_capacity_tokens": 24000.0, "ranks": (Rank("0", None, 16000.0), Rank("1", None, 8000.0))},
    ),
    "a capacity that is not told yet": (
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="None"} 1.0',
        {"kv_capacity_tokens": None, "engine": "vllm"},
    ),
    "vLLM's waiting by reason alone": (
        (
            'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 3\n'
            'vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 1\n'
            'vllm:num_requests_running{engine="0"} 1'
        ),
        {"waiting": 4.0},
    ),
    "vLLM's counters": (
        (
            'vllm:num_preemptions_total{engine="0"} 4\nvllm:prefix_cache_queries_total{engine="0"} 200\n'
            'vllm:prefix_cache_hits_total{engine="0"} 50\nvllm:num_requests_running{engine="0"} 0'
        ),
        {"preemptions_total": 4.0, "prefix_hits_total": 50.0, "prefix_queries_total": 200.0, "prefix_hit_ratio": 0.25},
    ),
    "vLLM's older prefix counters": (
        (
            'vllm:gpu_prefix_cache_queries_total{engine="0"} 100\nvllm:gpu_prefix_cache_hits_total{engine="0"} 40\n'
            'vllm:num_requests_running{engine="0"} 0'
        ),
        {"prefix_hit_ratio": 0.4},
    ),
    "no look-ups have no ratio": (
        "vllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\nvllm:num_requests_running 0",
        {"prefix_hit_ratio": None},
    ),
    "CRLF and an unescaped quote cost nothing": (
        'vllm:kv_cache_usage_perc{engine="0",model_name="or"g/m"} 0.5\r\nvllm:num_requests_running{engine="0"} 2\r',
        {"kv_occupancy": 0.5, "running": 2.0, "models": ('or"g/m',), "dropped": 0},
    ),
    "SGLang: tensor-parallel ranks tell the same, data-parallel ranks add": (
        (
            'sglang:num_running_reqs{dp_rank="0",tp_rank="0"} 5\nsglang:num_running_reqs{dp_rank="0",tp_rank="1"} 5\n'
            'sglang:num_running_reqs{dp_rank="1",tp_rank="2"} 2\nsglang:token_usage{dp_rank="0",tp_rank="0"} 0.4\n'
            'sglang:token_usage{dp_rank="1",tp_rank="2"} 0.7\nsglang:max_total_num_tokens{dp_rank="0",tp_rank="0"} 900'
        ),
        {"running": 7.0, "kv_occupancy": 0.7, "ranks": (Rank("0", 0.4, 900.0), Rank("1", 0.7, None))},
    ),
    "SGLang's queue by priority": (
        'sglang:num_queue_reqs{priority="0"} 2\nsglang:num_queue_reqs{priority="1"} 3\nsglang:token_usage 0',
        {"waiting": 5.0},
    ),
    "SGLang's last report of its cache": (
        "sglang:cache_hit_rate 0.25\nsglang:token_usage 0",
        {"prefix_hit_ratio": 0.25},
    ),
    "a value of -1 is none": (
        "sglang:token_usage -1\nsglang:num_running_reqs -1",
        {"kv_occupancy": None, "running": None},
    ),
    "TGI has no occupancy": (
        "tgi_queue_size 2\ntgi_batch_current_size 14\ntgi_batch_current_max_tokens 9\ntgi_batch_max_total_tokens 112",
        {"engine": "tgi", "running": 14.0, "waiting": 2.0, "kv_occupancy": None, "kv_capacity_tokens": 112.0},
    ),
    "TensorRT-LLM": (
        (
            'trtllm_num_requests_running{model_name="m"} 5\ntrtllm_kv_cache_utilization{model_name="m"} 0.18\n'
            'trtllm_kv_cache_max_blocks{model_name="m"} 100\ntrtllm_kv_cache_tokens_per_block{model_name="m"} 32'
        ),
        {"engine": "trtllm", "running": 5.0, "kv_occupancy": 0.18, "kv_capacity_tokens": 3200.0},
    ),
    "Triton with vLLM behind it is Triton": (
        (
            'nv_inference_request_success{model="m",version="1"} 3\nnv_inference_pending_request_count{model="m"} 2\n'
            'vllm:prompt_tokens_total{model="m",version="1"} 9'
        ),
        {"engine": "triton", "waiting": 2.0, "kv_occupancy": None},
    ),
    "LMDeploy": (
        'lmdeploy:gpu_cache_usage_perc{engine="0",model_name="m"} 0.92\nlmdeploy:num_requests_running{engine="0"} 3',
        {"engine": "lmdeploy", "kv_occupancy": 0.92, "running": 3.0},
    ),
    "a Dynamo frontend that passes vLLM's metrics on is Dynamo": (
        (
            'dynamo_frontend_active_requests{model="m"} 4\ndynamo_frontend_queued_requests{model="m"} 1\n'
            "dynamo_frontend_model_total_kv_blocks 9\ndynamo_frontend_model_kv_cache_block_size 16\n"
            'vllm:num_requests_running{model="m",model_name="m"} 9'
        ),
        {"engine": "dynamo", "running": 4.0, "waiting": 1.0, "kv_capacity_tokens": 144.0},
    ),
    "LiteLLM": ("litellm_in_flight_requests 3", {"engine": "litellm", "running": 3.0, "kv_occupancy": None}),
    "C10 a page of the runtime alone knows nothing": (
        "python_info 1\nprocess_cpu_seconds_total 5",
        {"engine": None, "running": None, "waiting": None, "kv_occupancy": None, "dropped": 0},
    ),
    "nothing": ("", {"engine": None, "kv_occupancy": None}),
}


@pytest.mark.parametrize("sentence", PAGES)
def test_pages(sentence: str) -> None:
    text, expect = PAGES[sentence]
    sample = read(text.encode() + b"\n")
    assert {key: getattr(sample, key) for key in expect} == expect


def test_a_named_engine_is_taken_at_its_word() -> None:
    text = b"vllm:kv_cache_usage_perc 0.5\n"
    assert read(text, "vllm").kv_occupancy == 0.5
    assert read(text, "sglang") == ServerSample("sglang")
    assert read(text, "ollama") == ServerSample("ollama")
    assert read(text, "nobody").engine is None


def test_recorded_pages() -> None:
    vllm = read((CAPTURES / "vllm_metrics_after.txt").read_bytes(), AUTO)
    assert vllm == ServerSample(
        engine="vllm", running=0.0, waiting=0.0, kv_occupancy=0.0, kv_capacity_tokens=1048576.0, preemptions_total=0.0,
        preemptions=(("0", 0.0),),
        prefix_hits_total=0.0, prefix_queries_total=215.0, prefix_hit_ratio=0.0, models=("tiny",),
    )  # fmt: skip
    llamacpp = read((CAPTURES / "llamasrv_metrics_busy.txt").read_bytes())
    assert llamacpp == ServerSample("llamacpp", running=1.0, waiting=0.0)
    assert read((CAPTURES / "litellm_metrics.txt").read_bytes()).engine == "litellm"


def test_paths() -> None:
    assert metrics_path("vllm") == "/metrics"
    assert metrics_path("trtllm") == "/prometheus/metrics"
    assert metrics_path("ollama") is None
    assert metrics_path(AUTO) == "/metrics"
    assert all(metrics_path(name) == engine.metrics_path for name, engine in ENGINES.items())


def test_c11_a_counter_grows_over_a_restart_too() -> None:
    values = [100.0, 110.0, 120.0, 5.0, 15.0]
    assert sum(map(increase, values, values[1:])) == 35
    assert increase(None, 5.0) == 0
    assert increase(5.0, None) == 0


def test_the_hit_ratio_of_an_interval() -> None:
    def sample(hits: float | None, queries: float | None) -> ServerSample:
        return ServerSample("vllm", prefix_hits_total=hits, prefix_queries_total=queries)

    assert hit_ratio(sample(10, 100), sample(40, 160)) == 0.5
    assert hit_ratio(sample(10, 100), sample(10, 100)) is None
    assert hit_ratio(sample(10, 100), sample(5, 20)) == 0.25
    assert hit_ratio(sample(None, None), sample(5, 20)) is None


def test_llamacpps_slots_tell_its_occupancy() -> None:
    assert read_slots((CAPTURES / "llamasrv_slots_busy.json").read_bytes()) == (17 + 1 + 21) / (4 * 2048)
    reading = (
        b'[{"n_ctx": 100, "is_processing": true, "n_prompt_tokens": 90, "n_prompt_tokens_processed": 30,'
        b' "n_prompt_tokens_cache": 10, "next_token": [{"n_decoded": 0}]}]'
    )
    assert read_slots(reading) == 0.4
    older = b'[{"n_ctx": 100, "is_processing": true, "n_prompt_tokens": 20, "next_token": {"n_decoded": 5}}]'
    assert read_slots(older) == 0.25
    assert read_slots(b'[{"n_ctx": 10, "is_processing": true, "n_prompt_tokens": 20}]') == 1.0


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"[1]", b'{"error": {"code": 501}}', b'[{"n_ctx": "x"}]', b"\xff"])
def test_no_slots_no_occupancy(body: bytes) -> None:
    assert read_slots(body) is None


LINE = st.builds(
    lambda name, labels, value: f"{name}{labels} {value}",
    st.sampled_from([name for engine in ENGINES.values() for name in engine.probe] + ["vllm:cache_config_info"]),
    st.sampled_from(["", "{}", '{engine="0"}', '{engine="1",pid="3"}', '{num_gpu_blocks="x",block_size="-1"}', "{"]),
    st.sampled_from(["0", "1", "-1", "1e309", "NaN", "0.5", "x", "1e300", ""]),
)


@given(lines=st.lists(LINE, max_size=12), engine=st.sampled_from([AUTO, *ENGINES]))
def test_any_page_gives_a_sample_of_sane_values(lines: list[str], engine: str) -> None:
    sample = read("\n".join(lines).encode(), engine)
    assert sample.kv_occupancy is None or 0 <= sample.kv_occupancy <= 1
    assert sample.prefix_hit_ratio is None or 0 <= sample.prefix_hit_ratio <= 1
    for value in (sample.running, sample.waiting, sample.kv_capacity_tokens, sample.preemptions_total):
        assert value is None or value >= 0


def test_c11_one_ranks_restart_hides_no_preemption_of_another() -> None:
    def at(*counts: int) -> ServerSample:
        lines = [f'vllm:num_preemptions_total{{engine="{rank}"}} {count}' for rank, count in enumerate(counts)]
        return read("\n".join([*lines, "vllm:num_requests_running 0"]).encode())

    assert preempted(at(100, 50), at(103, 2)) == 5
    assert preempted(at(100), at(103, 2)) == 3  # of a rank that was not there before nothing is known
    assert preempted(at(), at(7)) == 0
