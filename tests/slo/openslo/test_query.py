"""What queries measure: of inference servers, web frameworks and meshes, as people write them."""

from decimal import Decimal

import pytest

from slo.openslo.promise import UncarriedError
from slo.openslo.query import MAX_QUERY_CHARS, Selector, of_ratio, of_threshold, selectors

RATIOS = {
    "vLLM's TTFT": ('sum(rate(vllm:time_to_first_token_seconds_bucket{le="0.5"}[5m]))', "ttft", "500ms"),
    "an edge with a zero": ('x_time_to_first_token_seconds_bucket{le="1.0"}', "ttft", "1s"),
    "TPOT of requests": ('vllm:request_time_per_output_token_seconds_bucket{le="0.05"}', "tpot", "50ms"),
    "our own histogram": ('gen_ai_server_request_duration_seconds_bucket{le="30.0"}', "e2e", "30s"),
    "vLLM's e2e": ("rate(vllm:e2e_request_latency_seconds_bucket{le='10'}[1h])", "e2e", "10s"),
    "Istio, in milliseconds": ('istio_request_duration_milliseconds_bucket{le="250"}', "e2e", "250ms"),
    "Triton, in milliseconds": ('nv_inference_first_response_histogram_ms_bucket{le="500"}', "ttft", "500ms"),
    "a web framework": ('http_request_duration_seconds_bucket{le="0.25"}', "e2e", "250ms"),
}


@pytest.mark.parametrize(("good", "signal", "threshold"), RATIOS.values(), ids=RATIOS.keys())
def test_a_bucket_is_a_latency_at_its_edge(good: str, signal: str, threshold: str) -> None:
    total = good.replace("_bucket", "_count")
    found = of_ratio(good=good, total=total)
    assert (found.signal, found.threshold, found.model, found.percentile) == (signal, threshold, None, None)
    assert of_ratio(bad=f"{total} - {good}", total=total) == found


AVAILABLE = {
    "5xx of HTTP": 'sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))',
    "an outcome of ours": 'firsttoken_requests_total{outcome="error"}',
    "a counter of errors": "rate(litellm_proxy_failed_requests_metric_total[5m])",
    "vLLM's finished requests": 'vllm:request_success_total{finished_reason="abort"}',
}


@pytest.mark.parametrize("bad", AVAILABLE.values(), ids=AVAILABLE.keys())
def test_a_counter_told_apart_by_its_status_is_availability(bad: str) -> None:
    found = of_ratio(bad=bad, total="sum(rate(http_requests_total[{{.window}}]))")
    assert (found.signal, found.threshold) == ("availability", None)
    assert any("bad is by outcome" in note for note in found.notes)


def test_a_model_is_matched_and_other_labels_are_said() -> None:
    where = '{le="0.5", model_name="llama", job="vllm", namespace=~"prod-.*", pod=~".+"}'
    found = of_ratio(good=f"a_ttft_seconds_bucket{where}", total=f"a_ttft_seconds_count{where}")
    assert found.model == "llama"
    assert found.notes == ("job=vllm, namespace=~prod-.* is not carried over: a sidecar counts all that passes by it",)


def test_a_model_that_cannot_be_matched_is_said() -> None:
    good = 'a_ttft_seconds_bucket{le="0.5",model=~"a|b"}'
    found = of_ratio(good=good, total=good.replace("bucket", "count"))
    assert found.model is None
    assert "model=~a|b is not carried over: write match.model by hand" in found.notes


LEFT = {
    "two edges": ('x_ttft_seconds_bucket{le="1"} - x_ttft_seconds_bucket{le="0.5"}', "reads several edges"),
    "a gap between tokens": ('vllm:inter_token_latency_seconds_bucket{le="0.05"}', "is a time between two tokens"),
    "an unknown histogram": ('batch_size_bucket{le="8"}', "is no latency whose name is known"),
    "edges by pattern": ('x_ttft_seconds_bucket{le=~"0.5|0.50"}', "is no edge of a histogram that can be read"),
    "all edges but one": ('x_ttft_seconds_bucket{le!="0.5"}', "selects edges that are not 0.5"),
    "a plain counter": ("sum(things_total)", "is neither a bucket of a latency nor a counter told apart"),
    "no metric": ("vector(1)", "select no metric"),
    "what is slow as good": (
        'x_ttft_seconds_count - x_ttft_seconds_bucket{le="0.5"}',
        "counts what is above an edge as good",
    ),
    "counters of ours": ('firsttoken_slo_events_total{result="good"}', "reads counters of a slo.yaml"),
}


