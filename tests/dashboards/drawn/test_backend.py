"""What is asked of Prometheus for a query of the page, and what the page gets for the answer."""

import json
from pathlib import Path

import pytest

from tests.dashboards.drawn.backend import Asked, asked, frames, legend, rate_interval_s
from tests.dashboards.support import Found, figures

GENERATED = Path(__file__).parents[3] / "dashboards" / "generated" / "prometheus"
LATEST = Asked("A", "up", "", start_s=0, end_s=60, step_s=15, is_instant=True)


def query(expr: str, **changes: object) -> Found:
    return {"refId": "A", "expr": expr, "intervalMs": 5000, **changes}


@pytest.mark.parametrize(
    ("expr", "changes", "expected"),
    [
        ("rate(a[$__rate_interval])", {}, "rate(a[60000ms])"),
        ("rate(a[${__rate_interval}])", {"interval": "2s"}, "rate(a[8000ms])"),
        ("rate(a[$__rate_interval])", {"interval": "60s", "intervalMs": 300_000}, "rate(a[360000ms])"),
        ("b[$__range:$__interval]", {"interval": "15s"}, "b[600s:15000ms]"),
        ("$__interval_ms $__range_s $__ranges", {}, "5000 600 $__ranges"),
    ],
)
def test_macros_are_filled_in_as_grafana_does(expr: str, changes: Found, expected: str) -> None:
    assert asked(query(expr, **changes), 0, 600).expr == expected


def test_a_rate_spans_four_scrapes_or_a_step_and_a_scrape() -> None:
    assert rate_interval_s(5, 15) == 60
    assert rate_interval_s(300, 15) == 315


def test_every_rate_of_the_dashboards_spans_four_scrapes_whatever_the_data_source_says() -> None:
    targets = [
        target
        for path in GENERATED.glob("*.json")
        for one in figures(json.loads(path.read_text()))
        for target in one["targets"]
        if "$__rate_interval" in target["expr"]
    ]
    assert len(targets) > 50
    for target in targets:
        made = asked({**target, "intervalMs": 60_000}, 0, 21_600)
        assert "[240000ms]" in made.expr, target["expr"]


def test_a_range_is_aligned_to_its_step_and_an_instant_is_its_end() -> None:
    made = asked(query("up", range=True), 1001, 1602)
    assert made.parameters() == (
        "query_range",
        {"query": "up", "start": "1000.0", "end": "1600.0", "step": "5.0"},
    )
    assert asked(query("up", instant=True), 1001, 1602).parameters() == ("query", {"query": "up", "time": "1600.0"})


def test_a_series_has_the_name_that_the_query_gives_it_or_its_own() -> None:
    labels = {"__name__": "up", "job": "a", "zone": "b"}
    assert legend(LATEST, labels) == 'up{job="a", zone="b"}'
    assert legend(LATEST, {"__name__": "up"}) == "up"
    assert legend(LATEST, {}) == "up"
    named = Asked("A", "up", "{{job}} {{ gone }} {{zone}}", 0, 60, 15, is_instant=True)
    assert legend(named, labels) == "a  b"


def test_each_series_is_a_frame_with_its_labels_and_what_json_cannot_say() -> None:
    samples = [[0, "1.5"], [15, "NaN"], [30, "+Inf"], [45, "-Inf"]]
    (frame,) = frames(LATEST, {"resultType": "matrix", "result": [{"metric": {"job": "a"}, "values": samples}]})
    time, value = frame["schema"]["fields"]
    assert (time["config"]["interval"], value["labels"]) == (15000, {"job": "a"})
    assert frame["data"]["values"] == [[0, 15000, 30000, 45000], [1.5, None, None, None]]
    assert frame["data"]["entities"] == [None, {"NaN": [1], "Inf": [2], "NegInf": [3]}]
    assert frame["schema"]["meta"]["executedQueryString"] == "Expr: up\nStep: 15s"


def test_an_answer_without_series_is_an_empty_frame_and_a_scalar_one_without_labels() -> None:
    (empty,) = frames(LATEST, {"resultType": "vector", "result": []})
    assert (empty["schema"]["fields"], empty["data"]) == ([], {"values": []})
    (scalar,) = frames(LATEST, {"resultType": "scalar", "result": [60, "2"]})
    assert (scalar["schema"]["fields"][1]["labels"], scalar["data"]["values"]) == ({}, [[60000], [2.0]])
