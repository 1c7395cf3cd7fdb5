"""Which objectives each engine can back, and the words for those it cannot."""

import logging

import pytest

from sidecar.engine.engine_histograms import read_histograms
from sidecar.engine.engine_requests import TOLD
from sidecar.engine.scrape import ServerSample, sample_of
from sidecar.polling.backing import Backing, Sight, StateSight, backing, lines
from slo.signals import E2E, TPOT, TTFT
from tests.sidecar.engine_pages import engine, kept
from tests.sidecar.rig import spec

TTFT_500 = "{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}"
EVERY_SIGNAL = (
    TTFT_500,
    "{name: tpot, signal: tpot, percentile: 99, threshold: 50ms}",
    "{name: whole, signal: e2e, percentile: 99, threshold: 10s}",
    "{name: answered, signal: availability, target: 99.9%}",
    "{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}",
    "{name: line, signal: queue, threshold: 10, target: 99%}",
)


def sight(name: str) -> Sight:
    """What a kept page shows."""
    page = kept(name)
    sample = sample_of(page)
    assert sample.engine is not None
    found = read_histograms(page, engine(sample.engine), TOLD[sample.engine])
    return Sight(
        sample.engine,
        {(key.metric, key.model or "unknown"): one.bounds for key, one in found.items()},
        occupancy=sample.kv_occupancy is not None,
        waiting=sample.waiting is not None,
    )


# Of each kept page: by objective, why it is not counted (the beginning of the words, or a part that tells it apart).
UNBACKED = {
    "vllm-0.33.prom": {"answered": "vllm counts neither clients that left nor answers that broke off, and scraping"},
    "vllm-0.8.5.prom": {
        "tpot": "does not show vllm:request_time_per_output_token_seconds yet (since 0.11; its older",
        "whole": "does not show vllm:e2e_request_latency_seconds yet",
        "answered": "vllm counts neither",
    },
    "sglang-0.5.23.prom": {
        "ttft": "500ms lies between the edges 400ms and 600ms of sglang's histogram",
        "tpot": "50ms lies between the edges 40ms and 60ms",
        "answered": "sglang counts requests as finished for whatever reason",
    },
    "tgi-3.3.prom": {
        "ttft": "tgi does not tell when a first token came",
        "tpot": "tgi tells a mean time per token that includes the prefill",
        "whole": "10s lies between the edges 8.52227s and 12.7834s",
        "answered": "scraping sees no request that the engine never got, or never answers",
        "kv": "tgi's page does not tell its KV-cache occupancy",
    },
    "llamacpp.prom": {
        "ttft": "llamacpp has no histograms, only sums",
        "tpot": "llamacpp has no histograms",
        "whole": "llamacpp has no histograms",
        "answered": "scraping sees no request",
        "kv": "llamacpp's page does not tell",
    },
    "trtllm-serve.prom": {"answered": "scraping sees no request"},
    "triton-trtllm.prom": {
        "ttft": "does not show vllm:time_to_first_token_seconds yet (with --metrics-config histogram_latencies=true)",
        "tpot": "triton has none per request",
        "whole": "of the vLLM backend alone; else sums only",
        "answered": "scraping sees no request",
    },
    "lmdeploy-0.18.prom": {"tpot": "each iteration, not of each request", "answered": "scraping sees no request"},
    "dynamo-frontend.prom": {
        "ttft": "500ms lies between the edges 470ms and 1s",
        "tpot": "dynamo tells a time between tokens, not one per request",
        "whole": "it may come with the first request",
        "answered": "scraping sees no request",
        "kv": "dynamo's page does not tell",
    },
    "litellm_metrics.txt": {
        "tpot": "litellm divides the time to the first token by the tokens of a stream",
        "answered": "scraping sees no request",
        "kv": "litellm's page does not tell",
        "line": "litellm's page does not tell its waiting requests",
    },
}


@pytest.mark.parametrize("name", UNBACKED)
def test_what_each_engine_cannot_back_and_why(name: str) -> None:
    seen = sight(name)
    found = {
        one.name: each.why for one in spec(*EVERY_SIGNAL).objectives if (each := backing(one, seen)).basis != "counts"
    }
    assert found.keys() == UNBACKED[name].keys()
    assert [found[key] for key, part in UNBACKED[name].items() if part not in found[key]] == []


def of(objective: str, *edges_s: float, classes: str = "") -> Backing:
    (one,) = spec(objective, classes=classes).objectives
    return backing(one, Sight("vllm", {(TTFT, "m"): edges_s, (TPOT, "m"): edges_s, (E2E, "m"): edges_s}))


