"""Small charts as SVG geometry: points in, path data out. Pure; colours and sizes are the style sheet's.

A line breaks where a value is unknown and where points are missing for longer than a few steps: what was not seen is
never drawn. Places are whole units of a box that is much finer than any screen: short to send, and whoever hovers over
a chart has its values read back from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from collector.pages.history import Points

WIDTH, HEIGHT = 480, 960
GAP_STEPS = 5
MIN_GAP_S = 60
HEADROOM = 1.15
MAX_POINTS = 120
MAX_POINTS_LARGE = 480
MAX_LINES = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name, path data, the area under it, and its latest value."""

    name: str
    path: str
    area: str
    latest: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines in a box of WIDTH x HEIGHT, from `start_s` to `end_s` and from 0 to `top`, and how high up the threshold
    lies. `band` is the area within which the first line's true values lie, where that is known."""

    lines: tuple[Line, ...]
    threshold_y: int | None
    top: float
    start_s: int = 0
    end_s: int = 1
    band: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.lines

    @property
    def latest(self) -> float | None:
        """The highest of the latest values."""
        return max((line.latest for line in self.lines), default=None)


@dataclass(frozen=True, slots=True)
class Span:
    """What part of the past a chart shows, and with how many points at most."""

    start_s: int
    end_s: int
    points: int = MAX_POINTS


Bounds = Sequence[tuple[int, float, float | None]]
"""(moment, least, most) in order of time; None where nothing bounds it above."""


def chart(named: Mapping[str, Points], *, span: Span, threshold: float | None = None, bounds: Bounds = ()) -> Chart:
    """The chart of the points within the span, from 0 up to a little above the highest of them and the threshold. Of
    more than MAX_LINES the highest are drawn."""
    inside = {name: _inside(points, span) for name, points in named.items()}
    peaks = {
        name: max((value for _, value in points if value is not None), default=None) for name, points in inside.items()
    }
    drawn = sorted((name for name, peak in peaks.items() if peak is not None), key=lambda name: -(peaks[name] or 0.0))
    top = max((*(peaks[name] or 0.0 for name in drawn), threshold or 0.0, 1e-9)) * HEADROOM
    scale = _Scale(span.start_s, max(span.end_s, span.start_s + 1), top, span.points)
    lines = tuple(_line(name, inside[name], scale) for name in drawn[:MAX_LINES])
    y = None if threshold is None else scale.y(threshold)
    return Chart(lines, y, top, scale.start_s, scale.end_s, _band(bounds, scale) if lines else "")


def _inside(points: Points, span: Span) -> Points:
    return [point for point in points if span.start_s <= point[0] <= span.end_s]


@dataclass(frozen=True, slots=True)
class _Scale:
    start_s: int
    end_s: int
    top: float
    points: int

    def place(self, at_s: int, value: float) -> tuple[int, int]:
        return round((at_s - self.start_s) / (self.end_s - self.start_s) * WIDTH), self.y(value)

    def y(self, value: float) -> int:
        return round(HEIGHT - min(max(value / self.top, 0.0), 1.0) * HEIGHT)


def _line(name: str, points: Points, scale: _Scale) -> Line:
    runs = [[scale.place(at_s, value) for at_s, value in run] for run in _runs(_thinned(points, scale))]
    latest = [value for _, value in points if value is not None][-1]
    return Line(name, "".join(map(_path, runs)), "".join(map(_area, runs)), latest)


def _band(bounds: Bounds, scale: _Scale) -> str:
    """The area between the bounds, a stretch at a time; what nothing bounds above reaches the top."""
    inside = [one for one in bounds if scale.start_s <= one[0] <= scale.end_s]
    least = {at_s: low for at_s, low, _ in inside}
    most = {at_s: scale.top if high is None else high for at_s, _, high in inside}
    runs = _runs(_thinned(list(most.items()), scale))
    return "".join(
        _path([scale.place(at_s, high) for at_s, high in run])
        + "".join(f"L{x} {y}" for x, y in (scale.place(at_s, least[at_s]) for at_s, _ in reversed(run)))
        + "Z"
        for run in runs
    )


def _thinned(points: Points, scale: _Scale) -> Points:
    """At most so many points, each the highest of its stretch of time: a peak is never thinned away."""
    stretch_s = -(-(scale.end_s - scale.start_s) // scale.points)
    parts = groupby(points, key=lambda point: (point[0] - scale.start_s) // stretch_s)
    return [max(part, key=lambda point: -1.0 if point[1] is None else point[1]) for _, part in parts]


def _runs(points: Points) -> list[list[tuple[int, float]]]:
    """Stretches without a hole."""
    steps = sorted(later[0] - earlier[0] for earlier, later in pairwise(points))
    gap_s = max(GAP_STEPS * steps[len(steps) // 2], MIN_GAP_S) if steps else MIN_GAP_S
    runs: list[list[tuple[int, float]]] = []
    before_s: int | None = None
    for at_s, value in points:
        if value is None:
            before_s = None
            continue
        if before_s is None or at_s - before_s > gap_s:
            runs.append([])
        runs[-1].append((at_s, value))
        before_s = at_s
    return runs


def _path(run: Sequence[tuple[int, int]]) -> str:
    places = list(run)
    if len(places) == 1:
        # A single point has no length: draw a short stroke, or it would not be seen.
        places.append((places[0][0] + 2, places[0][1]))
    return "M" + "L".join(f"{x} {y}" for x, y in places)


def _area(run: Sequence[tuple[int, int]]) -> str:
    return f"{_path(run)}L{run[-1][0]} {HEIGHT}L{run[0][0]} {HEIGHT}Z"
