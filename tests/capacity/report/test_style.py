"""The style sheets: a picture's has no variable left, and the colours of a light page."""

import re

from capacity.report.style import STYLE, picture_style


def test_a_picture_has_every_hue_of_a_mark_in_the_colours_of_a_light_page() -> None:
    sheet = picture_style()
    assert "var(" not in sheet
    light = dict(re.findall(r"--(\w+): (#\w+)", STYLE.partition("}")[0]))
    for hue in ("first", "second", "third", "good", "bad", "soft"):
        assert f".dot.{hue} {{ fill: {light[hue]};" in sheet
        assert f".line.{hue} {{ fill: none; stroke: {light[hue]};" in sheet
    assert f".grid {{ stroke: {light['rule']}; }}" in sheet


def test_a_page_has_the_looks_of_charts_once() -> None:
    assert STYLE.count(".grid {") == STYLE.count(".dot {") == 1
