"""The engine map: where each inference server tells its state, as data.

A signal has candidates in order of preference: the first whose series are on the page is read, so that names which
changed by version are never added up. Meanings that differ between engines stand in `kv_means`. To add an engine, or a
name that a new version brings, is to add data here and a recorded page to the tests.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """Where a value stands: a metric (by any of its `names`), the labels it must have, and the label that holds the
    number when it is not the value itself. `times` and `over` multiply or divide by another series."""

    names: tuple[str, ...]
    match: tuple[tuple[str, str], ...] = ()
    label: str = ""
    times: "Series | None" = None
    over: "Series | None" = None


Candidates = tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """What `stream_options.include_usage` does to an engine's streams besides adding a chunk with `choices: []`.

    `moves_fingerprint`: `system_fingerprint` stands in that chunk instead of the one that finishes the answer.
    `only_there`: members that a stream has in that chunk alone, so not without the ask.
    """

    moves_fingerprint: bool = False
    only_there: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """One server's map. `probe`: metrics of which one shows that it is this engine. `rank_label` tells data-parallel
    ranks apart; series that differ in `duplicate_labels` alone are the same value told by several processes.

    `usage_chunk`: what asking for usage does to a stream, where its source shows that the chunk can be taken out again
    without a trace. None elsewhere: llama.cpp would move `timings`, which count the tokens without being asked;
    LMDeploy and LiteLLM put usage beside choices; the others' streams were not looked into."""

    name: str
    probe: tuple[str, ...] = ()
    metrics_path: str | None = "/metrics"
    rank_label: str = ""
    duplicate_labels: tuple[str, ...] = ("pid",)
    model_labels: tuple[str, ...] = ("model_name", "model")
    running: Candidates = ()
    waiting: Candidates = ()
    kv_occupancy: Candidates = ()
    kv_capacity_tokens: Candidates = ()
    preemptions: Candidates = ()
    prefix_hits: Candidates = ()
    prefix_queries: Candidates = ()
    prefix_hit_ratio: Candidates = ()
    kv_means: str = "unknown to this engine's metrics"
    overload_429: bool = False
    usage_chunk: UsageChunk | None = None


def _at(*names: str, match: tuple[tuple[str, str], ...] = ()) -> Series:
    return Series(names, match)


def _in_label(name: str, label: str, *, times: Series | None = None) -> Series:
    return Series((name,), label=label, times=times)


_VLLM_CONFIG = "vllm:cache_config_info"

VLLM = Engine(
    name="vllm",
    probe=(
        "vllm:num_requests_running",
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        _VLLM_CONFIG,
    ),
    rank_label="engine",
    running=(_at("vllm:num_requests_running"),),
    waiting=(_at("vllm:num_requests_waiting"), _at("vllm:num_requests_waiting_by_reason")),
    kv_occupancy=(_at("vllm:kv_cache_usage_perc"), _at("vllm:gpu_cache_usage_perc")),
    kv_capacity_tokens=(
        _in_label(_VLLM_CONFIG, "kv_cache_size_tokens"),
        _in_label(_VLLM_CONFIG, "num_gpu_blocks", times=_in_label(_VLLM_CONFIG, "block_size")),
    ),
    preemptions=(_at("vllm:num_preemptions_total", "vllm:num_preemptions"),),
    prefix_hits=(
        _at("vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits"),
        _at("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits"),
    ),
    prefix_queries=(
        _at("vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries"),
        _at("vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries"),
    ),
    prefix_hit_ratio=(_at("vllm:gpu_prefix_cache_hit_rate"),),
    kv_means="blocks of running requests; cached blocks without a request count as free",
    usage_chunk=UsageChunk(moves_fingerprint=True, only_there=("metrics",)),
)


def _sglang(name: str) -> Series:
    return _at(f"sglang:{name}", f"sglang_{name}")


SGLANG = Engine(
    name="sglang",
    probe=("sglang:num_running_reqs", "sglang:token_usage", "sglang_num_running_reqs", "sglang_token_usage"),
    rank_label="dp_rank",
    duplicate_labels=("pid", "tp_rank", "pp_rank", "moe_ep_rank"),
    running=(_sglang("num_running_reqs"),),
    waiting=(_sglang("num_queue_reqs"),),
    kv_occupancy=(_sglang("token_usage"),),
    kv_capacity_tokens=(_sglang("max_total_num_tokens"),),
    preemptions=(_sglang("num_retracted_requests_total"),),
    prefix_hits=(_sglang("cached_tokens_total"),),
    prefix_queries=(_sglang("prompt_tokens_total"),),
    prefix_hit_ratio=(_sglang("cache_hit_rate"),),
    kv_means="tokens of running requests, to the hundredth; evictable cached tokens count as free",
    usage_chunk=UsageChunk(),
)

