"""The status read from JSON: whole, with parts missing, and what is none at all."""

import pytest

from firsttoken.errors import UnreachableError
from firsttoken.status_reply import read
from tests.firsttoken.status_sample import alert, objective, status


def test_a_whole_status_is_read() -> None:
    found = read(
        status(
            objective(
                alerts=[
                    {"tier": "fast", "state": "firing"},
                    {"tier": "slow", "state": "pending"},
                    {"tier": "", "state": "firing"},
                ]
            )
        )
    )
    assert found.at_s == 1700000000
    (row,) = found.objectives
    assert (row.service, row.model, row.name, row.signal) == ("demo", "*", "ttft", "ttft")
    assert (row.target, row.threshold, row.unit, row.state) == (0.95, 0.5, "s", "ok")
    assert row.window("1m").burn == 0.83
    assert row.window("10m").burn is None
    assert (row.budget_remaining, row.exhausted_in_s) == (0.62, 5400)
    assert row.percentiles["1m"].p95 == 0.0474
    assert row.percentiles["1m"].p99 is None
    assert row.firing == ("fast",)
    (tier,) = row.tiers
    assert (tier.name, tier.long, tier.short, tier.factor) == ("fast", "1m", "15s", 5.0)


def test_the_alerts_of_everything_are_read_and_what_is_left_out() -> None:
    found = read(status(objective()) | {"alerts": [alert(), alert(annotations={"summary": "s"})], "total": 3})
    assert found.left_out == 2
    first, second = found.alerts
    assert (first.name, first.notify, first.since_s, first.text) == (
        "LLMTTFTBudgetBurn",
        "page",
        1699999700,
        "60 of 100 events were bad",
    )
    assert (second.text, second.cause) == ("s", "")


def test_a_cause_from_the_wire_is_made_visible() -> None:
    (found,) = read(status(objective()) | {"alerts": [alert(annotations={"cause": "a\x1b[31mb"})]}).alerts
    assert "\x1b" not in found.cause
    assert found.cause.startswith("a")


@pytest.mark.parametrize(("share", "name"), [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")])
def test_the_promised_percentile_is_found_by_its_share(share: float, name: str) -> None:
    (row,) = read(status(objective(percentiles={"1m": {"count": 1, name: 0.25}}))).objectives
    assert row.percentiles["1m"].of(share) == 0.25
    assert row.percentiles["1m"].of(0.97) is None


def test_what_is_missing_is_absent_and_never_zero() -> None:
    (row,) = read({"objectives": [{"objective": "x"}]}).objectives
    assert (row.state, row.budget_remaining, row.target, row.threshold) == ("no_data", None, None, None)
    assert (row.windows, row.alerts, dict(row.percentiles)) == ((), (), {})
    assert row.window("1m").burn is None


def test_fields_of_a_wrong_kind_are_absent() -> None:
    (row,) = read(
        {"objectives": [{"target": True, "threshold": "0.5", "budget": 7, "windows": [3, {"burn": "x"}], "alerts": 1}]}
    ).objectives
    assert (row.target, row.threshold) == (None, 0.5)
    assert [window.burn for window in row.windows] == [None]


@pytest.mark.parametrize(
    ("state", "troubled"), [("ok", False), ("no_data", False), ("burning", True), ("exhausted", True)]
)
def test_trouble_is_a_burn_or_an_empty_budget(state: str, troubled: bool) -> None:
    assert read(status(objective(), objective("tpot", state=state))).is_troubled is troubled


@pytest.mark.parametrize("body", [None, [], {}, {"objectives": 1}, "x"])
def test_another_answer_is_no_status(body: object) -> None:
    with pytest.raises(UnreachableError, match="not a collector's status"):
        read(body)
