"""Small charts as SVG geometry: points in, path data out. Pure; colours and sizes are the style sheet's.

A line breaks where a value is unknown and where points are missing for longer than a few steps: what was not seen is
never drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from collector.pages.history import Points

WIDTH, HEIGHT = 240.0, 48.0
GAP_STEPS = 5
MIN_GAP_S = 60
HEADROOM = 1.15
MAX_POINTS = 240
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
    """Lines in a box of WIDTH x HEIGHT, and how high up the threshold lies."""

    lines: tuple[Line, ...]
    threshold_y: float | None
    top: float

    @property
    def is_empty(self) -> bool:
        return not self.lines

    @property
    def latest(self) -> float | None:
        """The highest of the latest values."""
        return max((line.latest for line in self.lines), default=None)


def chart(named: Mapping[str, Points], *, start_s: int, end_s: int, threshold: float | None = None) -> Chart:
    """The chart of the points within start_s..end_s, from 0 up to a little above the highest of them and the
    threshold. Of more than MAX_LINES the highest are drawn."""
    inside = {name: [point for point in points if start_s <= point[0] <= end_s] for name, points in named.items()}
    peaks = {
        name: max((value for _, value in points if value is not None), default=None) for name, points in inside.items()
    }
    drawn = sorted((name for name, peak in peaks.items() if peak is not None), key=lambda name: -(peaks[name] or 0.0))
    top = max((*(peaks[name] or 0.0 for name in drawn), threshold or 0.0, 1e-9)) * HEADROOM
    scale = _Scale(start_s, max(end_s, start_s + 1), top)
    lines = tuple(_line(name, inside[name], scale) for name in drawn[:MAX_LINES])
    return Chart(lines, None if threshold is None else round(scale.y(threshold), 1), top)


@dataclass(frozen=True, slots=True)
class _Scale:
    start_s: int
    end_s: int
    top: float

    def place(self, at_s: int, value: float) -> tuple[float, float]:
        x = (at_s - self.start_s) / (self.end_s - self.start_s) * WIDTH
        return round(x, 1), round(self.y(value), 1)

    def y(self, value: float) -> float:
        return HEIGHT - min(max(value / self.top, 0.0), 1.0) * HEIGHT


def _line(name: str, points: Sequence[tuple[int, float | None]], scale: _Scale) -> Line:
    runs = [[scale.place(at_s, value) for at_s, value in run] for run in _runs(_thinned(points, scale))]
    latest = [value for _, value in points if value is not None][-1]
    return Line(name, " ".join(map(_path, runs)), " ".join(map(_area, runs)), latest)


def _thinned(points: Sequence[tuple[int, float | None]], scale: _Scale) -> list[tuple[int, float | None]]:
    """At most MAX_POINTS, each the highest of its stretch of time: a peak is never thinned away."""
    stretch_s = -(-(scale.end_s - scale.start_s) // MAX_POINTS)
    parts = groupby(points, key=lambda point: (point[0] - scale.start_s) // stretch_s)
    return [max(part, key=lambda point: -1.0 if point[1] is None else point[1]) for _, part in parts]


def _runs(points: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
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


def _path(run: Iterable[tuple[float, float]]) -> str:
    places = list(run)
    if len(places) == 1:
        # A single point has no length: draw a short stroke, or it would not be seen.
        places.append((places[0][0] + 1.0, places[0][1]))
    return "M" + " L".join(f"{x:g} {y:g}" for x, y in places)


def _area(run: Sequence[tuple[float, float]]) -> str:
    return f"{_path(run)} L{run[-1][0]:g} {HEIGHT:g} L{run[0][0]:g} {HEIGHT:g} Z"
