import pytest

from sidecar.counting.series import ModelSeries
from sidecar.counting.tally import Number, Tally
from slo.signals import (
    ABANDONED,
    BROKEN_STREAMS,
    CLASS,
    E2E,
    GUARDED,
    OBJECTIVE,
    OBJECTIVE_HASH,
    OUTCOME,
    PROMPT_STRATA,
    PROMPT_TOKENS,
    REQUEST_MODEL,
    REQUESTS,
    RESULT,
    SLO_EVENTS,
    TOKEN_TYPE,
    TOKENS,
    TPOT,
    TTFT,
    TTFT_BY_PROMPT,
    TTFT_PREDICTION_ERROR,
    VERDICT,
)
from tests.sidecar.rig import spec

M = (REQUEST_MODEL, "m")
WENT_WRONG = [Number(ABANDONED, (M,), 0), Number(BROKEN_STREAMS, (M,), 0)]
(FIRST,) = spec("{name: first, signal: ttft, percentile: 95, threshold: 1s}").objectives


def made() -> tuple[Tally, ModelSeries]:
    tally = Tally(lambda _: (0.5,))
    return tally, ModelSeries(tally, "m")


def test_latencies_and_what_went_wrong_exist_from_the_start_and_nothing_else() -> None:
    tally, series = made()
    assert [(metric, attributes) for metric, attributes, _ in tally.classics()] == [
        (metric, (M,)) for metric in (TTFT, TPOT, E2E)
    ]
    assert list(tally.totals()) == WENT_WRONG
    assert series.ttft is tally.latency(TTFT, (M,))


def test_what_is_counted_has_the_labels_of_the_signals() -> None:
    tally, series = made()
    series.requests("ok").count += 1
    series.requests("ok", "batch").count += 2
    series.tokens("input").count += 3
    assert list(tally.totals()) == [
        *WENT_WRONG,
        Number(REQUESTS, (M, (OUTCOME, "ok")), 1),
        Number(REQUESTS, (M, (OUTCOME, "ok"), (CLASS, "batch")), 2),
        Number(TOKENS, (M, (TOKEN_TYPE, "input")), 3),
    ]


def test_a_series_is_looked_up_once() -> None:
    _, series = made()
    assert series.requests("ok", "batch") is series.requests("ok", "batch")
    assert series.tokens("output") is series.tokens("output")


def test_both_results_of_an_objective_begin_at_0() -> None:
    tally, series = made()
    assert series.by_objective.get(id(FIRST)) is None
    events = series.judge_by(FIRST, "abc")
    assert series.by_objective.get(id(FIRST)) is events
    events.bad.count += 1
    named = (M, (OBJECTIVE, "first"), (OBJECTIVE_HASH, "abc"))
    assert list(tally.totals()) == [
        *WENT_WRONG,
        Number(SLO_EVENTS, (*named, (RESULT, "good")), 0),
        Number(SLO_EVENTS, (*named, (RESULT, "bad")), 1),
    ]


def test_an_objective_without_a_hash_is_counted_nowhere() -> None:
    tally, series = made()
    series.judge_by(FIRST, None).good.count += 1
    assert list(tally.totals()) == WENT_WRONG


def test_events_are_forgotten() -> None:
    _, series = made()
    series.judge_by(FIRST, "abc")
    series.forget_events()
    assert series.by_objective.get(id(FIRST)) is None


@pytest.mark.parametrize(
    ("tokens", "stratum"),
    [
        (0, "to_256"),
        (256, "to_256"),
        (257, "to_1k"),
        (1024, "to_1k"),
        (4096, "to_4k"),
        (4097, "to_16k"),
        (16384, "to_16k"),
        (16385, "over_16k"),
        (1 << 40, "over_16k"),
    ],
)
def test_a_first_token_is_measured_by_how_long_the_prompt_was(tokens: int, stratum: str) -> None:
    tally, series = made()
    series.ttft_by_prompt(tokens).record(0.3)
    assert series.ttft_by_prompt(tokens) is tally.latency(TTFT_BY_PROMPT, (M, (PROMPT_TOKENS, stratum)))
    assert [attributes for metric, attributes, _ in tally.classics() if metric is TTFT_BY_PROMPT] == [
        (M, (PROMPT_TOKENS, stratum))
    ]
    assert stratum in PROMPT_STRATA


def test_what_the_queue_guard_says_is_counted_by_what_became_of_it() -> None:
    tally, series = made()
    series.introduce_verdicts(("in_time", "shed"))
    series.guarded("shed", good=False).count += 3
    assert {number.attributes[1:]: number.value for number in tally.totals() if number.metric is GUARDED} == {
        ((VERDICT, verdict), (RESULT, result)): 3 if (verdict, result) == ("shed", "bad") else 0
        for verdict in ("in_time", "shed")
        for result in ("good", "bad")
    }
    series.prediction_error.record(0.25)
    assert series.prediction_error is tally.latency(TTFT_PREDICTION_ERROR, (M,))
