"""The engine map, part two: what each engine tells of its requests, as data.

`engines` says where an engine's state stands at this moment; here stand its own histograms of latency and its counters
of tokens and outcomes, those alone that mean what ours mean. What looks like one of ours and is not, is left out and
named in `untold`: a time per engine step is no time per output token of a request, and the two must never be merged.
A name on the page decides, never a version: of `names` the first is read, so that a renamed series counts once.
"""

from dataclasses import dataclass

from sidecar.engine.engines import Candidates, Series
from slo.signals import E2E, OUTCOME, REQUESTS, TOKEN_TYPE, TOKENS, TPOT, TTFT, Metric

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """An engine's histogram of one of our latencies.

    `per_s`: how many of its unit make a second. `without`: labels of series that speak of other requests.
    `of_running`: only models that the engine's `running` names count; the others are stages of the same requests.
    `zeros`: a counter of the values of 0 in it that stand for requests without a value. `needs`: when it is there.
    """

    metric: Metric
    names: tuple[str, ...]
    per_s: int = 1
    without: Pairs = ()
    of_running: bool = False
    zeros: Candidates = ()
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """A counter that is one of ours, at a value of its attribute: `value`, or what `values` gives for the text of
    `label`, by how that begins, the first that fits. Rows of one metric and value are added up."""

    metric: Metric
    at: Candidates
    value: str = ""
    label: str = ""
    values: Pairs = ()


@dataclass(frozen=True, slots=True)
class Told:
    """All that an engine tells of requests; `untold`: by signal, why it cannot, in words that follow its name."""

    histograms: tuple[Histogram, ...] = ()
    counts: tuple[Count, ...] = ()
    untold: Pairs = ()


def _at(*names: str, match: Pairs = ()) -> Candidates:
    return (Series(names, match),)


