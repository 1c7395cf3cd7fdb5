"""What a chart shows: two axes and marks, in the units of what was measured. How it looks is `drawing`'s business."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["number", "share", "seconds"]
Point = tuple[float, float]
Hue = Literal["first", "second", "third", "good", "bad", "soft"]


@dataclass(frozen=True, slots=True)
class Axis:
    """`from_zero` keeps 0 on it; a `is_log` one shows positive values alone. `most` cuts what lies beyond. One that
    `is_whole` has no ticks between whole numbers; one with `names` has these at 0, 1, 2 and so on instead of values."""

    label: str
    unit: Unit = "number"
    from_zero: bool = True
    is_log: bool = False
    most: float | None = None
    is_whole: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined in the order of their x."""

    name: str
    points: Sequence[Point]
    hue: Hue = "first"
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two values at each x, as (x, low, high)."""

    name: str
    points: Sequence[tuple[float, float, float]]
    hue: Hue = "first"


@dataclass(frozen=True, slots=True)
class Dot:
    """One point, with a bar from `low` to `high` where that is known, and what is said when it is pointed at."""

    x: float
    y: float
    says: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Dots:
    """Points of one kind."""

    name: str
    dots: Sequence[Dot]
    hue: Hue = "first"


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line at a value of the y axis, or of the x axis when upright."""

    name: str
    at: float
    hue: Hue = "soft"
    is_upright: bool = False


Mark = Line | Band | Dots | Rule


@dataclass(frozen=True, slots=True)
class Chart:
    """`says` is what there is to see in it, in a sentence."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    says: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but rules to see."""
        return not any(True for mark in self.marks if not isinstance(mark, Rule) for _ in places(mark))


def places(mark: Mark) -> Iterator[Point]:
    """Every place that a mark must have room for; a rule has one on its own axis, which is nowhere else."""
    if isinstance(mark, Line):
        yield from mark.points
    elif isinstance(mark, Band):
        for x, low, high in mark.points:
            yield x, low
            yield x, high
    elif isinstance(mark, Dots):
        for dot in mark.dots:
            yield dot.x, dot.y
            yield from ((dot.x, end) for end in (dot.low, dot.high) if end is not None)
