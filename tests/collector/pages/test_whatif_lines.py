"""A what-if in words: both promises side by side, bounds where there are any, trouble where nothing is known."""

from dataclasses import replace

from collector.pages.whatif_lines import Answer, answer, form
from collector.replaying.whatif import Bounded, WhatIf, answered
from tests.collector.replaying.test_whatif import ANSWERED, ASKED, TTFT, asked, read


def found(*, percentile: str = "95", threshold: str = "", unsure: int = 0, lacking: tuple[str, ...] = ()) -> WhatIf:
    spec = asked(percentile=percentile, threshold=threshold)
    return answered(spec, read(spec, unsure=unsure, lacking=lacking))


def told(said: Answer) -> dict[str, list[str]]:
    return {row.name: [cell.text for cell in row.cells] for row in said.rows}


def test_both_promises_stand_side_by_side() -> None:
    said = answer(found())
    assert list(said.heading) == ["as promised", "what if"]
    rows = told(said)
    assert rows["promise"][1] == "95 % of requests get a first token within 500 ms"
    assert rows["bad events"] == ["2.0 % of 864,000"] * 2
    assert rows["budget spent"] == ["200 %", "40 %"]
    assert rows["slow alert"][1] == "would not have fired"
    assert said.over == "the last 1 d that are stored"
    assert said.basis.startswith("Exact")
    assert not any(cell.bounds.startswith("at least") for row in said.rows for cell in row.cells)


def test_a_bar_shows_what_is_spent_and_its_tone_whether_it_is_all() -> None:
    spent = next(row for row in answer(found()).rows if row.name == "budget spent")
    assert [cell.tone for cell in spent.cells] == ["bad", "good"]
    assert spent.cells[0].width == 100
    assert spent.cells[1].width is not None
    assert 39 < spent.cells[1].width < 41


def test_figures_that_are_not_exact_have_bounds() -> None:
    one = found(threshold="400ms", unsure=1)
    assert one.asked is not None
    said = answer(replace(one, asked=replace(one.asked, basis="histogram")))
    bounds = {row.name: row.cells[1].bounds for row in said.rows}
    assert bounds["bad events"] == "at least 1.0 %, at most 3.0 %"
    assert bounds["budget spent"].startswith("at least 20 %, at most 60 %")
    assert bounds["least budget left"].startswith("at least 4")
    assert "have bounds" in said.basis
    exact = found(threshold="400ms")
    assert exact.asked is not None
    read_off = replace(exact.asked, basis="histogram")
    assert answer(replace(exact, asked=read_off)).basis == "Read off the stored histograms."
    said = answer(replace(exact, asked=replace(read_off, missing=72)))
    assert "72 events that were counted are in no histogram" in said.basis


def test_an_alert_that_would_page_says_how_often() -> None:
    said = answer(found(percentile="99.9"))
    fast = next(row for row in said.rows if row.name == "fast alert").cells[1]
    assert (fast.text, fast.tone) == ("once", "bad")
    assert "pages above" in fast.bounds
    sure = found(percentile="99.9").asked
    assert sure is not None
    tiers = [replace(one, firing_s=Bounded(7200, 3600, 7260)) for one in sure.tiers]
    said = answer(replace(found(percentile="99.9"), asked=replace(sure, tiers=tiers)))
    fast = next(row for row in said.rows if row.name == "fast alert").cells[1]
    assert fast.bounds.startswith("2 h in all (at least 1 h, at most 2 h 1 min), pages above")


def test_a_tier_that_would_not_exist_is_named() -> None:
    rows = told(answer(found(percentile="50")))
    assert any("would not exist" in cell for cells in rows.values() for cell in cells[1:])


def test_what_nothing_can_tell_is_said() -> None:
    said = answer(found(lacking=(ASKED,)))
    assert said.trouble == "The stored past cannot answer: nobody wrote it down."


def test_the_form_is_filled_with_what_was_asked_else_with_what_is_promised() -> None:
    empty = form(TTFT)
    assert (empty.percentile, empty.threshold, empty.threshold_s) == ("99", "500ms", 0.5)
    filled = form(TTFT, percentile="95", threshold="1s")
    assert (filled.percentile, filled.threshold, filled.promised_percentile) == ("95", "1s", "99")
    other = form(ANSWERED)
    assert (other.percentile, other.threshold, other.threshold_s) == ("99.9", "", None)
