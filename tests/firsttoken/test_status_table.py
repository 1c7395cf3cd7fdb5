"""The table at several widths, and each cell's text."""

import io
from typing import Any

import pytest
from rich.console import Console

from firsttoken.status_reply import ObjectiveStatus, read
from firsttoken.status_table import budget, burns, ends, milliseconds, now, promise, render, state
from tests.firsttoken.status_sample import alert, objective, status


def row(**changed: Any) -> ObjectiveStatus:
    return read(status(objective(**changed))).objectives[0]


def shown(width: int, *objectives: dict[str, Any], **changed: Any) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(render(read(status(*objectives) | changed), width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 119, 120, 160])
def test_every_fact_is_there_at_any_width_and_no_line_is_longer(width: int) -> None:
    up = objective("answered", signal="availability", threshold=None, state="burning")
    text = shown(width, objective(), up, alerts=[alert()])
    assert max(map(len, text.splitlines())) <= width
    joined = " ".join(text.split())
    for fact in ("ttft", "answered", "burning", "62%", "95%", "90m", "47.4 ms", "0.8/0.0 >5.0", "page", "5m"):
        assert fact in joined


def test_no_objectives_is_said() -> None:
    assert "no objectives" in shown(80)


@pytest.mark.parametrize("width", [80, 160])
def test_an_objective_is_named_once_and_a_single_model_needs_no_row_of_its_own(width: int) -> None:
    assert shown(width, objective(), objective(model="m")).count(" m ") == 0
    text = shown(width, objective(), objective(model="m"), objective(model="n"))
    assert (text.count("demo/ttft"), text.count(" m "), text.count(" n ")) == (1, 1, 1)


def test_of_many_models_those_in_trouble_are_shown() -> None:
    models = [objective(model=f"model-{number}", state="burning" if number == 3 else "ok") for number in range(9)]
    text = shown(160, objective(), *models)
    assert "model-3" in text
    assert "model-4" not in text
    assert "8 further models" in text


@pytest.mark.parametrize("width", [80, 160])
def test_a_model_may_have_any_name(width: int) -> None:
    text = shown(width, objective(), objective(model="x[fp8]"), objective(model="[/]\x1b[2J"))
    assert "x[fp8]" in text
    assert "[/]\\x1b[2J" in text


def test_what_the_collector_left_out_is_said() -> None:
    assert "41 further objectives" in shown(160, objective(), total=42)


def test_what_burns_is_told_with_its_cause_also_while_it_only_looms() -> None:
    for urgency in ("firing", "pending"):
        said = alert(state=urgency, annotations={"cause": "requests fail, 100 % sure: failed 25 %"})
        assert "        cause: requests fail, 100 % sure: failed 25 %" in shown(160, objective(), alerts=[said])
    assert "cause" not in shown(160, objective(), alerts=[alert()])


def test_one_trouble_is_told_once_the_most_urgent_first() -> None:
    found = [
        alert(tier="slow", notify="ticket", model="m"),
        alert(model="m"),
        alert(),
        alert(tier="medium", model="n"),
        alert("LLMTelemetryAbsent", objective="", model="", tier="", state="pending", annotations={}),
    ]
    lines = shown(160, objective(), alerts=found).splitlines()
    told = [line for line in lines if line.startswith(("page", "ticket", "pending"))]
    assert [line.split()[0] for line in told] == ["page", "ticket", "pending"]
    assert told[0].split("  ")[-1].endswith("demo/ttft fast, medium, for 5m (m, n)")
    assert told[2].endswith("LLMTelemetryAbsent demo, for 5m")
    assert "no alert fires" in shown(160, objective())


def test_colours_only_repeat_what_words_say() -> None:
    file = io.StringIO()
    Console(file=file, width=160, force_terminal=True, no_color=True).print(render(read(status(objective())), 160))
    assert "\x1b[3" not in file.getvalue()
    assert state(row(state="exhausted")).plain == "budget spent"


PROMISES = {
    "ttft 95% <= 500ms": {},
    "availability 99.9%": {"signal": "availability", "target": 0.999, "threshold": None, "unit": ""},
    "kv_occupancy 99% <= 0.9": {"signal": "kv_occupancy", "target": 0.99, "threshold": 0.9, "unit": "1"},
    "queue 99% <= 10": {"signal": "queue", "target": 0.99, "threshold": 10, "unit": "{request}"},
}


@pytest.mark.parametrize(("text", "changed"), PROMISES.items(), ids=PROMISES.keys())
def test_a_promise_in_a_few_words(text: str, changed: dict[str, Any]) -> None:
    assert promise(row(**changed)) == text


def test_the_promised_percentile_stands_against_the_threshold() -> None:
    assert now(row()).plain == "p95 1m 47.4 ms"
    slow = {"1m": {"count": 9, "p95": 0.7, "p99": 2.0}}
    assert now(row(percentiles=slow)).plain == "p95 1m 700 ms too slow"
    assert now(row(percentiles={"1m": {"count": 9, "p95": None, "at_least": 0.4}})).plain == "p95 1m > 400 ms"
    assert now(row(percentiles={"1m": {"count": 9, "p95": None, "at_least": 0.5}})).plain.endswith("> 500 ms too slow")
    assert now(row(percentiles={"1m": {"count": 9, "p95": None, "at_least": 3.0}})).plain.endswith("> 3000 ms too slow")
    assert now(row(target=0.97, percentiles=slow)).plain == "p95 1m 700 ms"


def test_a_tier_shows_its_two_burns_and_its_factor() -> None:
    assert burns(row()).plain == "fast 0.8/0.0 >5.0"
    assert burns(row(alerts=[{"tier": "fast", "state": "firing"}])).plain == "fast 0.8/0.0 >5.0 firing"
    assert burns(row(tiers=[])).plain == "-"


@pytest.mark.parametrize(
    ("told", "burn", "coverage", "alerts"),
    [
        ("", 5.0, 0.1, []),
        (" held back, 6s of 1m known", 8.0, 0.1, []),
        (" held back, few bad events", 8.0, 1.0, []),
        (" held back, few bad events", 8.0, None, []),
        (" pending", 8.0, 1.0, [{"tier": "fast", "state": "pending"}]),
    ],
)
def test_a_tier_that_burns_and_does_not_fire_says_why(
    told: str, burn: float, coverage: float | None, alerts: list[dict[str, str]]
) -> None:
    windows = [{"window": "1m", "window_s": 60, "burn": burn, "coverage": coverage}]
    assert burns(row(windows=windows, alerts=alerts)).plain == f"fast {burn}/- >5.0{told}"


def test_cells_without_anything() -> None:
    bare = row(windows=[], budget={}, percentiles={}, alerts=[])
    assert (now(bare).plain, burns(bare).plain, budget(bare).plain, ends(bare)) == ("-", "-", "-", "-")
    assert budget(row(state="no_data")).plain == "-"


@pytest.mark.parametrize(("ends_s", "text"), [(5387.2, "90m"), (800_000, "9d 6h"), (864_000, "-"), (None, "-")])
def test_how_long_a_budget_lasts_is_rounded_and_left_out_when_it_is_far(ends_s: float | None, text: str) -> None:
    assert ends(row(budget={"remaining": 0.62, "exhausted_in_s": ends_s})) == text


def test_an_overspent_budget_is_below_zero() -> None:
    assert budget(row(budget={"remaining": -1.5, "exhausted_in_s": 0})).plain == "-150%"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0314, "31.4 ms"), (0.314, "314 ms"), (2.5, "2500 ms"), (12.34, "12.3 s")]
)
def test_times(seconds: float | None, text: str) -> None:
    assert milliseconds(seconds) == text
