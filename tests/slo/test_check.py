"""What a spec leaves unwatched, and the facts of its tiers."""

import math
from decimal import Decimal

import pytest

from slo.check import facts, headings, mapping, row, warnings
from slo.objective import parse
from tests.slo.test_cli import SPEC

E2E = "{name: e, signal: e2e, target: 95, threshold: 30s}"


@pytest.mark.parametrize(
    ("ranges", "gap"),
    [
        (["<16k"], "16384 bytes and more"),
        (["<16k", ">=16k"], None),
        (["<16k", "32k..64k", ">=64k"], "16384 to 32768 bytes"),
        ([">=1k"], "0 to 1024 bytes"),
        (["<16k", "8k..64k", ">=60k"], None),
        (["<16k", None], None),
        ([">=16k", "16k..64k"], "0 to 16384 bytes"),
        (["<16k", "<64k", ">=64k", "64k..128k"], None),
    ],
)
def test_prompt_sizes_that_no_ttft_objective_judges_are_warned_of(ranges: list[str | None], gap: str | None) -> None:
    rows = [
        f"{{name: t{i}, signal: ttft, target: 95, threshold: 1s{f', match: {{prompt_bytes: {r!r}}}' if r else ''}}}"
        for i, r in enumerate(ranges)
    ]
    (spec,) = parse(f"service: s\nobjectives: [{', '.join([*rows, E2E])}]")
    assert [w.split(" prompts of ")[1] for w in warnings(spec)] == ([gap] if gap else [])


def test_a_service_without_e2e_is_warned_of() -> None:
    assert any("no e2e objective" in warning for warning in warnings(parse(SPEC)[0]))


P50 = "service: s\nobjectives: [{name: half, signal: e2e, target: 50%, threshold: 1s}]"
BY_HAND = P50.replace("1s}]", "1s, window: 2d, alerts: {tiers: [{name: day, budget: 25%, long: 1d}]}}]")
SHORT = "service: s\nobjectives: [{name: quick, signal: e2e, target: 95%, threshold: 1s, window: 10m}]"
HOURLY = "service: s\nobjectives: [{name: hourly, signal: e2e, target: 95%, threshold: 1s, window: 1h}]"
WHOLE = "service: s\nobjectives: [{name: whole, signal: e2e, target: 95%, threshold: 1s}]"
LATE = (
    "tier fast of objective hourly fires when 500% of the budget is spent: 1h is too long a window for a period of 1h"
)
NEVER = "tier {} of objective whole cannot fire at that traffic: it needs 10 bad events, and {} sees {} in all"


@pytest.mark.parametrize(
    ("text", "per_s", "expected"),
    [
        (WHOLE, None, []),
        (WHOLE, "1", []),
        (WHOLE, "0.001", [NEVER.format("fast", "1h", "3.6")]),
        (SHORT, None, ["objective quick has no burn alert: its window, 10m, is shorter than every default tier"]),
        (HOURLY, None, [LATE]),
        (P50, None, ["objective half has no tier fast: at burn 2.5 it would need 125% bad, more than there can be"]),
        (BY_HAND, None, ["tier day of objective half fires from 25% bad on, though 50% may be"]),
    ],
    ids=["nothing to say", "enough traffic", "too little traffic", "too short a window",
         "a window as long as the period", "a promise to half",
         "a tier by hand that rings though the promise is kept"],
)  # fmt: skip
def test_tiers_that_do_little_good_are_warned_of(text: str, per_s: str | None, expected: list[str]) -> None:
    found = list(warnings(parse(text)[0], None if per_s is None else Decimal(per_s)))
    assert [warning.split(": give ")[0].split(": lower ")[0] for warning in found] == expected


@pytest.mark.parametrize(("threshold", "told"), [("500m", "8h20m"), ("500h", "500h"), ("30s", None), ("500ms", None)])
def test_a_unit_that_is_likely_a_slip_is_warned_of(threshold: str, told: str | None) -> None:
    said = [warning for warning in warnings(parse(SPEC.replace("500ms", threshold))[0]) if "ms" in warning]
    assert len(said) == (told is not None)
    assert all("lets a token take" in warning for warning in said)


def test_a_label_that_alerts_have_already_is_warned_of() -> None:
    (spec,) = parse(SPEC.replace("threshold: 500ms", "threshold: 500ms, labels: {cost_centre: a, severity: high}"))
    said = [warning for warning in warnings(spec) if warning.startswith("label ")]
    assert said == [
        "label severity of objective ttft is one that alerts have already, and alerts build refuses it: rename it"
    ]


def test_a_row_has_a_cell_under_each_heading() -> None:
    (objective,) = parse(WHOLE)[0].objectives
    for per_s in (None, Decimal(1)):
        assert {len(list(row(fact, per_s))) for fact in facts(objective, per_s)} == {len(headings(per_s))}


def test_an_alert_that_should_fire_all_the_time_is_a_number_in_json() -> None:
    (spec,) = parse(BY_HAND)
    fast = facts(spec.objectives[0], Decimal(1))[0]
    assert fast.false_alerts is not None
    assert math.isinf(fast.false_alerts)
    assert list(row(fast, Decimal(1)))[-1] == "always"
    assert "Infinity" not in str(mapping(spec, Decimal(1)))