EDGES = (0.25, 0.5, 0.75)
BACKED = {
    "an edge": (TTFT_500, "counts", ""),
    "between two": (TTFT_500.replace("500ms", "600ms"), "histogram", "600ms lies between the edges 500ms and 750ms"),
    "under all": (
        TTFT_500.replace("500ms", "200ms"),
        "histogram",
        "200ms lies under the first edge 250ms of vllm's histogram, so that all under it counts as bad",
    ),
    "above all": (TTFT_500.replace("500ms", "2s"), "histogram", "2s lies above the last edge 750ms"),
    "next to an edge": (TTFT_500.replace("500ms", "500.001ms"), "histogram", "between the edges 500ms and 750ms"),
    "prompt sizes": (
        TTFT_500.replace("}", ", match: {prompt_bytes: '<16k'}}"),
        "none",
        "vllm tells neither classes nor prompt sizes apart",
    ),
    "classes": (TTFT_500.replace("}", ", match: {class: batch}}"), "none", "vllm tells neither classes"),
    "long answers alone": (
        "{name: tpot, signal: tpot, percentile: 99, threshold: 500ms, min_output_tokens: 16}",
        "histogram",
        "vllm's histogram has the answers under 16 tokens too",
    ),
    "a model": (TTFT_500.replace("}", ", match: {model: 'm*'}}"), "counts", ""),
}


@pytest.mark.parametrize("sentence", BACKED)
def test_thresholds_and_matches(sentence: str) -> None:
    objective, basis, why = BACKED[sentence]
    found = of(objective, *EDGES, classes="classes: [batch]\n")
    assert found.basis == basis
    assert why in found.why
    assert bool(found.why) == bool(why)


def test_all_models_must_have_the_edge_and_each_is_counted_by_its_own() -> None:
    seen = Sight("vllm", {(TTFT, "a"): (0.25, 0.5), (TTFT, "b"): (0.25, 0.75)})
    (one,) = spec(TTFT_500).objectives
    assert backing(one, seen).basis == "histogram"
    assert backing(one, seen, model="a").basis == "counts"
    assert backing(one, seen, model="b").basis == "histogram"
    apart = Sight("vllm", {(TTFT, "a"): (0.5,), (TTFT, "b"): (0.75,)})
    assert backing(one, apart).why == "the models of vllm have no edge in common"


def test_each_objective_that_is_not_counted_has_a_line() -> None:
    fine = TTFT_500.replace("name: ttft", "name: fine").replace("500ms", "300ms")
    assert lines(spec(*EVERY_SIGNAL, fine).objectives, sight("vllm-0.33.prom")) == [
        (
            "objective answered cannot be backed: vllm counts neither clients that left nor answers that broke off, "
            "and scraping sees no request that the engine never got, or never answers"
        ),
        (
            "objective fine is estimated by the collector, not counted: "
            "300ms lies between the edges 250ms and 500ms of vllm's histogram"
        ),
    ]


def test_without_objectives_each_signal_that_cannot_be_backed_has_a_line() -> None:
    assert lines((), sight("tgi-3.3.prom")) == [
        "time to first token cannot be backed: tgi does not tell when a first token came",
        "time per output token cannot be backed: tgi tells a mean time per token that includes the prefill",
        "availability cannot be backed: scraping sees no request that the engine never got, or never answers",
        "KV-cache occupancy cannot be backed: tgi's page does not tell its KV-cache occupancy",
    ]


def test_a_state_backs_only_objectives_of_the_models_that_are_served() -> None:
    """Where those are not known it may be anyone's."""
    (kv,) = spec("{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%, match: {model: 'big*'}}").objectives
    wanted = {(): "counts", ("m",): "none", ("m", "big-7b"): "counts"}
    found = {models: backing(kv, Sight("vllm", occupancy=True, models=models)) for models in wanted}
    assert {models: one.basis for models, one in found.items()} == wanted
    assert found["m",].why == "vllm serves no model that it matches"


def test_what_of_the_state_is_not_shown_is_said_once_and_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    seen, objectives = StateSight(), spec(*EVERY_SIGNAL).objectives
    untold = "objective kv cannot be backed: llamacpp's page does not tell its KV-cache occupancy"
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            seen.page(ServerSample("llamacpp", waiting=1.0), objectives, models=())
        assert caplog.messages == [untold]
        seen.page(ServerSample("llamacpp", waiting=1.0, kv_occupancy=0.5), objectives, models=())
        seen.page(ServerSample("llamacpp"), objectives, models=())  # a page that lacks it this once
        assert caplog.messages == [untold, f"no longer so: {untold}"]
        seen.page(ServerSample("tgi", waiting=1.0), objectives, models=())  # another engine
        assert "tgi's page does not tell its KV-cache occupancy" in caplog.messages[-1]
        seen.page(ServerSample("tgi"), [], models=())
        assert len(caplog.messages) == 4


def test_requests_that_pass_need_no_page(caplog: pytest.LogCaptureFixture) -> None:
    seen = StateSight()
    seen.page(ServerSample("vllm"), spec(TTFT_500).objectives, models=("m",))
    assert caplog.messages == []
