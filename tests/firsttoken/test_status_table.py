"""The table at several widths, and each cell's text."""

import io
from typing import Any

import pytest
from rich.console import Console

from firsttoken.status_reply import ObjectiveStatus, read
from firsttoken.status_table import alerts, budget, burns, milliseconds, promise, quantiles, render
from tests.firsttoken.status_sample import objective, status


def row(**changed: Any) -> ObjectiveStatus:
    return read(status(objective(**changed))).objectives[0]


def shown(width: int, *objectives: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(render(read(status(*objectives)), width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 129, 130, 160])
def test_every_fact_is_there_at_any_width_and_no_line_is_longer(width: int) -> None:
    text = shown(width, objective(), objective("answered", signal="availability", threshold=None, state="burning"))
    assert max(map(len, text.splitlines())) <= width
    joined = " ".join(text.split())
    for fact in ("ttft", "answered", "burning", "62%", "95%"):
        assert fact in joined


def test_no_objectives_is_said() -> None:
    assert "no objectives" in shown(80)


PROMISES = {
    "ttft 95% <= 500 ms": {},
    "availability 99.9%": {"signal": "availability", "target": 0.999, "threshold": None, "unit": ""},
    "kv_occupancy 99% <= 0.9": {"signal": "kv_occupancy", "target": 0.99, "threshold": 0.9, "unit": "1"},
    "queue 99% <= 10": {"signal": "queue", "target": 0.99, "threshold": 10, "unit": "{request}"},
}


@pytest.mark.parametrize(("text", "changed"), PROMISES.items(), ids=PROMISES.keys())
def test_a_promise_in_a_few_words(text: str, changed: dict[str, Any]) -> None:
    assert promise(row(**changed)) == text


def test_cells() -> None:
    assert quantiles(row()) == "31.0 ms / 47.4 ms / -"
    assert burns(row()) == "15s 0.0  1m 0.8"
    assert budget(row()) == "62%, 90m"
    assert alerts(row(alerts=[{"tier": "fast", "state": "firing"}, {"tier": "slow", "state": "ok"}])) == "fast firing"


def test_cells_without_anything() -> None:
    bare = row(windows=[], budget={}, percentiles={}, alerts=[])
    assert (quantiles(bare), burns(bare), budget(bare), alerts(bare)) == ("-", "-", "-", "-")


@pytest.mark.parametrize(("ends_s", "text"), [(5387.2, "62%, 90m"), (800_000, "62%, 9d 6h"), (864_000, "62%")])
def test_how_long_a_budget_lasts_is_rounded_and_left_out_when_it_is_far(ends_s: float, text: str) -> None:
    assert budget(row(budget={"remaining": 0.62, "exhausted_in_s": ends_s})) == text


def test_an_overspent_budget_is_below_zero() -> None:
    assert budget(row(budget={"remaining": -1.5, "exhausted_in_s": 0})) == "-150%"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0314, "31.4 ms"), (0.314, "314 ms"), (2.5, "2500 ms"), (12.34, "12.3 s")]
)
def test_times(seconds: float | None, text: str) -> None:
    assert milliseconds(seconds) == text
