"""A status that is watched: what fits the terminal, the most urgent first, and nothing lost unsaid."""

import io
from typing import Any

import pytest
from rich.console import Console

from firsttoken.status_reply import read
from firsttoken.status_screen import screen
from firsttoken.status_table import render
from tests.firsttoken.status_sample import alert, objective, status

HEIGHT = 23


def lines(width: int, *objectives: dict[str, Any], height: int = HEIGHT, **changed: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(screen(read(status(*objectives) | changed), console, height=height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def fifty(**states: str) -> list[dict[str, Any]]:
    """Fifty objectives of ten services; the named ones in another state."""
    return [
        objective(f"o{n}", service=f"s{n // 5}", state=states.get(f"o{n}", "ok"), model=model)
        for n in range(50)
        for model in ("*", "m", "n")
    ]


@pytest.mark.parametrize("width", [50, 80, 130])
def test_fifty_objectives_fit_the_most_urgent_first(width: int) -> None:
    text = lines(width, *fifty(o44="burning", o31="exhausted"), alerts=[alert()])
    assert len(text) <= HEIGHT
    assert max(map(len, text)) <= width
    assert text[0].startswith("page")
    named = [line for line in text if line.startswith("s")]
    assert [line.split()[0] for line in named[:2]] == ["s6/o31", "s8/o44"]
    assert text[-1] == f"and {50 - len(named)} more: {50 - len(named)} kept"


def test_the_tightest_budget_comes_before_those_that_are_fuller() -> None:
    rows = fifty()
    rows[3 * 40]["budget"] = {"remaining": 0.01, "exhausted_in_s": 5400}
    first = next(line for line in lines(80, *rows) if line.startswith("s"))
    assert first.startswith("s8/o40  kept, 1% left, ends in 90m")


def test_what_fits_is_shown_as_ever() -> None:
    found = read(status(objective()))
    console = Console(file=io.StringIO(), width=80)
    console.print(render(found, 80))
    assert isinstance(console.file, io.StringIO)
    assert lines(80, objective()) == console.file.getvalue().splitlines()


def test_many_alerts_leave_room_for_objectives_and_are_said_to_be_more() -> None:
    alerts = [alert(objective=f"o{n}") for n in range(30)]
    text = lines(80, *fifty(), alerts=alerts)
    assert len(text) <= HEIGHT
    assert "more alerts: firsttoken status shows them all" in text
    assert sum(line.startswith("s") for line in text) >= 10


@pytest.mark.parametrize("height", [1, 6, 9])
def test_a_low_terminal_shows_what_it_can(height: int) -> None:
    text = lines(40, *fifty(o7="burning"), height=height)
    assert len(text) <= max(height, 6)
    assert any("s1/o7" in line for line in text)


def test_no_objectives_is_said() -> None:
    assert "no objectives" in lines(80)[0]


def test_an_objective_that_is_kept_for_one_model_alone_is_that_one() -> None:
    rows = [objective(f"o{n}", model="only", state="burning" if n == 9 else "ok") for n in range(40)]
    assert lines(80, *rows)[1].startswith("demo/o9  burning")
