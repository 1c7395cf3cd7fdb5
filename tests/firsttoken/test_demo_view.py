"""A frame as a line and as a table."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from firsttoken.demo_plan import MODEL
from firsttoken.demo_view import Frame, Phase, draw, line
from firsttoken.pager import Notification
from firsttoken.status_reply import Status, read
from tests.firsttoken.status_sample import objective, status

PAGE = Notification(0.0, "page", "firing", ("LLMTTFTBudgetBurn ttft/fast",))


def frame(**changed: Any) -> Frame:
    firing = [{"tier": "fast", "state": "firing"}]
    rows = status(
        objective(alerts=firing, state="burning"),
        objective("tpot", signal="tpot", percentiles={}, windows=[]),
        objective("tpot", signal="tpot", model=MODEL),
    )
    whole = Frame(
        at_s=65.0,
        phase=Phase("incident", "slow: every step", 40.0, 30.0),
        status=read(rows),
        kv_used=0.31,
        prometheus=None,
        notifications=((62.0, PAGE),),
    )
    return replace(whole, **changed)


def drawn(seen: Frame, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(draw(seen))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_line_says_it_all() -> None:
    assert line(frame()) == (
        "[  65 s] incident   TTFT 31/47/- ms  TPOT 31/47/- ms  KV 31%  burn 1m ttft 0.8 tpot -"
        "  budget ttft 62% tpot 62%  firing ttft"
    )


def test_beside_prometheus_both_verdicts_are_said() -> None:
    assert line(frame(prometheus=("tpot",))).endswith("firing ttft (Prometheus: tpot)")
    assert line(frame(prometheus=())).endswith("firing ttft (Prometheus: nothing)")


def test_before_the_first_answer_everything_is_absent_and_nothing_is_zero() -> None:
    empty = frame(status=Status(None, ()), kv_used=None, notifications=())
    assert line(empty) == "[  65 s] incident   TTFT -  TPOT -  KV -  burn 1m   budget   firing nothing"
    assert "KV cache used" in drawn(empty)


def test_the_table_shows_latency_burn_budget_verdict_and_what_rang() -> None:
    text = drawn(frame())
    for fact in ("incident", "25 s of about 30 s", "47.4 ms", "31%", "burn 15s", "burn 10m", "62%", "FIRING"):
        assert fact in text
    assert "62 s  page firing: LLMTTFTBudgetBurn ttft/fast" in text
    assert "Prometheus" not in text


def test_each_objective_stands_once_with_both_verdicts() -> None:
    rows = [row for row in drawn(frame(prometheus=("ttft",))).splitlines() if row.split()[:1] in (["ttft"], ["tpot"])]
    assert [(row.split()[0], row.count("FIRING"), row.count("quiet")) for row in rows] == [
        ("ttft", 2, 0),
        ("tpot", 0, 2),
    ]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_a_table_too(width: int) -> None:
    assert max(map(len, drawn(frame(), width).splitlines())) <= width


def test_a_phase_of_no_known_length_shows_no_end() -> None:
    assert "of about" not in drawn(frame(phase=Phase("after", "", 60.0, 0.0)))


def test_a_phase_that_lasts_longer_than_usual_keeps_a_full_bar() -> None:
    assert "60 s of about 30 s" in drawn(frame(at_s=100.0))