def _tokens(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[Count, ...]:
    return Count(TOKENS, _at(*inputs), "input"), Count(TOKENS, _at(*outputs), "output")


ATTRIBUTE = {TOKENS: TOKEN_TYPE, REQUESTS: OUTCOME}
"""The attribute that a `Count` of a metric has."""

_BY_STATUS = (
    ("2", "ok"), ("429", "quota"), ("499", "cancelled"), ("4", "client_error"), ("503", "rejected"),
    ("504", "timeout"), ("5", "error"),
)  # fmt: skip
_FINISHED = (
    ("stop", "ok"), ("length", "ok"), ("repetition", "ok"), ("tool_calls", "ok"), ("abort", "cancelled"),
    ("error", "error"),
)  # fmt: skip

VLLM = Told(
    histograms=(
        Histogram(TTFT, ("vllm:time_to_first_token_seconds",), needs="not with --disable-log-stats"),
        Histogram(
            TPOT,
            ("vllm:request_time_per_output_token_seconds",),
            # An answer of one token observes 0; as many of those ended as the histogram of lengths has at most 1.
            zeros=(
                Series(("vllm:request_generation_tokens_bucket",), (("le", "1.0"),)),
                Series(("vllm:request_generation_tokens_bucket",), (("le", "1"),)),
            ),
            needs="since 0.11; its older time_per_output_token_seconds is per engine step, not per request",
        ),
        Histogram(E2E, ("vllm:e2e_request_latency_seconds",), needs="not with --disable-log-stats"),
    ),
    counts=(
        *_tokens(
            ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
            ("vllm:generation_tokens_total", "vllm:generation_tokens"),
        ),
        Count(
            REQUESTS,
            _at("vllm:request_success_total", "vllm:request_success"),
            label="finished_reason",
            values=_FINISHED,
        ),
        Count(REQUESTS, _at("vllm:admission_rejections_total", "vllm:admission_rejections"), "rejected"),
    ),
    untold=(("availability", "counts neither clients that left nor answers that broke off"),),
)


def _sglang(name: str) -> tuple[str, ...]:
    return f"sglang:{name}", f"sglang_{name}"


_NOT_STREAMED = (("is_streaming", "false"),)

SGLANG = Told(
    histograms=(
        Histogram(TTFT, _sglang("time_to_first_token_seconds"), without=_NOT_STREAMED, needs="with --enable-metrics"),
        Histogram(
            TPOT,
            _sglang("request_time_per_output_token_seconds"),
            without=_NOT_STREAMED,
            needs="seen in 0.5.23; inter_token_latency_seconds is per token, not per request",
        ),
        Histogram(E2E, _sglang("e2e_request_latency_seconds"), needs="with --enable-metrics"),
    ),
    counts=_tokens(_sglang("prompt_tokens_total"), _sglang("generation_tokens_total")),
    untold=(("availability", "counts requests as finished for whatever reason"),),
)

TGI = Told(
    histograms=(Histogram(E2E, ("tgi_request_duration",)),),
    counts=(
        *_tokens(("tgi_request_input_length_sum",), ("tgi_request_generated_tokens_sum",)),
        Count(REQUESTS, _at("tgi_request_success"), "ok"),
        Count(
            REQUESTS,
            _at("tgi_request_failure"),
            label="err",
            values=(
                ("overloaded", "rejected"),
                ("validation", "client_error"),
                ("template", "client_error"),
                ("dropped", "cancelled"),
                ("incomplete", "error"),
                ("generation", "error"),
            ),
        ),
    ),
    untold=(
        ("ttft", "does not tell when a first token came"),
        ("tpot", "tells a mean time per token that includes the prefill"),
    ),
)

LLAMACPP = Told(
    counts=(
        # Newer builds count cached prompt tokens apart.
        *_tokens(("llamacpp:prompt_tokens_total",), ("llamacpp:tokens_predicted_total",)),
        Count(TOKENS, _at("llamacpp:prompt_tokens_cached_total"), "input"),
    ),
    untold=tuple((signal, "has no histograms, only sums") for signal in ("ttft", "tpot", "e2e")),
)


def _trtllm(name: str) -> tuple[str, ...]:
    """Its own prefix; that of Dynamo 0.7, which passes it on; and none, as in 1.1.0rc5."""
    return f"trtllm_{name}", f"trtllm:{name}", name


TRTLLM = Told(
    histograms=tuple(
        Histogram(metric, _trtllm(name), needs="with return_perf_metrics")
        for metric, name in (
            (TTFT, "time_to_first_token_seconds"),
            (TPOT, "time_per_output_token_seconds"),
            (E2E, "e2e_request_latency_seconds"),
        )
    ),
    counts=(
        *_tokens(_trtllm("prompt_tokens_total"), _trtllm("generation_tokens_total")),
        Count(REQUESTS, _at(*_trtllm("request_success_total")), "ok"),
        Count(REQUESTS, _at(*_trtllm("request_error_total")), label="http_code", values=_BY_STATUS),
    ),
)

TRITON = Told(
    histograms=(
        # Triton's vLLM backend tells vLLM's names, of which its time per output token is per step.
        Histogram(TTFT, ("vllm:time_to_first_token_seconds",)),
        Histogram(
            TTFT,
            ("nv_inference_first_response_histogram_ms",),
            per_s=1000,
            of_running=True,
            needs="with --metrics-config histogram_latencies=true",
        ),
        Histogram(E2E, ("vllm:e2e_request_latency_seconds",), needs="of the vLLM backend alone; else sums only"),
    ),
    counts=_tokens(("vllm:prompt_tokens_total",), ("vllm:generation_tokens_total",)),
    untold=(("tpot", "has none per request"),),
)

LMDEPLOY = Told(
    histograms=(
        Histogram(TTFT, ("lmdeploy:time_to_first_token_seconds",)),
        Histogram(E2E, ("lmdeploy:e2e_request_latency_seconds",)),
    ),
    counts=(
        *_tokens(("lmdeploy:prompt_tokens_total",), ("lmdeploy:generation_tokens_total",)),
        Count(REQUESTS, _at("lmdeploy:request_success_total"), label="finished_reason", values=_FINISHED),
    ),
    untold=(("tpot", "tells a time per output token of each iteration, not of each request"),),
)

DYNAMO = Told(
    histograms=(
        Histogram(TTFT, ("dynamo_frontend_time_to_first_token_seconds",)),
        Histogram(E2E, ("dynamo_frontend_request_duration_seconds",)),
    ),
    counts=(
        *_tokens(("dynamo_frontend_input_sequence_tokens_sum",), ("dynamo_frontend_output_tokens_total",)),
        Count(REQUESTS, _at("dynamo_frontend_requests_total", match=(("status", "success"),)), "ok"),
    ),
    untold=(("tpot", "tells a time between tokens, not one per request"),),
)

LITELLM = Told(
    histograms=(
        Histogram(TTFT, ("litellm_llm_api_time_to_first_token_metric",)),
        Histogram(E2E, ("litellm_request_total_latency_metric",)),
    ),
    counts=(
        *_tokens(("litellm_input_tokens_metric_total",), ("litellm_output_tokens_metric_total",)),
        Count(REQUESTS, _at("litellm_proxy_total_requests_metric_total"), label="status_code", values=_BY_STATUS),
    ),
    untold=(("tpot", "divides the time to the first token by the tokens of a stream"),),
)

TOLD = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "tgi": TGI,
    "llamacpp": LLAMACPP,
    "trtllm": TRTLLM,
    "triton": TRITON,
    "lmdeploy": LMDEPLOY,
    "dynamo": DYNAMO,
    "litellm": LITELLM,
    "ollama": Told(untold=tuple((signal, "has no metrics page") for signal in ("ttft", "tpot", "e2e"))),
}
"""By engine."""

STARTED = "process_start_time_seconds"
"""A gauge of most pages: when the process behind it began."""


def names() -> frozenset[str]:
    """Every metric of a page that this map reads."""
    histograms = [row for told in TOLD.values() for row in told.histograms]
    candidates = [count.at for told in TOLD.values() for count in told.counts] + [row.zeros for row in histograms]
    series = {name for some in candidates for one in some for name in one.names}
    parts = {f"{name}_{part}" for row in histograms for name in row.names for part in ("bucket", "sum", "count")}
    return frozenset((STARTED, *series, *parts))
