"""The picture of a report as a PNG. resvg draws it: one small library that needs no browser and no other program.

Its text needs a font of the machine; where there is none, as in a bare container, that is said instead of drawing a
picture without a word.
"""

import importlib.util

from capacity.errors import WorkloadError
from capacity.report.page import Page
from capacity.report.picture import picture

ZOOM = 2.0
"""Pixels of the PNG for each of the layout: sharp on a screen of today, and on paper."""
NO_TEXT = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"></svg>'
SOME_TEXT = NO_TEXT.replace("><", '><text x="2" y="16" font-family="DejaVu Sans, Liberation Sans, Arial">x</text><')


def png(page: Page) -> bytes:
    """The page as a PNG. Raises WorkloadError where it cannot be drawn."""
    refuse_undrawable()
    from resvg_py import svg_to_bytes

    return svg_to_bytes(svg_string=picture(page), zoom=ZOOM)


def refuse_undrawable() -> None:
    """Raise WorkloadError where no picture can be drawn: better before a long run than after it."""
    if importlib.util.find_spec("resvg_py") is None:
        raise WorkloadError("--png needs resvg-py: install firsttoken[capacity]")
    from resvg_py import svg_to_bytes

    if svg_to_bytes(svg_string=SOME_TEXT) == svg_to_bytes(svg_string=NO_TEXT):
        raise WorkloadError("--png needs a font, and this machine has none: install one, as the package fonts-dejavu")
