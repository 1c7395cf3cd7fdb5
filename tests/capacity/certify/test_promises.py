"""Which objectives a load is held against, and what each says of a request."""

import pytest

from capacity.certify.promises import Promises, promises, series
from capacity.errors import WorkloadError
from capacity.record import Record
from slo.objective import Objective, Spec

SPEC = Spec.model_validate(
    {
        "service": "chat",
        "classes": ["batch"],
        "objectives": [
            {"name": "ttft", "signal": "ttft", "percentile": 95, "threshold": "500ms"},
            {"name": "answered", "signal": "availability", "target": "99.9%"},
            {"name": "kv", "signal": "kv_occupancy", "threshold": "90%", "target": 99},
            {"name": "other", "signal": "e2e", "percentile": 95, "threshold": "5s", "match": {"model": "b*"}},
            {"name": "slow", "signal": "e2e", "percentile": 95, "threshold": "5s", "match": {"class": "batch"}},
            {
                "name": "short",
                "signal": "ttft",
                "percentile": 95,
                "threshold": "1s",
                "match": {"prompt_bytes": "<1k"},
            },
        ],
    }
)


def record(outcome: str = "ok", first_s: float | None = 1.2, last_s: float = 2.2, tokens: int = 11) -> Record:
    return Record("m", 1.0, 2.5, outcome, 1.0, 1.0, first_s, last_s, 9, tokens)


def objective(**given: object) -> Objective:
    return Objective.model_validate({"name": "x", "percentile": 95, **given})


def test_objectives_that_a_request_cannot_answer_for_are_left_out_with_the_reason() -> None:
    found = promises(SPEC, "a", None)
    assert [one.name for one in found.judged] == ["ttft", "answered"]
    assert found.left_out == (
        "kv: kv_occupancy is not a property of a request",
        "other: speaks of model b*",
        "slow: speaks of class batch",
        "short: speaks of prompts of one size, which are not told apart here",
    )
    assert [one.name for one in promises(SPEC, "b1", "batch").judged] == ["ttft", "answered", "other", "slow"]


def test_availability_is_only_watched() -> None:
    ttft, answered = promises(SPEC, "a", None).goals
    assert (ttft.budget, ttft.is_watched, answered.is_watched) == (0.05, False, True)


def test_a_client_may_be_late_by_a_tenth_of_the_tightest_wait_and_by_10_ms_at_least() -> None:
    assert promises(SPEC, "a", None).late_s == pytest.approx(0.05)
    assert Promises((TPOT,), ()).late_s == pytest.approx(0.01)


def test_a_service_without_a_latency_has_no_capacity() -> None:
    spec = SPEC.model_copy(update={"objectives": SPEC.objectives[1:2]})
    with pytest.raises(WorkloadError, match="a load could be held against: give it an objective"):
        promises(spec, "a", None)


TTFT = objective(signal="ttft", threshold="200ms")
TPOT = objective(signal="tpot", threshold="100ms", min_output_tokens=3)
E2E = objective(signal="e2e", threshold="1500ms")
ANSWERED = objective(signal="availability")
VERDICTS = {
    "within, to the last": (record(first_s=1.1999), TTFT, 0),
    "counted from when it was due": (record(first_s=1.21), TTFT, 1),
    "refused": (record("rejected", None), TTFT, 1),
    "told to come later": (record("quota", None), TTFT, 1),
    "broken off after a timely token": (record("error"), TTFT, 1),
    "steps in time": (record(last_s=2.19), TPOT, 0),
    "steps too slow": (record(last_s=2.3), TPOT, 1),
    "too few tokens for a step": (record(tokens=2), TPOT, -1),
    "refused, so no step either": (record("rejected", None, tokens=0), TPOT, 1),
    "whole in time": (record(), E2E, 0),
    "given up": (record("timeout"), E2E, 1),
    "answered": (record(), ANSWERED, 0),
    "answered with nothing": (record("no_output", None, tokens=0), ANSWERED, 0),
    "not answered": (record("timeout"), ANSWERED, 1),
}


@pytest.mark.parametrize(("one", "promise", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_what_an_objective_says_of_a_request(one: Record, promise: Objective, verdict: int) -> None:
    assert series(promise, [one]).tolist() == [verdict]


def test_a_wait_behind_a_frozen_server_is_counted_in_full() -> None:
    """Coordinated omission: those who waited at this client were served fast once they were sent, and are bad."""
    frozen = [Record("m", at / 10, 3.1, "ok", 3.0, 3.0, 3.05, 3.1, 9, 2) for at in range(30)]
    assert sum(one.hop_ttft_s <= 0.2 for one in frozen if one.hop_ttft_s is not None) == 30
    assert series(TTFT, frozen).tolist() == [1] * 29 + [0]
