"""The eye of scraping alone: events, counts, state, and what is said."""

import logging

import pytest

from sidecar.counting.tally import Tally
from sidecar.engine.scrape import sample_of
from sidecar.judging.labels import ModelLabels
from sidecar.polling.engine_eye import EngineEye
from slo.objective import Spec
from slo.signals import HEARTBEAT, REQUESTS, SLO_EVENTS, TOKENS
from tests.sidecar.engine_pages import RUNNING, engine, histogram, page, ttft
from tests.sidecar.rig import spec

S = 1_000_000_000
FAST = "{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}"
OFF_EDGE = "{name: fine, signal: ttft, percentile: 95, threshold: 300ms}"
KV = "{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}"
QUEUE = "{name: line, signal: queue, threshold: 10, target: 99%}"


def engine_eye(*objectives: str, max_models: int = 10) -> EngineEye:
    seen = EngineEye(tally=Tally(lambda _: ()), labels=ModelLabels(max_models))
    seen.load(spec(*objectives) if objectives else None)
    return seen


def show(seen: EngineEye, *parts: str, of: str = "vllm") -> None:
    text = page(*parts)
    sample = sample_of(text, of)
    seen.labels.serve(sample.models)
    seen.page(text, engine(of), sample)


def events(seen: EngineEye) -> dict[tuple[str, str], tuple[int, int]]:
    """Good and bad by model and objective."""
    found: dict[tuple[str, str], list[int]] = {}
    for point in seen.tally.totals():
        if point.metric is SLO_EVENTS:
            model, objective, _, result = (value for _, value in point.attributes)
            found.setdefault((model, objective), [0, 0])[result == "bad"] = int(point.value)
    return {key: (good, bad) for key, (good, bad) in found.items()}


def test_a_threshold_that_is_an_edge_is_counted_exactly() -> None:
    seen = engine_eye(FAST)
    show(seen, RUNNING, ttft(100, 50))
    assert events(seen) == {("m", "ttft"): (0, 0)}
    show(seen, RUNNING, ttft(103, 51))
    show(seen, RUNNING, ttft(104, 53))
    assert events(seen) == {("m", "ttft"): (4, 3)}


def test_a_restart_of_the_engine_loses_no_event_and_makes_none() -> None:
    seen = engine_eye(FAST)
    for fast, slow in ((100, 50), (101, 50), (3, 1), (3, 2)):
        show(seen, RUNNING, ttft(fast, slow))
    assert events(seen) == {("m", "ttft"): (4, 2)}


def test_between_two_edges_there_are_no_events_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """Not even zeros: who sees counts of 0 would not look at the histogram."""
    seen = engine_eye(FAST, OFF_EDGE)
    with caplog.at_level(logging.WARNING):
        show(seen, RUNNING, ttft(0, 0))
        show(seen, RUNNING, ttft(5, 5))
    assert events(seen).keys() == {("m", "ttft")}
    assert [record.message for record in caplog.records] == [
        (
            "objective fine is estimated by the collector, not counted: "
            "300ms lies between the edges 250ms and 500ms of vllm's histogram"
        )
    ]
    assert seen.view.latencies.take(delta=True)[0].buckets.count == 10


def test_what_cannot_be_backed_is_said_once_and_again_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    seen = engine_eye(FAST)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            show(seen, RUNNING)
        assert "does not show vllm:time_to_first_token_seconds yet" in caplog.text
        show(seen, RUNNING, ttft(1, 0))
        show(seen, RUNNING, ttft(1, 0).replace('le="0.5"', 'le="0.6"'))
    assert len(caplog.records) == 2
    assert "500ms lies between the edges 250ms and 600ms" in caplog.records[-1].message


def test_an_engine_that_comes_back_with_other_edges_is_counted_no_more() -> None:
    seen = engine_eye(FAST)
    show(seen, RUNNING, ttft(1, 0))
    show(seen, RUNNING, ttft(1, 0).replace('le="0.5"', 'le="0.6"'))
    assert events(seen) == {}


def test_a_page_that_lacks_the_histogram_for_once_takes_nothing_back() -> None:
    seen = engine_eye(FAST)
    for text in (ttft(1, 0), ttft(2, 0), "", ttft(4, 0)):
        show(seen, RUNNING, text)
    assert events(seen) == {("m", "ttft"): (3, 0)}


def test_each_model_is_judged_by_its_own_edges_and_matches() -> None:
    seen = engine_eye(FAST, FAST.replace("name: ttft", "name: small").replace("}", ", match: {model: a}}"))
    coarse = histogram(
        "vllm:time_to_first_token_seconds", {"0.4": 0, "+Inf": 0}, labels='engine="0",model_name="c"', total_s=0
    )
    for count in (0, 2):
        show(seen, *(ttft(count, 1, labels=f'engine="0",model_name="{model}"') for model in "ab"), coarse)
    assert events(seen) == {("a", "ttft"): (2, 0), ("a", "small"): (2, 0), ("b", "ttft"): (2, 0)}


