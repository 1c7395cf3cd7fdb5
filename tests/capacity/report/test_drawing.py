"""Charts drawn: everything inside, ticks at round values, nothing unescaped."""

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity.report.chart import Axis, Band, Chart, Dot, Dots, Line, Rule
from capacity.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, svg, value_text

values = st.floats(-1e6, 1e6, allow_nan=False)


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(f"<div>{svg(chart)}</div>")


def places(root: ET.Element) -> list[tuple[float, float]]:
    found = []
    for line in root.iter("polyline"):
        found += [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    found += [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root[0].iter("circle")]
    return found  # type: ignore[return-value]


@given(st.lists(st.tuples(values, values), min_size=1, max_size=30), st.booleans(), st.booleans())
def test_all_that_is_drawn_lies_within(points: list[tuple[float, float]], is_log: bool, from_zero: bool) -> None:
    axis = Axis("y", is_log=is_log, from_zero=from_zero)
    dots = [Dot(x, y, "says") for x, y in points]
    root = drawn(Chart("t", Axis("x", from_zero=from_zero), axis, (Line("l", points), Dots("d", dots))))
    for x, y in places(root):
        assert LEFT - 1 <= x <= WIDTH - RIGHT + 1
        assert TOP - 1 <= y <= HEIGHT - BOTTOM + 1


@given(st.lists(values, min_size=2, max_size=30))
def test_values_that_differ_take_the_whole_axis(numbers: list[float]) -> None:
    low, high = min(numbers), max(numbers)
    assume(high - low > 1e-3 * max(abs(low), abs(high), 1.0))
    axis = Axis("x", from_zero=False)
    at = [x for x, _ in places(drawn(Chart("t", axis, Axis("y"), (Line("l", [(x, 1) for x in numbers]),))))]
    edge = 0.06 * (WIDTH - LEFT - RIGHT)
    assert LEFT < min(at) < LEFT + edge
    assert WIDTH - RIGHT - edge < max(at) < WIDTH - RIGHT


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.031), (3, 17), (0, 12_345), (-4, 9)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    scale = Scale(Axis("x"), low, high, 0, 100)
    ticks = scale.ticks()
    assert 3 <= len(ticks) <= 8
    assert all(low - 1e-9 <= one <= high + 1e-9 for one in ticks)
    step = ticks[1] - ticks[0]
    assert round(step / 10 ** math.floor(math.log10(step)), 6) in (1, 2, 2.5, 5, 10)


def test_a_logarithm_has_ticks_at_powers() -> None:
    assert Scale(Axis("x", is_log=True), 0.001, 1.0, 0, 1).ticks()[:4] == pytest.approx([0.001, 0.002, 0.005, 0.01])
    assert Scale(Axis("x", is_log=True), 1e-6, 1.0, 0, 1).ticks() == pytest.approx([10.0**n for n in range(-6, 1)])


def test_every_mark_with_a_name_stands_in_the_legend() -> None:
    marks = (
        Line("line", [(0, 1), (2, 3)], is_dashed=True),
        Band("band", [(0, 1, 2), (2, 2, 4)]),
        Dots("dots", [Dot(1, 2, "here", 1, 3)], "bad"),
        Rule("level", 2.5),
        Rule("upright", 1.5, is_upright=True),
        Line("", [(0, 0)]),
    )
    root = drawn(Chart("t", Axis("x"), Axis("y"), marks))
    assert [item[0].tail for item in root.iter("li")] == ["line", "band", "dots", "level", "upright"]
    assert [title.text for title in root[0].iter("title")] == ["line", "here", "level", "upright", None]
    (bar,) = [line for line in root[0].iter("line") if line.attrib["class"] == "bar bad"]
    assert float(bar.attrib["y1"]) > float(bar.attrib["y2"])


def test_nothing_to_draw_is_said() -> None:
    assert svg(Chart("t", Axis("x"), Axis("y"), ())) == '<p class="quiet">Nothing to draw.</p>'


def test_words_are_escaped() -> None:
    nasty = '<script>&"'
    drawing = svg(Chart(nasty, Axis(nasty), Axis(nasty), (Line(nasty, [(0, 1)]), Dots(nasty, [Dot(0, 1, nasty)]))))
    assert "<script>" not in drawing
    ET.fromstring(f"<div>{drawing}</div>")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.05, "share", "5%"), (0.0123, "seconds", "12.3 ms"), (2.5, "seconds", "2.5 s"), (12_345.0, "number", "12,345")],
)
def test_values_are_written_in_their_unit(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text  # type: ignore[arg-type]
