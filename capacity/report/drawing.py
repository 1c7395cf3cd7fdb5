"""A chart as inline SVG: ticks at round values, marks, and a legend of those that have a name.

Colours are classes of the page's style sheet, so that one drawing does in light and in dark.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from capacity.report.chart import Axis, Band, Chart, Dots, Line, Mark, Rule, Unit, places

WIDTH, HEIGHT = 560, 280
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 24, 44
TICKS = 6
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
SLACK = 0.06
LEAST_SPAN = 1e-6
"""Of an axis, as a part of the values on it: where all are the same there is still a scale."""
LEGEND_SWATCH = 10
NOTHING = "Nothing to draw."


@dataclass(frozen=True, slots=True)
class Scale:
    """Values of an axis, and where they lie between two places of the drawing."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Where a value lies; one beyond the ends lies at the end."""
        if self.axis.is_log:
            low, high = math.log(self.low), math.log(self.high)
            share = (math.log(max(value, self.low)) - low) / (high - low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self) -> list[float]:
        """Round values within; the places of names, where it has these."""
        if self.axis.names:
            return [float(place) for place in range(len(self.axis.names))]
        if self.axis.is_log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first < 4 else (1,)
            return [n * 10.0**power for power in range(first, last + 1) for n in steps if self.holds(n * 10.0**power)]
        step = round_step((self.high - self.low) / TICKS, is_whole=self.axis.is_whole)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def round_step(rough: float, *, is_whole: bool = False) -> float:
    """The least round step that is not smaller."""
    power = 10.0 ** math.floor(math.log10(rough))
    fits = (n * power for n in ROUND if n * power >= rough * (1 - 1e-9) and not (is_whole and n * power % 1))
    return next(fits, 1.0)


def svg(chart: Chart) -> str:
    """The chart with its legend, as a page holds it; a sentence where there is nothing to draw."""
    if chart.is_empty:
        return f'<p class="quiet">{NOTHING}</p>'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}"'
    legend = "".join(_legend(mark) for mark in chart.marks if mark.name)
    return f'<svg {size}>{marks_of(chart)}</svg><ul class="legend">{legend}</ul>'


def marks_of(chart: Chart) -> str:
    """What lies within the chart's frame of `WIDTH` by `HEIGHT`: ticks and marks. It must not be empty."""
    x, y = _scales(chart)
    drawn = [*_grid(x, y)]
    for mark in chart.marks:
        drawn += _mark(mark, x, y)
    return "".join(drawn)


def swatch(mark: Mark) -> str:
    """A mark's looks beside its name in the legend, `LEGEND_SWATCH` wide and high."""
    hue = f"{mark.hue} dashed" if isinstance(mark, Line) and mark.is_dashed else mark.hue
    return SWATCHES[type(mark)](hue)


def value_text(value: float, unit: Unit) -> str:
    """A value as it stands at an axis or in a table."""
    if unit == "share":
        return f"{value * 100:.3g}%"
    if unit == "seconds":
        return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    found = [place for mark in chart.marks for place in places(mark)]
    upright = [mark.at for mark in chart.marks if isinstance(mark, Rule) and mark.is_upright]
    level = [mark.at for mark in chart.marks if isinstance(mark, Rule) and not mark.is_upright]
    x = _scale(chart.x, [*(one for one, _ in found), *upright], LEFT, WIDTH - RIGHT)
    y = _scale(chart.y, [*(one for _, one in found), *level], HEIGHT - BOTTOM, TOP)
    return x, y


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> Scale:
    if axis.is_log:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive), max(positive)
        return Scale(axis, low / 1.2, min(high, axis.most or high) * 1.2, begin, end)
    if axis.names:
        return Scale(axis, -0.5, len(axis.names) - 0.5, begin, end)
    held = [*values, 0.0] if axis.from_zero else values
    low, high = min(held), max(held)
    high = min(high, axis.most) if axis.most is not None else high
    slack = SLACK * max(high - low, LEAST_SPAN * max(abs(high), 1.0))
    return Scale(axis, low - slack if low < 0 or not axis.from_zero else low, high + slack, begin, end)


def _grid(x: Scale, y: Scale) -> Iterator[str]:
    for value in y.ticks():
        at = y.at(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield _tick(value_text(value, y.axis.unit), LEFT - 8, at + 4, "end")
    for value in x.ticks():
        text = x.axis.names[int(value)] if x.axis.names else value_text(value, x.axis.unit)
        yield _tick(text, x.at(value), HEIGHT - BOTTOM + 18, "middle")
    yield _tick(x.axis.label, WIDTH - RIGHT, HEIGHT - 6, "end")
    yield _tick(y.axis.label, 0, 11, "start")


def _tick(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _mark(mark: Mark, x: Scale, y: Scale) -> Iterator[str]:
    if isinstance(mark, Rule):
        yield _rule(mark, x, y)
    elif isinstance(mark, Line):
        yield _line(mark, x, y)
    elif isinstance(mark, Band):
        yield _band(mark, x, y)
    else:
        yield from _dots(mark, x, y)


def _rule(mark: Rule, x: Scale, y: Scale) -> str:
    if mark.is_upright:
        place = f'x1="{x.at(mark.at):.1f}" x2="{x.at(mark.at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
    else:
        place = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(mark.at):.1f}" y2="{y.at(mark.at):.1f}"'
    return f'<line class="rule {mark.hue}" {place}><title>{escape(mark.name)}</title></line>'


def _line(mark: Line, x: Scale, y: Scale) -> str:
    points = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in mark.points)
    dashed = " dashed" if mark.is_dashed else ""
    return f'<polyline class="line {mark.hue}{dashed}" points="{points}"><title>{escape(mark.name)}</title></polyline>'


def _band(mark: Band, x: Scale, y: Scale) -> str:
    above = [f"{x.at(a):.1f},{y.at(high):.1f}" for a, _, high in mark.points]
    below = [f"{x.at(a):.1f},{y.at(low):.1f}" for a, low, _ in reversed(mark.points)]
    return f'<polygon class="band {mark.hue}" points="{" ".join([*above, *below])}"/>'


def _dots(mark: Dots, x: Scale, y: Scale) -> Iterator[str]:
    for dot in mark.dots:
        at = x.at(dot.x)
        if dot.low is not None and dot.high is not None:
            ends = f'y1="{y.at(dot.low):.1f}" y2="{y.at(dot.high):.1f}"'
            yield f'<line class="bar {mark.hue}" x1="{at:.1f}" x2="{at:.1f}" {ends}/>'
        place = f'cx="{at:.1f}" cy="{y.at(dot.y):.1f}" r="4"'
        yield f'<circle class="dot {mark.hue}" {place}><title>{escape(dot.says)}</title></circle>'


SWATCHES: dict[type[Mark], Callable[[str], str]] = {
    Line: lambda hue: f'<line class="line {hue}" x1="0" x2="{LEGEND_SWATCH}" y1="5" y2="5"/>',
    Rule: lambda hue: f'<line class="rule {hue}" x1="0" x2="{LEGEND_SWATCH}" y1="5" y2="5"/>',
    Band: lambda hue: f'<rect class="band {hue}" width="{LEGEND_SWATCH}" height="{LEGEND_SWATCH}"/>',
    Dots: lambda hue: f'<circle class="dot {hue}" cx="5" cy="5" r="4"/>',
}


def _legend(mark: Mark) -> str:
    view = f'class="swatch" viewBox="0 0 {LEGEND_SWATCH} {LEGEND_SWATCH}"'
    return f"<li><svg {view}>{swatch(mark)}</svg>{escape(mark.name)}</li>"
