"""The picture drawn, by the library that draws it."""

import functools
import struct

import pytest
import resvg_py

from capacity.errors import WorkloadError
from capacity.report import png as room
from capacity.report.picture import picture
from capacity.report.png import ZOOM, png, refuse_undrawable
from tests.capacity.report.test_html import PAGE


@functools.cache
def drawn() -> bytes:
    return png(PAGE)


def test_it_is_a_png_of_the_pictures_size() -> None:
    made = drawn()
    assert made.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", made[16:24])
    assert width == 1160 * ZOOM
    assert f'width="1160" height="{height / ZOOM:.0f}"' in picture(PAGE)


def test_its_words_and_colours_are_drawn() -> None:
    """The same picture with all of its text, or its style, left out is another file."""
    whole = picture(PAGE)
    for less in (whole.replace("<text", "<desc").replace("</text", "</desc"), whole.replace("<style>", "<style>/*")):
        assert resvg_py.svg_to_bytes(svg_string=less, zoom=ZOOM) != drawn()


def test_without_a_font_or_the_library_it_is_refused_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_undrawable()
    monkeypatch.setattr(room, "SOME_TEXT", room.NO_TEXT)
    with pytest.raises(WorkloadError, match="--png needs a font, and this machine has none"):
        refuse_undrawable()
    monkeypatch.setattr(room.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WorkloadError, match=r"--png needs resvg-py: install firsttoken\[capacity\]"):
        refuse_undrawable()
