"""Where panels stand: lines of 24 columns, filled from left to right, section under section. Pure.

A line that its panels leave open is closed by making each wider in proportion: no page has holes at its right.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from dashboards.model import JsonObject

COLUMNS = 24
HEADING_HEIGHT = 1

Heading = Callable[[str, Sequence[JsonObject]], JsonObject]
"""A title and the panels inside (none of an open section), as the panel that heads them."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel that has a size and no place yet."""

    width: int
    height: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Section:
    """Panels under a heading; a closed one asks nothing of its datasource until it is opened."""

    title: str
    panels: tuple[Panel, ...]
    is_open: bool = True


def placed(sections: Sequence[Section], heading: Heading) -> list[JsonObject]:
    """All panels with `gridPos` and `id`. Headings count as panels, and ids follow the order of reading."""
    found: list[JsonObject] = []
    ids, y = count(1), 0
    for section in sections:
        own = next(ids)
        inside, end = _filled(section.panels, y + HEADING_HEIGHT, ids)
        head = heading(section.title, [] if section.is_open else inside)
        found.append({**head, "id": own, "gridPos": _place(0, y, COLUMNS, HEADING_HEIGHT)})
        found += inside if section.is_open else []
        y = end if section.is_open else y + HEADING_HEIGHT
    return found


def _filled(panels: Sequence[Panel], top: int, ids: "count[int]") -> tuple[list[JsonObject], int]:
    """Panels from the line `top` on, and the line under the last of them."""
    found: list[JsonObject] = []
    y = top
    for line in _lines(panels):
        x = 0
        for panel in _widened(line):
            found.append({**panel.body, "id": next(ids), "gridPos": _place(x, y, panel.width, panel.height)})
            x += panel.width
        y += max(panel.height for panel in line)
    return found, y


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    """As many panels to a line as it holds."""
    line: list[Panel] = []
    for panel in panels:
        if line and sum(one.width for one in line) + panel.width > COLUMNS:
            yield line
            line = []
        line.append(panel)
    if line:
        yield line


def _widened(line: Sequence[Panel]) -> Iterator[Panel]:
    """The panels of a line, as wide as fills it; the ends are rounded, so that no column is lost."""
    total, x, filled = sum(panel.width for panel in line), 0, 0
    for panel in line:
        x += panel.width
        end = round(x * COLUMNS / total)
        yield replace(panel, width=end - filled)
        filled = end


def _place(x: int, y: int, width: int, height: int) -> JsonObject:
    return {"x": x, "y": y, "w": width, "h": height}