TGI = Engine(
    name="tgi",
    probe=("tgi_request_count", "tgi_queue_size", "tgi_batch_current_size"),
    running=(_at("tgi_batch_current_size"),),
    waiting=(_at("tgi_queue_size"),),
    kv_capacity_tokens=(_at("tgi_batch_max_total_tokens"),),
    overload_429=True,
)

LLAMACPP = Engine(
    name="llamacpp",
    probe=("llamacpp:requests_processing", "llamacpp:n_decode_total"),
    running=(_at("llamacpp:requests_processing"),),
    waiting=(_at("llamacpp:requests_deferred"),),
    kv_occupancy=(_at("llamacpp:kv_cache_usage_ratio"),),
    kv_means="cells in use; builds since 2025 tell it on /slots only, where a cache that slots share counts for each",
)

TRTLLM = Engine(
    name="trtllm",
    probe=("trtllm_num_requests_running", "trtllm_request_success_total", "trtllm_e2e_request_latency_seconds_count"),
    metrics_path="/prometheus/metrics",
    running=(_at("trtllm_num_requests_running"),),
    waiting=(_at("trtllm_num_requests_waiting"),),
    kv_occupancy=(
        _at("trtllm_kv_cache_utilization"),
        Series(("trtllm_kv_cache_used_blocks",), over=_at("trtllm_kv_cache_max_blocks")),
    ),
    kv_capacity_tokens=(Series(("trtllm_kv_cache_max_blocks",), times=_at("trtllm_kv_cache_tokens_per_block")),),
    prefix_hit_ratio=(_at("trtllm_kv_cache_hit_rate"),),
    kv_means="used blocks over all, of the last reported iteration",
    usage_chunk=UsageChunk(),
)

_TRITON_KV = "nv_trt_llm_kv_cache_block_metrics"


def _triton_kv(kind: str) -> Series:
    return _at(_TRITON_KV, match=(("kv_cache_block_type", kind),))


def _triton_requests(kind: str) -> Series:
    return _at("nv_trt_llm_request_metrics", match=(("request_type", kind),))


TRITON = Engine(
    name="triton",
    probe=("nv_trt_llm_request_metrics", "nv_inference_request_success", _TRITON_KV),
    running=(_triton_requests("scheduled"), _triton_requests("active")),
    waiting=(_triton_requests("waiting"), _at("nv_inference_pending_request_count")),
    kv_occupancy=(
        _triton_kv("fraction"),
        Series((_TRITON_KV,), (("kv_cache_block_type", "used"),), over=_triton_kv("max")),
    ),
    kv_capacity_tokens=(Series((_TRITON_KV,), (("kv_cache_block_type", "max"),), times=_triton_kv("tokens_per")),),
    kv_means="used blocks over all, of the TensorRT-LLM backend",
)

LMDEPLOY = Engine(
    name="lmdeploy",
    probe=("lmdeploy:num_requests_running", "lmdeploy:gpu_cache_usage_perc"),
    rank_label="engine",
    running=(_at("lmdeploy:num_requests_running"),),
    waiting=(_at("lmdeploy:num_requests_waiting"),),
    kv_occupancy=(_at("lmdeploy:gpu_cache_usage_perc"),),
    prefix_hit_ratio=(_at("lmdeploy:prefix_cache_hit_rate"),),
    kv_means="blocks not free; prefix-cached blocks count as used",
)

DYNAMO = Engine(
    name="dynamo",
    probe=("dynamo_frontend_requests_total", "dynamo_frontend_model_ready", "dynamo_frontend_active_requests"),
    running=(_at("dynamo_frontend_active_requests"), _at("dynamo_frontend_inflight_requests")),
    waiting=(_at("dynamo_frontend_queued_requests"),),
    kv_occupancy=(
        _at("dynamo_component_gpu_cache_usage_percent"),
        _at("dynamo_component_kvstats_gpu_cache_usage_percent"),
    ),
    kv_capacity_tokens=(
        Series(("dynamo_frontend_model_total_kv_blocks",), times=_at("dynamo_frontend_model_kv_cache_block_size")),
    ),
    kv_means="the worker's share of blocks in use, 0 to 1 whatever its name says",
)

LITELLM = Engine(
    name="litellm",
    probe=("litellm_in_flight_requests", "litellm_proxy_total_requests_metric_total"),
    running=(_at("litellm_in_flight_requests"),),
)

OLLAMA = Engine(name="ollama", metrics_path=None)

# Those that pass another engine's metrics through come first: their own metrics tell them apart.
ENGINES = {
    engine.name: engine for engine in (DYNAMO, TRITON, VLLM, SGLANG, TGI, LLAMACPP, TRTLLM, LMDEPLOY, LITELLM, OLLAMA)
}
