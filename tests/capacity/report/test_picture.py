"""The layout of a picture: nothing overlaps, nothing sticks out, nothing is unescaped."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from capacity.report.chart import Axis, Chart, Line
from capacity.report.page import Facts, Page, Table, Words
from capacity.report.picture import GAP, MARGIN, picture
from tests.capacity.report.test_html import PAGE

SVG = "{http://www.w3.org/2000/svg}"
LOAD = Chart("Load", Axis("x"), Axis("y"), (Line("a line of some name", [(0, 1), (1, 3)]),))


def drawn(page: Page) -> ET.Element:
    return ET.fromstring(picture(page))


def cards(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Where each card lies: left, top, right, bottom."""
    found = []

    def walk(node: ET.Element, x: float, y: float) -> None:
        if node.tag == f"{SVG}g":
            dx, dy = node.attrib["transform"].removeprefix("translate(").removesuffix(")").split()
            x, y = x + float(dx), y + float(dy)
        if node.attrib.get("class") == "card":
            found.append((x, y, x + float(node.attrib["width"]), y + float(node.attrib["height"])))
        for child in node:
            walk(child, x, y)

    walk(root, 0, 0)
    return found


def test_all_words_of_the_page_stand_on_it() -> None:
    texts = {node.text for node in drawn(PAGE).iter(f"{SVG}text")}
    assert {"Title", "Verdict & more", "certified", "5/s", "Load", "What to see.", "<2>", "<why>", "one"} <= texts
    assert {"--flag <x>", "Said below.", "l"} <= texts


def test_two_charts_stand_side_by_side_and_a_third_below() -> None:
    left, right, below = cards(drawn(replace(PAGE, parts=(LOAD, LOAD, LOAD))))
    assert left[1] == right[1]
    assert right[0] == left[2] + GAP
    assert below[:2] == (left[0], left[3] + GAP)


words = st.text(st.characters(codec="utf-8"), max_size=90)
names = st.lists(st.tuples(words, words), min_size=1, max_size=9)
parts = st.one_of(
    st.builds(Facts, words, names, st.booleans()),
    st.builds(Words, words, st.lists(words, max_size=4), st.booleans()),
    st.builds(lambda title, rows: Table(title, ("a", "b"), rows, frozenset({0}), "said"), words, names),
    st.just(LOAD),
    st.just(replace(LOAD, marks=())),
)


@given(st.lists(parts, max_size=6), words)
def test_whatever_a_page_holds_its_cards_are_apart_and_within(held: list[object], verdict: str) -> None:
    root = drawn(Page("t", verdict, "bad", held))  # type: ignore[arg-type]
    found = cards(root)
    assert len(found) == len(held)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for place, (left, top, right, bottom) in enumerate(found):
        assert MARGIN - 1 <= left < right <= width - MARGIN + 1
        assert top < bottom <= height - MARGIN + 1
        for other in found[:place]:
            assert other[3] <= top or other[2] <= left


def test_a_wide_table_makes_a_wide_picture() -> None:
    wide = Table("t", [f"column number {n}" for n in range(20)], [["0.00%"] * 20])
    assert float(drawn(replace(PAGE, parts=(wide,))).attrib["width"]) > 2500
    assert float(drawn(PAGE).attrib["width"]) == 1160
