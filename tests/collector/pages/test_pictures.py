"""Which line of the past a chart draws, and within which bounds."""

from dataclasses import replace
from typing import Any

import pytest

from collector.pages.pictures import picture, points
from tests.collector.answering import test_status as made
from tests.collector.pages.test_view import NO_PAST, past_of

KEY = ("", "chat")
ROW = {"model": "m"}
TTFT, ANSWERED = made.SPECS[0].objectives


def columns(**known: Any) -> dict[str, Any]:
    p95 = [(made.AT_S - 60, 0.4), (made.AT_S, 0.6)]
    return dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), p95) | known


def heights(band: str) -> list[int]:
    return [int(place.split()[1]) for place in band.replace("Z", "").replace("M", "L").split("L") if place]


def test_a_percentile_is_drawn_within_its_error() -> None:
    known = columns(rel_error=[(made.AT_S - 60, 0.5), (made.AT_S, 0.5)], at_least=[])
    drawn = picture(past_of(percentiles={(*KEY, "m", "ttft"): known}), TTFT, [ROW], key=KEY)
    assert (drawn.title, drawn.unit, drawn.is_rough) == ("p95 over 5 min", "s", True)
    first_high, _, _, first_low = heights(drawn.chart.band)
    assert first_low - first_high == pytest.approx(0.4 / drawn.chart.top * 960, abs=2)


def test_a_fine_error_is_not_rough() -> None:
    known = columns(rel_error=[(made.AT_S - 60, 0.011), (made.AT_S, 0.011)], at_least=[])
    assert not picture(past_of(percentiles={(*KEY, "m", "ttft"): known}), TTFT, [ROW], key=KEY).is_rough


def test_what_is_only_known_to_be_exceeded_is_open_above() -> None:
    known = columns(rel_error=[], at_least=[(made.AT_S, 0.6)])
    drawn = picture(past_of(percentiles={(*KEY, "m", "ttft"): known}), TTFT, [ROW], key=KEY)
    assert heights(drawn.chart.band)[1] == 0


def test_of_several_models_no_band_is_drawn() -> None:
    percentiles = {(*KEY, model, "ttft"): columns() for model in "mn"}
    drawn = picture(past_of(percentiles=percentiles), TTFT, [{"model": "m"}, {"model": "n"}], key=KEY)
    assert ([line.name for line in drawn.chart.lines], drawn.chart.band) == (["m", "n"], "")
    percentiles = {(*KEY, model, "ttft"): columns() for model in "*m"}
    whole = picture(past_of(percentiles=percentiles), TTFT, [{"model": "*"}, ROW], key=KEY)
    assert [line.name for line in whole.chart.lines] == ["all models", "m"]


def test_an_objective_without_percentiles_shows_its_burn() -> None:
    burns = [(made.AT_S - 9, 0.5), (made.AT_S, 2.0)]
    past = past_of(burns={(*KEY, "m", "answered"): burns})
    assert picture(past, ANSWERED, [ROW], key=KEY).title == "burn over 5 min"
    assert points(past, ANSWERED, [ROW], key=KEY) == burns
    assert points(NO_PAST, ANSWERED, [ROW], key=KEY) == ()


def test_the_points_of_a_chart_are_those_of_the_first_model_that_is_known() -> None:
    past = replace(NO_PAST, percentiles={(*KEY, "n", "ttft"): columns()})
    assert points(past, TTFT, [ROW, {"model": "n"}], key=KEY) == columns()["p95"]
