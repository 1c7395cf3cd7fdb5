"""Draws the status page: values of `view` in, HTML out, by the templates beside it.

Everything is rendered on the server: the page works without scripts, without internet and in any browser; the script
only fetches it anew when something is new. Autoescape is always on, and the content security policy allows nothing
inline and nothing from elsewhere.
"""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from collector.pages import charts
from collector.pages.drill import Drill
from collector.pages.view import Page

_HERE = Path(__file__).parent
_FIGURE = re.compile(r"(?<=[0-9]) (?=[a-z%])")
STATIC = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "charts.js": "text/javascript",
    "ask.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def front(page: Page, *, trouble: str | None = None) -> str:
    """The page at `/`. `trouble` is why the collector's figures are not to be relied on now."""
    return _templates().get_template("front.html").render(page=page, charts=charts, trouble=trouble)


def objective(page: Page, drill: Drill, *, trouble: str | None = None) -> str:
    """The page about one objective."""
    return _templates().get_template("objective.html").render(page=page, drill=drill, charts=charts, trouble=trouble)


@cache
def static(name: str) -> bytes:
    """The bytes of one of the files in `STATIC`."""
    return (_HERE / "static" / name).read_bytes()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["keep"] = _keep
    return environment


def _keep(text: str) -> str:
    """The text, its figures kept on one line with their units."""
    return _FIGURE.sub("\u00a0", text)
