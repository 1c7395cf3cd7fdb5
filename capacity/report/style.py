"""The style sheets of a report: of a page, which goes by the reader's light or dark, and of a picture, which is light.

What charts look like stands once, in `chart.css`. A browser resolves its variables; for a picture they are resolved
here, because its renderer knows none.
"""

import re
from importlib.resources import files
from typing import get_args

from capacity.report.chart import Hue


def _sheet(name: str) -> str:
    return files("capacity.report").joinpath(name).read_text(encoding="utf-8")


STYLE = _sheet("style.css") + _sheet("chart.css")


def picture_style() -> str:
    """The sheet of a picture, in the colours of a light page, without a variable."""
    light = dict(re.findall(r"--(\w+): (#\w+)", _sheet("style.css").partition("}")[0]))
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", _sheet("chart.css") + _sheet("picture.css"))
    return "\n".join(_resolved(selector.strip(), body.strip(), light) for selector, body in rules)


def _resolved(selector: str, body: str, colours: dict[str, str]) -> str:
    """One rule; where it goes by the hue of a mark, one for each hue."""
    body = re.sub(r"var\(--(\w+)\)", lambda found: colours.get(found[1], found[0]), body)
    if "var(--hue)" not in body:
        return f"{selector} {{ {body} }}"
    hues = get_args(Hue)
    return "\n".join(f"{selector}.{hue} {{ {body.replace('var(--hue)', colours[hue])} }}" for hue in hues)
