"""What the engine tells Prometheus, under the names, labels and bounds of vLLM 0.33, in a registry of its own.

It is faithful to what vLLM counts, oddities included, because tools that read vLLM must read this the same way:
- a request whose client left enters TTFT and the token counters, and nothing else, not even
  `request_success_total`;
- an answer of one token observes a time per output token of 0;
- `prompt_tokens_total` grows by the whole prompt when the first token comes;
- KV usage is the share of blocks that nobody could take.
Two things vLLM does not have: several served models share one engine here, so its gauges repeat under each name; and
`demo_server:preempted_tokens_total` counts what sequences lost by preemption: what the prefix cache has not kept of it
until they run again is recomputed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from demo_server.sequence import FinishReason

TTFT_BOUNDS_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_BOUNDS_S = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_BOUNDS_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0),
    *(240.0, 480.0, 960.0, 1920.0, 7680.0),
)
# vLLM pre-creates these; `abort` and `repetition` never grow here.
FINISHED_REASONS = (*get_args(FinishReason), "abort", "repetition")
PAGE_TYPE = CONTENT_TYPE_LATEST
_LABELS = ("model_name", "engine")


@dataclass(slots=True)
class Timeline:
    """When things happened to one request, on the engine's clock, in seconds; None has not happened yet."""

    arrived_s: float
    scheduled_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None


class ModelMetrics:
    """The metrics of one served model, every series created at 0. The engine thread calls it; any thread may scrape."""

    def __init__(self, families: "Families", model: str) -> None:
        counters = families.counters
        self.running = families.running.labels(model, "0")
        self.waiting = families.waiting.labels(model, "0")
        self._preemptions = counters["num_preemptions"].labels(model, "0")
        self._preempted_tokens = families.preempted_tokens.labels(model, "0")
        self._prompt_tokens = counters["prompt_tokens"].labels(model, "0")
        self._prefix_queries = counters["prefix_cache_queries"].labels(model, "0")
        self._prefix_hits = counters["prefix_cache_hits"].labels(model, "0")
        self._generation_tokens = counters["generation_tokens"].labels(model, "0")
        self._success = {reason: families.success.labels(model, "0", reason) for reason in FINISHED_REASONS}
        self._histograms = {name: family.labels(model, "0") for name, family in families.histograms.items()}

    def admitted(self, tokens: int, reused: int) -> None:
        """A sequence began to run; `reused` of its tokens were in the cache."""
        self._prefix_queries.inc(tokens)
        self._prefix_hits.inc(reused)

    def preempted(self, computed: int) -> None:
        """A running sequence lost its blocks, with `computed` tokens in them."""
        self._preemptions.inc()
        self._preempted_tokens.inc(computed)

    def token(self, timeline: Timeline, prompt_tokens: int, now_s: float) -> None:
        """A token came; notes it in `timeline` and counts it."""
        self._generation_tokens.inc()
        if timeline.last_token_s is None:
            timeline.first_token_s = now_s
            self._prompt_tokens.inc(prompt_tokens)
            self._observe("time_to_first_token_seconds", now_s - timeline.arrived_s)
        else:
            self._observe("inter_token_latency_seconds", now_s - timeline.last_token_s)
        timeline.last_token_s = now_s

    def finished(self, timeline: Timeline, output_tokens: int, reason: FinishReason) -> None:
        """A request ended by itself after its last token."""
        self._success[reason].inc()
        scheduled_s, first_s, last_s = timeline.scheduled_s, timeline.first_token_s, timeline.last_token_s
        if scheduled_s is None or first_s is None or last_s is None:
            return
        self._observe("e2e_request_latency_seconds", last_s - timeline.arrived_s)
        self._observe("request_queue_time_seconds", scheduled_s - timeline.arrived_s)
        self._observe("request_prefill_time_seconds", first_s - scheduled_s)
        self._observe("request_decode_time_seconds", last_s - first_s)
        self._observe("request_inference_time_seconds", last_s - scheduled_s)
        per_token_s = (last_s - first_s) / (output_tokens - 1) if output_tokens > 1 else 0.0
        self._observe("request_time_per_output_token_seconds", per_token_s)

    def _observe(self, name: str, value_s: float) -> None:
        self._histograms[name].observe(value_s)


class Families:
    """All metric families of one server, in one registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.running = self._gauge("vllm:num_requests_running", "Requests in the running batch.")
        self.waiting = self._gauge("vllm:num_requests_waiting", "Requests waiting to be scheduled.")
        self.kv_usage = self._gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use; 1 is all of them.")
        self.cache_config = Gauge(
            "vllm:cache_config_info",
            "The KV cache, as labels.",
            (*_LABELS, "block_size", "num_gpu_blocks", "kv_cache_size_tokens"),
            registry=self.registry,
        )
        self.counters = {
            name: self._counter(f"vllm:{name}", text)
            for name, text in {
                "num_preemptions": "Running sequences that lost their blocks.",
                "prompt_tokens": "Prompt tokens processed.",
                "generation_tokens": "Tokens generated.",
                "prefix_cache_queries": "Tokens looked up in the prefix cache.",
                "prefix_cache_hits": "Tokens found in the prefix cache.",
            }.items()
        }
        self.preempted_tokens = self._counter(
            "demo_server:preempted_tokens", "Computed tokens that sequences lost by preemption."
        )
        self.success = Counter(
            "vllm:request_success",
            "Requests that ended by themselves.",
            (*_LABELS, "finished_reason"),
            registry=self.registry,
        )
        self.histograms = {
            name: Histogram(f"vllm:{name}", text, _LABELS, buckets=bounds, registry=self.registry)
            for name, text, bounds in _HISTOGRAMS
        }

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, _LABELS, registry=self.registry)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, _LABELS, registry=self.registry)


_HISTOGRAMS = (
    ("time_to_first_token_seconds", "Arrival to first token.", TTFT_BOUNDS_S),
    ("inter_token_latency_seconds", "Between two tokens of a request.", TOKEN_BOUNDS_S),
    ("request_time_per_output_token_seconds", "A request's mean time per token after its first.", TOKEN_BOUNDS_S),
    ("e2e_request_latency_seconds", "Arrival to last token.", REQUEST_BOUNDS_S),
    ("request_queue_time_seconds", "Arrival to first scheduling.", REQUEST_BOUNDS_S),
    ("request_prefill_time_seconds", "First scheduling to first token.", REQUEST_BOUNDS_S),
    ("request_decode_time_seconds", "First to last token.", REQUEST_BOUNDS_S),
    ("request_inference_time_seconds", "First scheduling to last token.", REQUEST_BOUNDS_S),
)


class Metrics:
    """The server's metrics: one `ModelMetrics` for each name it serves, and the page a scrape gets."""

    def __init__(self, models: tuple[str, ...]) -> None:
        self._families = Families()
        self._models = {model: ModelMetrics(self._families, model) for model in models}

    def of(self, model: str) -> ModelMetrics:
        """The metrics of one served model."""
        return self._models[model]

    def show_cache(self, *, blocks: int, block_size: int, usage: Callable[[], float]) -> None:
        """Publish the pool's size, and its usage as read at each scrape."""
        for model in self._models:
            self._families.cache_config.labels(model, "0", block_size, blocks, blocks * block_size).set(1)
            self._families.kv_usage.labels(model, "0").set_function(usage)

    def page(self) -> bytes:
        """The registry in Prometheus' text format."""
        return generate_latest(self._families.registry)
