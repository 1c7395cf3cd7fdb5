"""What stands on the terminal."""

import io

from rich.console import Console

from capacity.sizing.report import hours_text, report
from tests.capacity.sizing.test_result import answer


def test_the_answer_comes_first_and_each_number_of_replicas_has_its_row() -> None:
    said, out = answer(), io.StringIO()
    Console(file=out, width=200).print(report(said))
    lines = out.getvalue().splitlines()
    assert lines[0] == said.sentence()
    assert lines[1].split()[:3] == ["replicas", "ttft", "tpot"]
    rows = [line.split() for line in lines[2 : 2 + len(said.sized.candidates)]]
    assert [int(row[0]) for row in rows] == [one.replicas for one in said.sized.candidates]
    assert any(row[-1] == "Poisson" for row in rows)
    text = out.getvalue()
    assert "may miss" in text
    assert "GPU-hours a day" in text
    assert "warning: the capacity was given by hand" in text


def test_hours_without_tokens_are_those_of_a_day_alone() -> None:
    assert hours_text({"a_day": 48.0, "a_day_by_poisson": 24.0}) == "48 GPU-hours a day, 24 if sized by Poisson"