@pytest.mark.parametrize(("good", "why"), LEFT.values(), ids=LEFT.keys())
def test_what_is_none_of_ours_is_told_why(good: str, why: str) -> None:
    with pytest.raises(UncarriedError, match=why.replace(".", r"\.")):
        of_ratio(good=good, total="requests_total")


def test_what_is_fast_as_bad_is_refused() -> None:
    with pytest.raises(UncarriedError, match="above an edge as good"):
        of_ratio(bad='x_ttft_seconds_bucket{le="0.5"}', total="x_ttft_seconds_count")


def test_an_unnamed_unit_is_said() -> None:
    found = of_ratio(good='app_latency_bucket{le="2"}', total="app_latency_count")
    assert (found.threshold, found.notes) == ("2s", ("app_latency_bucket names no unit: 2 is taken as seconds",))


QUANTILE = "histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))"
THRESHOLDS = {
    "a quantile": (QUANTILE, "lte", "0.5", ("ttft", "500ms", Decimal("0.95"))),
    "vLLM's KV cache": ("max(vllm:kv_cache_usage_perc)", "lt", "0.9", ("kv_occupancy", "90%", None)),
    "a cache in percent": ("vllm:gpu_cache_usage_perc * 100", "lte", "85", ("kv_occupancy", "85%", None)),
    "SGLang's tokens": ("sglang:token_usage", "lte", "0.8", ("kv_occupancy", "80%", None)),
    "a queue": ("sum(vllm:num_requests_waiting)", "lte", "10", ("queue", "10", None)),
}


@pytest.mark.parametrize(("query", "op", "value", "found"), THRESHOLDS.values(), ids=THRESHOLDS.keys())
def test_a_value_to_stay_under_is_a_state_or_a_quantile(
    query: str, op: str, value: str, found: tuple[str, str, Decimal | None]
) -> None:
    measure = of_threshold(query, op, Decimal(value))
    assert (measure.signal, measure.threshold, measure.percentile) == found


def test_a_quantile_is_said_to_be_another_promise() -> None:
    (note,) = of_threshold(QUANTILE, "lte", Decimal("0.5")).notes
    assert note == "promised was how often a quantile is under 500ms; here it is that 95% of requests are"


ABOVE = {
    "a floor": ("sum(vllm:num_requests_waiting)", "gte", "must stay above"),
    "no direction": ("sum(vllm:num_requests_waiting)", "", "must stay above"),
    "a mean": ("rate(x_ttft_seconds_sum[5m]) / rate(x_ttft_seconds_count[5m])", "lte", "holds a mean"),
    "something else": ("node_load1", "lte", "node_load1 is neither a quantile"),
    "a quantile of nothing": (
        "histogram_quantile(0.9, rate(http_duration_seconds[5m]))",
        "lte",
        "no classic histogram",
    ),
    "a quantile that is no number": ("histogram_quantile(1.2.3, rate(x_ttft_bucket[5m]))", "lte", "no classic"),
}


@pytest.mark.parametrize(("query", "op", "why"), ABOVE.values(), ids=ABOVE.keys())
def test_a_value_that_is_none_of_ours_is_told_why(query: str, op: str, why: str) -> None:
    with pytest.raises(UncarriedError, match=why):
        of_threshold(query, op, Decimal("0.5"))


@pytest.mark.parametrize("edge", ["nan", "0", "-1", "1e999999", "abc"])
def test_an_edge_that_nobody_can_be_held_to_is_told(edge: str) -> None:
    with pytest.raises(UncarriedError, match="is no edge of a histogram that can be read"):
        of_ratio(good=f'sum(rate(x_ttft_seconds_bucket{{le="{edge}"}}[5m]))', total="sum(x_ttft_seconds_count)")


def test_a_query_has_its_limit_and_one_below_it_is_read_in_time() -> None:
    with pytest.raises(UncarriedError, match="more than 20000 characters"):
        selectors("x" * (MAX_QUERY_CHARS + 1))
    for odd in ("a{" * 10_000, 'a{b="' * 4_000, "(" * 20_000, "by (" * 5_000, "{{" * 10_000, "[" * 20_000):
        assert len(selectors(odd)) <= MAX_QUERY_CHARS


def test_selectors_are_what_a_query_reads() -> None:
    query = """
      sum by (job, le) (rate(a:b_bucket{le="0.5", x!~'y"\\'', z=`(`}[{{.window}}] offset 5m)) / on (job) group_left (y)
      (c > bool 1e3) and d{} or vector(1)
    """
    assert selectors(query) == [
        Selector("a:b_bucket", [("le", "=", "0.5"), ("x", "!~", "y\"'"), ("z", "=", "(")]),
        Selector("c", []),
        Selector("d", []),
    ]