def test_a_model_beyond_the_limit_is_other() -> None:
    seen = engine_eye(FAST, max_models=1)
    for count in (0, 2):
        show(seen, RUNNING, ttft(count, 0), ttft(count, 0, labels='model_name="z"'))
    assert events(seen) == {("m", "ttft"): (2, 0), ("other", "ttft"): (2, 0)}


def test_an_engine_without_model_labels_speaks_of_the_model_it_serves() -> None:
    seen = engine_eye("{name: whole, signal: e2e, percentile: 95, threshold: 500ms}")
    seen.introduce(seen.labels.serve(["moss"]))
    for count in (0, 2):
        text = page("tgi_queue_size 0", histogram("tgi_request_duration", {"0.5": count, "+Inf": count + 1}, labels=""))
        seen.page(text, engine("tgi"), sample_of(text))
    assert events(seen) == {("moss", "whole"): (2, 0)}


def test_tokens_and_outcomes_are_the_engines_own() -> None:
    seen = engine_eye()
    for count in (5, 9):
        show(
            seen,
            RUNNING,
            f'vllm:prompt_tokens_total{{model_name="m"}} {count}',
            f'vllm:request_success_total{{finished_reason="error",model_name="m"}} {count}',
        )
    found = {
        (point.metric, *(value for _, value in point.attributes)): point.value
        for point in seen.tally.totals()
        if point.metric in (TOKENS, REQUESTS)
    }
    assert found == {(TOKENS, "m", "input"): 4, (REQUESTS, "m", "error"): 4}


def state(seen: EngineEye, at_s: int, *, running: int, waiting: int = 0, kv: float | None = 0.5) -> None:
    """A page and a second of an engine in this state."""
    lines = [
        f'vllm:num_requests_{what}{{model_name="m"}} {n}' for what, n in (("running", running), ("waiting", waiting))
    ]
    show(seen, *lines, *([] if kv is None else [f'vllm:kv_cache_usage_perc{{model_name="m"}} {kv}']))
    seen.second(at_s * S, kv_occupancy=kv, waiting=float(waiting), heartbeats=1)


def test_an_engine_has_work_while_it_runs_a_request_or_holds_one_waiting() -> None:
    seen = engine_eye(KV, QUEUE)
    state(seen, 1, running=0)
    state(seen, 2, running=1)  # idle until now
    state(seen, 3, running=0, waiting=20, kv=0.95)  # good until now
    state(seen, 4, running=0)  # bad until now
    state(seen, 5, running=0)
    assert events(seen) == {("m", "kv"): (1, 1), ("m", "line"): (1, 1)}
    assert seen.tally.total(HEARTBEAT, ()) == 5


def test_state_objectives_begin_at_0_and_only_where_the_engine_tells_them() -> None:
    seen = engine_eye(KV, QUEUE)
    state(seen, 1, running=0, kv=None)
    assert events(seen) == {("m", "line"): (0, 0)}
    state(seen, 2, running=0)
    assert events(seen) == {("m", "line"): (0, 0), ("m", "kv"): (0, 0)}


def test_the_state_of_an_engine_says_nothing_of_models_that_it_does_not_serve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = engine_eye(KV, KV.replace("name: kv", "name: theirs").replace("}", ", match: {model: big}}"))
    with caplog.at_level(logging.WARNING):
        for at_s in (1, 2, 3):
            state(seen, at_s, running=1)
    assert events(seen) == {("m", "kv"): (2, 0)}
    assert [record.message for record in caplog.records] == [
        "objective theirs cannot be backed: vllm serves no model that it matches"
    ]
    show(seen, *(f'vllm:kv_cache_usage_perc{{model_name="{model}"}} 0.5' for model in ("m", "big")))
    assert events(seen)["unknown", "theirs"] == (0, 0)  # one cache for both models: whose, nobody can say


def test_a_state_that_is_not_known_any_more_judges_nothing() -> None:
    seen = engine_eye(KV)
    state(seen, 1, running=1)
    for at_s in (2, 3, 4):
        seen.second(at_s * S, kv_occupancy=None, waiting=None, heartbeats=1)
    assert events(seen) == {("m", "kv"): (1, 0)}


def changed() -> Spec:
    return spec(FAST.replace("500ms", "250ms"), KV)


def test_a_reload_judges_by_the_new_spec_and_forgets_the_old_counts() -> None:
    seen = engine_eye(FAST)
    show(seen, RUNNING, ttft(1, 0))
    show(seen, RUNNING, ttft(2, 0))
    seen.load(changed())
    assert events(seen) == {}
    show(seen, RUNNING, ttft(4, 0))
    assert events(seen) == {("m", "ttft"): (0, 2)}
    seen.load(None)
    assert events(seen) == {}


def test_it_is_no_request_of_ours() -> None:
    seen = engine_eye(FAST)
    assert not seen.has_seen
    show(seen, RUNNING)
    seen.catch_up()
    assert seen.has_seen
    assert seen.gauges(0) == []


def test_what_can_be_backed_after_all_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    """The first pages of an engine may lack what the next ones have."""
    seen = engine_eye(FAST)
    with caplog.at_level(logging.INFO):
        show(seen, RUNNING)
        show(seen, RUNNING, ttft(1, 0))
    first, last = (record.message for record in caplog.records)
    assert last == f"no longer so: {first}"
