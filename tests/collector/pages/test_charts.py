"""Charts: geometry that draws what was seen, and nothing else."""

import re

from hypothesis import given
from hypothesis import strategies as st

from collector.pages.charts import HEADROOM, HEIGHT, MAX_LINES, MAX_POINTS, WIDTH, Bounds, Chart, Span
from collector.pages.charts import chart as charted
from collector.pages.history import Points

POINTS = st.lists(st.tuples(st.integers(0, 1000), st.one_of(st.none(), st.floats(0, 1e6))), max_size=400).map(
    lambda points: sorted(dict(points).items())
)


def chart(points: Points, *, start_s: int, end_s: int, threshold: float | None = None, bounds: Bounds = ()) -> Chart:
    return charted({"m": points}, span=Span(start_s, end_s), threshold=threshold, bounds=bounds)


def path(drawn: Chart) -> str:
    return "".join(line.path for line in drawn.lines)


def numbers(path: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e[-+]?\d+)?", path)]


@given(points=POINTS, threshold=st.one_of(st.none(), st.floats(0, 1e6)))
def test_nothing_is_drawn_outside_the_box(points: list[tuple[int, float | None]], threshold: float | None) -> None:
    drawn = chart(points, start_s=0, end_s=1000, threshold=threshold)
    places = numbers(path(drawn))
    assert all(0 <= x <= WIDTH + 2 for x in places[::2])
    assert all(0 <= y <= HEIGHT for y in places[1::2])
    assert drawn.threshold_y is None or 0 <= drawn.threshold_y <= HEIGHT
    assert drawn.is_empty == (not any(value is not None for _, value in points))


def test_a_line_breaks_where_a_value_is_unknown_and_where_points_are_missing() -> None:
    unknown = chart([(0, 1.0), (10, None), (20, 1.0), (30, 1.0)], start_s=0, end_s=100)
    assert path(unknown).count("M") == 2
    missing = [(at, 1.0) for at in (*range(0, 100, 10), *range(500, 600, 10))]
    assert path(chart(missing, start_s=0, end_s=1000)).count("M") == 2
    assert path(chart([(at, 1.0) for at in range(0, 600, 10)], start_s=0, end_s=600)).count("M") == 1


def test_the_threshold_is_always_in_sight() -> None:
    low = chart([(0, 0.1), (10, 0.1)], start_s=0, end_s=10, threshold=1.0)
    high = chart([(0, 9.0), (10, 9.0)], start_s=0, end_s=10, threshold=1.0)
    assert low.threshold_y is not None
    assert high.threshold_y is not None
    assert 0 < low.threshold_y < numbers(path(low))[1]
    assert numbers(path(high))[1] < high.threshold_y < HEIGHT


def test_a_peak_is_never_thinned_away() -> None:
    points = [(at, 1.0) for at in range(5 * MAX_POINTS)]
    points[333] = (333, 100.0)
    drawn = chart(points, start_s=0, end_s=5 * MAX_POINTS)
    assert path(drawn).count("L") < MAX_POINTS
    assert min(numbers(path(drawn))[1::2]) == round(HEIGHT - HEIGHT / HEADROOM)


def test_points_outside_the_span_are_left_out() -> None:
    assert chart([(5, 1.0), (500, 1.0)], start_s=100, end_s=200).is_empty


def test_a_gap_of_folded_steps_is_no_hole() -> None:
    """Older points stand a minute apart, newer ones ten seconds: both are whole lines."""
    points = [(at, 1.0) for at in (*range(0, 7200, 60), *range(7200, 10800, 10))]
    assert path(chart(points, start_s=0, end_s=10800)).count("M") == 1


def test_several_lines_share_one_scale_and_the_highest_are_drawn() -> None:
    named = {f"m{number}": [(0, float(number)), (10, float(number))] for number in range(MAX_LINES + 3)}
    drawn = charted(named | {"silent": [(0, None)]}, span=Span(0, 10))
    assert [line.name for line in drawn.lines] == [f"m{number}" for number in range(MAX_LINES + 2, 2, -1)]
    assert drawn.latest == MAX_LINES + 2
    heights = [numbers(line.path)[1] for line in drawn.lines]
    assert heights == sorted(heights)


def test_a_band_lies_about_its_line_and_is_open_where_nothing_bounds_it() -> None:
    points = [(0, 1.0), (10, 1.0), (20, 2.0)]
    bounds = [(0, 0.9, 1.1), (10, 0.9, 1.1), (20, 2.0, None)]
    drawn = chart(points, start_s=0, end_s=20, bounds=bounds)
    places = numbers(drawn.band)
    upper, lower = places[1:6:2], places[7:12:2][::-1]
    line = numbers(path(drawn))[1::2]
    assert all(high <= at <= low for high, at, low in zip(upper, line, lower, strict=True))
    assert (upper[2], lower[2]) == (0, line[2])
    assert chart([(0, None)], start_s=0, end_s=20, bounds=bounds).band == ""


def test_values_can_be_read_back_from_the_places() -> None:
    values = [0.0012, 0.4, 0.37, 0.91]
    drawn = chart([(at * 10, value) for at, value in enumerate(values)], start_s=0, end_s=30)
    read = [(1 - y / HEIGHT) * drawn.top for y in numbers(path(drawn))[1::2]]
    assert max(abs(one - value) for one, value in zip(read, values, strict=True)) <= drawn.top / HEIGHT
