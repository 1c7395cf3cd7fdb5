"""Where panels stand: lines of 24 columns, filled from left to right, section under section. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    x, y, bottom = 0, top, top
    for panel in panels:
        if x + panel.width > COLUMNS:
            x, y = 0, bottom
        place = _place(x, y, panel.width, panel.height)
        found.append({**panel.body, "id": next(ids), "gridPos": place})
        x, bottom = x + panel.width, max(bottom, y + panel.height)
    return found, bottom


def _place(x: int, y: int, width: int, height: int) -> JsonObject:
    return {"x": x, "y": y, "w": width, "h": height}
