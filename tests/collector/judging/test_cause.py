"""Each cause is found by what it alone does, and none is told where the evidence is too thin."""

from dataclasses import fields, replace
from pathlib import Path

import orjson
import pytest

from collector.judging.cause import CANDIDATES, KINDS, SURE, TITLES, Cause, Compared, attribute, attribute_apart
from collector.judging.evidence import Evidence
from tests.collector.judging.engine_model import Engine, busier, halves

RECORDED = Path(__file__).parents[2] / "data" / "causes.json"
USUAL = Engine()
MILD = "each step takes half as long again"
"""Beside a change of the load as large, it may stay unknown."""
TROUBLES: dict[str, tuple[Engine, Engine, str]] = {
    "each step takes three times as long": (USUAL, replace(USUAL, factor=3.0), "decode_slower"),
    MILD: (USUAL, replace(USUAL, factor=1.6), "decode_slower"),
    "no step is made": (USUAL, replace(USUAL, hangs=True), "engine_hung"),
    "most of the cache is gone": (USUAL, replace(USUAL, withheld=0.9), "kv_pressure"),
    "three requests of ten fail": (USUAL, replace(USUAL, fails=0.3), "errors"),
    "one is admitted at a time": (USUAL, replace(USUAL, batch=1), "admission"),
    "nobody can reach it": (USUAL, replace(USUAL, away=True), "unreachable"),
    "clients read slowly": (USUAL, replace(USUAL, delay_s=0.03), "slow_clients"),
    "a GPU is held back": (
        replace(USUAL, throttled=0.0),
        replace(USUAL, throttled=0.8, factor=2.0),
        "gpu_throttled",
    ),
    "four times the requests come": (USUAL, busier(USUAL, 4.0), "traffic"),
    "prompts are four times as long": (USUAL, replace(USUAL, in_tokens=1200.0), "long_prompts"),
    "the batch is opened to a queue": (
        replace(USUAL, batch=4, step_of_each_s=0.004, rate=4.0),
        replace(USUAL, batch=64, step_of_each_s=0.004, rate=4.0, kv_tokens=100_000.0),
        "batch",
    ),
}
SEEDS = range(10)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_goes_wrong_in_a_model_of_an_engine_is_named(trouble: str) -> None:
    before, during, right = TROUBLES[trouble]
    found = [attribute(*halves(before, during, seed)).kind for seed in SEEDS]
    assert found.count(right) >= 9, found  # type: ignore[arg-type]
    assert set(found) <= {right, "unknown"}


@pytest.mark.parametrize("change", [0.6, 1.3])
@pytest.mark.parametrize("trouble", [name for name, (before, *_) in TROUBLES.items() if before == USUAL])
def test_another_load_at_the_same_time_is_not_taken_for_it(trouble: str, change: float) -> None:
    before, during, right = TROUBLES[trouble]
    found = [attribute(*halves(before, busier(during, change), seed)).kind for seed in SEEDS]
    if trouble != MILD:
        assert found.count(right) >= 8, found  # type: ignore[arg-type]
    assert set(found) <= {right, "unknown"}


def test_nothing_is_wrong_with_what_only_varies() -> None:
    assert {attribute(*halves(USUAL, USUAL, seed)).kind for seed in range(40)} == {"unknown"}


def test_what_live_runs_recorded_is_named() -> None:
    """Evidence of `bench/attribution.py`, as the collector read it when the alert fired."""
    runs = orjson.loads(RECORDED.read_bytes())
    kinds: dict[str, list[str]] = {}
    for run in runs:
        before, during = (Evidence(**run[side]) for side in ("before", "during"))
        kinds.setdefault(run["right"], []).append(attribute(before, during).kind)
    assert len(runs) >= 100
    for right, found in kinds.items():
        assert found.count(right) >= 0.9 * len(found), (right, found)
        assert set(found) <= {right, "unknown"}, right


