"""The passive form, on real databases."""

from typing import Any

import pytest

from capacity.batch.recorded import WINDOW_S, Asked, Pair, Recorded, judge, least_of, model_of, read, told
from capacity.errors import WorkloadError
from capacity.stored.database import asked, named_database
from collector import schema
from slo.objective import Spec
from tests.capacity.stored.test_database import flags
from tests.collector.storage.test_commit import after

WHOSE = Asked("", "chat", "m", 0)
GAUGE: dict[str, Any] = {
    "environment": "",
    "service": "chat",
    "model": "m",
    "name": "engine_running",
    "attribute": "",
    "step_s": 10,
    "min": 0.0,
    "max": 0.0,
    "last": 0.0,
    "last_ns": 0,
    "samples": 5,
}
PERCENTILE: dict[str, Any] = {
    "environment": "",
    "service": "chat",
    "model": "m",
    "signal": "tpot",
    "source": "proxy",
    "window_s": WINDOW_S,
    "count": 50,
    "censored": 0,
    "coverage": 1.0,
}


def recorded(database: str, gauges: list[dict[str, Any]], percentiles: list[dict[str, Any]]) -> Any:
    """Have rows in the collector's own tables; the database as the planner names it."""
    after(
        database,
        lambda c: c.execute(schema.gauge.insert(), [GAUGE | row for row in gauges]),
        lambda c: c.execute(schema.percentile.insert(), [PERCENTILE | row for row in percentiles]),
    )
    return named_database(*flags("--database", database))


def test_windows_are_paired_by_when_they_were(database: str) -> None:
    gauges = [
        {"instance": "a", "start_s": 600, "mean": 4.0},
        {"instance": "a", "start_s": 700, "mean": 6.0},
        {"instance": "b", "start_s": 610, "mean": 7.0},
        {"instance": "idle", "start_s": 610, "mean": 0.0},
        {"instance": "a", "start_s": 900, "mean": 9.0},
        {"instance": "a", "start_s": 600, "mean": 99.0, "model": "other"},
        {"instance": "a", "start_s": 600, "mean": 99.0, "name": "engine_waiting"},
        {"instance": "a", "start_s": 1500, "mean": 3.0},
    ]
    percentiles = [
        {"at_s": 890, "p95": 0.5},
        {"at_s": 905, "p95": 0.02},
        {"at_s": 900, "p95": 0.9, "source": "engine"},
        {"at_s": 900, "p95": 0.9, "signal": "ttft"},
        {"at_s": 1200, "p95": 0.03},
        {"at_s": 1350, "p95": 0.7},
        {"at_s": 1800, "p95": 0.7, "count": 5},
        {"at_s": 2100, "p95": None},
    ]
    url = recorded(database, gauges, percentiles)
    found = asked(url, lambda c: read(c, WHOSE, 0.95))
    assert found == Recorded((Pair(6.0, 0.02), Pair(9.0, 0.03)), 0.95, "proxy")
    since = Asked("", "chat", "m", 900)
    assert asked(url, lambda c: read(c, since, 0.95)).pairs == (Pair(9.0, 0.03),)
    assert asked(url, lambda c: read(c, WHOSE, 0.97)).share == 0.99
    assert asked(url, lambda c: model_of(c, Asked("", "chat", "", 0))) == "m"
    with pytest.raises(WorkloadError, match="none of service mail; name one"):
        asked(url, lambda c: model_of(c, Asked("", "mail", "", 0)))


def pairs(most: int) -> tuple[Pair, ...]:
    return tuple(Pair(n, 0.010 + 0.001 * n) for n in range(1, most + 1))


def test_within_reach_the_fit_chooses() -> None:
    outcome = judge("tpot", Recorded(pairs(40), 0.95, "proxy"), 0.0305)
    assert (outcome.chosen, outcome.predicted, outcome.reach) == (20, 20, 38)
    made = outcome.as_json({})
    assert (made["verdict"], made["chosen_batch"], made["feasible_max"]) == ("chosen", 20, 20)


def test_beyond_reach_it_guesses_and_says_so() -> None:
    outcome = judge("tpot", Recorded(pairs(15), 0.95, "proxy"), 0.050)
    assert (outcome.chosen, outcome.predicted) == (None, 40)
    assert "they reach to 15.0 running at once" in outcome.sentence()
    assert "a largest batch of 40, which is beyond what was recorded: test it" in outcome.sentence()


@pytest.mark.parametrize(
    ("pairs", "threshold_s", "says"),
    [
        (pairs(3), 0.05, "only 3 windows of 5 minutes"),
        (tuple(Pair(8 + n / 100, 0.02) for n in range(20)), 0.05, "too close together"),
        (pairs(40), 0.005, "even one sequence at a time would break the promise"),
        (tuple(Pair(n, 0.01) for n in range(1, 30)), 0.05, "that it grows with no batch"),
    ],
    ids=["few", "alike", "too slow", "flat"],
)
def test_records_that_choose_nothing_say_why(pairs: tuple[Pair, ...], threshold_s: float, says: str) -> None:
    outcome = judge("tpot", Recorded(pairs, 0.95, "proxy"), threshold_s)
    assert outcome.chosen is None
    assert says in outcome.sentence()
    assert outcome.as_json({})["verdict"] == "none"


def tpot(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "signal": "tpot", "percentile": 95, "threshold": "30ms"} | more


def test_what_records_cannot_tell_is_left_out_by_name() -> None:
    objectives = [
        tpot("plain"),
        tpot("rare", percentile="99.95"),
        tpot("other", match={"model": "big-*"}),
        tpot("fast", match={"class": "chat"}),
        tpot("long", match={"prompt_bytes": ">=16k"}),
        tpot("essays", min_output_tokens=50),
        {"name": "first", "signal": "ttft", "percentile": 95, "threshold": "1s"},
    ]
    spec = Spec.model_validate({"service": "chat", "classes": ["chat"], "objectives": objectives})
    judged, left_out = told(spec, "m")
    assert [one.name for one in judged] == ["plain"]
    assert left_out == (
        "rare: speaks of 99.95% of the requests, and records go to 99.9%",
        "other: speaks of model big-*",
        "fast: speaks of class chat, and records tell no classes apart",
        "long: speaks of prompts of one size, which records do not tell apart",
        "essays: speaks of answers of at least 50 tokens, and records count shorter ones too",
        "first: records pair no batch with ttft",
    )
    none = Spec.model_validate({"service": "chat", "classes": ["chat"], "objectives": objectives[1:]})
    with pytest.raises(
        WorkloadError, match=r"promises no tpot of model m that records tell of \(rare: speaks of 99.95%"
    ):
        told(none, "m")


def test_of_several_promises_the_one_that_allows_the_least_batch_decides() -> None:
    within = judge("p50", Recorded(pairs(40), 0.5, "proxy"), 0.0305)
    less = judge("p99", Recorded(pairs(40), 0.99, "proxy"), 0.0205)
    beyond = judge("p90", Recorded(pairs(40), 0.9, "proxy"), 0.5)
    flat = judge("p95", Recorded(tuple(Pair(n, 0.01) for n in range(1, 30)), 0.95, "proxy"), 0.05)
    outcome = least_of([within, flat, less, beyond])
    assert (outcome.binding, outcome.chosen) == ("p99", 10)
    assert outcome.sentence() == "a batch of 10 keeps p50 and p95 and p99 and p90, by 40 recorded windows"
    few = judge("p999", Recorded(pairs(3), 0.999, "proxy"), 0.05)
    assert least_of([less, few]).chosen is None
    assert "no batch for p999: only 3 windows" in least_of([less, few]).sentence()
