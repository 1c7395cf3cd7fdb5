"""Panels fill lines of 24 columns, section under section."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.check.structure import grid
from dashboards.grafana.grid import COLUMNS, Panel, Section, placed
from dashboards.model import JsonObject
from tests.dashboards.support import Found

Place = tuple[int, int, int, int]


def heading(title: str, panels: Sequence[JsonObject]) -> JsonObject:
    return {"title": title, "panels": list(panels)}


def section(*sizes: tuple[int, int], is_open: bool = True) -> Section:
    return Section("s", tuple(Panel(w, h, {"title": "p"}) for w, h in sizes), is_open)


def places(*sections: Section) -> list[Place]:
    found: list[Found] = [dict(panel) for panel in placed(sections, heading)]
    return [tuple(panel["gridPos"][key] for key in "xywh") for panel in found]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([(8, 4), (8, 4), (8, 4)], [(0, 1, 8, 4), (8, 1, 8, 4), (16, 1, 8, 4)]),
        ([(16, 4), (12, 4)], [(0, 1, 24, 4), (0, 5, 24, 4)]),
        ([(8, 4), (8, 4)], [(0, 1, 12, 4), (12, 1, 12, 4)]),
        ([(5, 4), (5, 4), (5, 4)], [(0, 1, 8, 4), (8, 1, 8, 4), (16, 1, 8, 4)]),
        ([(3, 4), (4, 4)], [(0, 1, 10, 4), (10, 1, 14, 4)]),
        ([(12, 9), (12, 3), (24, 2)], [(0, 1, 12, 9), (12, 1, 12, 3), (0, 10, 24, 2)]),
    ],
)
def test_a_line_is_filled_and_the_next_starts_under_its_highest(
    sizes: list[tuple[int, int]], expected: list[Place]
) -> None:
    assert places(section(*sizes)) == [(0, 0, COLUMNS, 1), *expected]


def test_sections_stand_under_each_other_and_a_closed_one_takes_a_line() -> None:
    found = placed([section((24, 5)), section((24, 7), is_open=False), section((24, 2))], heading)
    assert [panel["gridPos"] for panel in found if "panels" in panel] == [
        {"x": 0, "y": y, "w": COLUMNS, "h": 1} for y in (0, 6, 7)
    ]
    closed = found[2]["panels"]
    assert isinstance(closed, list)
    assert [panel["gridPos"]["y"] for panel in closed] == [7]
    assert len(found) == 5


def test_ids_follow_the_order_of_reading() -> None:
    found = placed([section((24, 5)), section((24, 7), is_open=False), section((24, 2))], heading)
    closed = found[2]["panels"]
    assert isinstance(closed, list)
    assert [panel["id"] for panel in (*found[:3], *closed, *found[3:])] == [1, 2, 3, 4, 5, 6]


sizes = st.lists(st.tuples(st.integers(1, COLUMNS), st.integers(1, 12)), max_size=12)


@given(st.lists(st.tuples(sizes, st.booleans()), max_size=5))
def test_no_panel_covers_another_whatever_their_sizes(sections: list[tuple[list[tuple[int, int]], bool]]) -> None:
    found = placed([section(*of, is_open=is_open) for of, is_open in sections], heading)
    assert list(grid({"panels": [dict(panel) for panel in found]})) == []


@given(sizes)
def test_every_line_of_panels_reaches_the_edge_of_the_page(of: list[tuple[int, int]]) -> None:
    widths: dict[int, int] = {}
    for _, y, width, _ in places(section(*of))[1:]:
        widths[y] = widths.get(y, 0) + width
    assert set(widths.values()) <= {COLUMNS}
