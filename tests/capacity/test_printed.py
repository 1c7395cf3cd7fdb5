"""Results on standard output, at a terminal's width or a pipe's."""

import pytest
from rich.table import Table

from capacity.printed import PIPE_WIDTH, moment_text, paper, print_left_out


def test_in_a_pipe_nothing_is_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table(box=None, show_header=False)
    table.add_row("x" * (PIPE_WIDTH - 10))
    paper().print(table)
    assert "x" * (PIPE_WIDTH - 10) in capsys.readouterr().out


def test_what_looks_like_markup_stands_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_left_out(paper(), ["llama-[ab]*: it speaks of [/one] class"])
    assert capsys.readouterr().out == "left out: llama-[ab]*: it speaks of [/one] class\n"


def test_a_width_that_is_given_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert paper().width == 60


def test_a_moment_is_said_in_utc() -> None:
    assert moment_text(1_800_000_059) == "2027-01-15 08:00 UTC"
