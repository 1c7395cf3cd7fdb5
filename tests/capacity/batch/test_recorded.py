"""The passive form, on real databases."""

from typing import Any

import pytest

from capacity.batch.recorded import WINDOW_S, Asked, Pair, Recorded, judge, model_of, read
from capacity.errors import WorkloadError
from capacity.stored.database import asked, named_database
from collector import schema
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
    outcome = judge(Recorded(pairs(40), 0.95, "proxy"), 0.0305)
    assert (outcome.chosen, outcome.predicted, outcome.reach) == (20, 20, 38)
    made = outcome.as_json({})
    assert (made["verdict"], made["chosen_batch"], made["feasible_max"]) == ("chosen", 20, 20)


def test_beyond_reach_it_guesses_and_says_so() -> None:
    outcome = judge(Recorded(pairs(15), 0.95, "proxy"), 0.050)
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
    outcome = judge(Recorded(pairs, 0.95, "proxy"), threshold_s)
    assert outcome.chosen is None
    assert says in outcome.sentence()
    assert outcome.as_json({})["verdict"] == "none"