CALM = Evidence(
    came=150.0,
    arrivals=5.0,
    in_tokens=300.0,
    out_tokens=40.0,
    ttft_s=0.1,
    tpot_s=0.02,
    answers=150.0,
    engine_tpot_s=0.02,
    engine_answers=150.0,
    running=5.0,
    waiting=0.0,
    unstarted=0.0,
    preemptions=0.0,
    kv_occupancy=0.4,
    failed=0.0,
    refused=0.0,
    token_age_s=0.1,
    longest_gap_s=0.1,
    token_gap_s=0.01,
    throttled=0.0,
    gpu_lost=0.0,
    heard=1.0,
)
SYMPTOMS: dict[str, tuple[Evidence, str]] = {
    "a lost GPU explains whatever else there is": (
        replace(CALM, gpu_lost=1.0, failed=0.5, token_age_s=60.0),
        "gpu_lost",
    ),
    "one that was lost before explains nothing new": (replace(CALM, failed=0.5), "errors"),
    "preemption lengthens tokens": (
        replace(CALM, preemptions=2.0, kv_occupancy=0.97, tpot_s=0.08, waiting=4.0),
        "kv_pressure",
    ),
    "a full cache with more running in it is no fault": (
        replace(CALM, kv_occupancy=0.97, running=9.0, waiting=5.0, arrivals=9.0, came=270.0),
        "traffic",
    ),
    "nothing runs for want of memory": (
        replace(CALM, kv_occupancy=1.0, running=0.0, waiting=9.0, unstarted=9.0, token_age_s=30.0),
        "kv_pressure",
    ),
    "nothing runs, and there is memory": (
        replace(CALM, kv_occupancy=0.0, running=0.0, waiting=9.0, unstarted=9.0, token_age_s=30.0),
        "engine_hung",
    ),
    "a hung engine whose page hangs too": (
        replace(CALM, running=None, waiting=None, kv_occupancy=None, heard=0.0, token_age_s=30.0, unstarted=9.0),
        "engine_hung",
    ),
    "slow requests that have not ended yet": (
        replace(CALM, token_gap_s=0.05, waiting=4.0, ttft_s=1.5, came=190.0, arrivals=6.3),
        "decode_slower",
    ),
    "one long gap is no hang": (replace(CALM, longest_gap_s=9.0, token_gap_s=0.012, waiting=6.0), "queue"),
    "two eyes that speak of other answers": (
        replace(CALM, tpot_s=0.06, engine_tpot_s=0.03, answers=40.0, engine_answers=90.0),
        "decode_slower",
    ),
    "a queue that nothing explains": (replace(CALM, waiting=6.0, ttft_s=1.5), "queue"),
    "a throttled GPU decodes slower": (replace(CALM, throttled=0.9, tpot_s=0.06), "gpu_throttled"),
    "answers that became longer are traffic, too": (replace(CALM, out_tokens=90.0, running=11.0), "traffic"),
    "refused for overload": (replace(CALM, refused=0.3, waiting=20.0), "errors"),
}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_what_explains_others_is_named_before_them(symptom: str) -> None:
    during, right = SYMPTOMS[symptom]
    before = replace(CALM, gpu_lost=1.0) if "before" in symptom and "lost" in symptom else CALM
    assert attribute(before, during).kind == right


def test_nothing_known_says_nothing() -> None:
    assert attribute(Evidence(), Evidence()) == Cause("unknown", 0.0)
    assert attribute(CALM, Evidence()).kind == "unknown"


def test_no_figure_that_is_missing_is_taken_for_nought() -> None:
    """Without any one figure a calm service stays one for which nothing is blamed."""
    for name in (one.name for one in fields(Evidence)):
        for before, during in ((replace(CALM, **{name: None}), CALM), (CALM, replace(CALM, **{name: None}))):
            assert attribute(before, during).kind == "unknown", name


def test_an_unknown_cause_says_what_came_nearest() -> None:
    found = attribute(CALM, replace(CALM, tpot_s=0.024, engine_tpot_s=0.024))
    assert (found.kind, 0 < found.confidence < SURE) == ("unknown", True)
    assert found.text == (
        "unknown: nearest is: each token takes longer, whatever the batch; time per token 24.0 ms, before 20.0 ms; "
        "time since any token 10.0 ms, before 10.0 ms; requests a second 5, before 5; running 5, before 5"
    )


def test_a_cause_says_how_sure_it_is_and_why() -> None:
    found = attribute(CALM, replace(CALM, failed=0.25))
    assert found.text == "requests fail, 100 % sure: failed 25 %, before 0 %; refused 0 %, before 0 %"


def test_one_instance_of_several_is_named_where_all_together_say_nothing() -> None:
    hurt = replace(CALM, tpot_s=0.06, engine_tpot_s=0.06)
    mean = replace(CALM, tpot_s=0.024, engine_tpot_s=0.024)
    found = attribute_apart({"a": CALM, "b": CALM}, {"a": CALM, "b": hurt}, together=(CALM, mean))
    assert (found.kind, found.instance) == ("decode_slower", "b")
    assert "(instance b alone)" in found.text
    assert attribute_apart({}, {"a": CALM, "new": hurt}, together=(CALM, mean)).instance == "new"
    assert attribute_apart({"a": CALM}, {"a": hurt}, together=(CALM, mean)).kind == "unknown"
    assert attribute_apart({"a": CALM}, {"a": hurt, "b": hurt}, together=(CALM, hurt)).instance == ""
    hung = replace(CALM, token_age_s=60.0)
    found = attribute_apart({"a": CALM, "b": CALM}, {"a": CALM, "b": hung}, together=(CALM, hung))
    assert (found.kind, found.instance) == ("engine_hung", "b")


def test_every_kind_has_its_title_and_looks_from_nought_to_one() -> None:
    assert set(TITLES) == set(KINDS) == {*CANDIDATES, "unknown"}
    for before, during, _ in TROUBLES.values():
        compared = Compared(*halves(before, during, 0))
        sure = [found[0] for look in CANDIDATES.values() if (found := look(compared)) is not None]
        assert all(0 <= one <= 1 for one in sure)
