"""Rules of the variables: that several values and All work, wherever they stand, and that no choice is left in."""

import re
from collections.abc import Iterator

from dashboards.check.reading import strings, variables
from dashboards.model import JsonObject

ON_TIME_RANGE_CHANGE = 2
EVERYTHING: JsonObject = {"selected": True, "text": ["All"], "value": ["$__all"]}


def several(found: JsonObject) -> Iterator[str]:
    for one in variables(found, "query"):
        is_open = one.get("multi") and one.get("includeAll") and one.get("allValue")
        if not is_open or one.get("refresh") != ON_TIME_RANGE_CHANGE:
            yield str(one.get("name"))


def leaks(found: JsonObject) -> Iterator[str]:
    for one in variables(found):
        left, is_source = one.get("current"), one.get("type") == "datasource"
        if left if is_source else left != EVERYTHING:
            yield f"{one.get('name')}: {left}"


def matchers(found: JsonObject) -> Iterator[str]:
    """F02: a variable stands in `=~` in Grafana's own escaping; in SQL always as quoted strings."""
    names = "|".join(re.escape(str(one.get("name"))) for one in variables(found, "query"))
    for text in strings(found) if names else ():
        for match in re.finditer(rf"\$\{{?(?:{names})\b(:\w+)?\}}?", text):
            is_sql = match[1] == ":sqlstring" and text[: match.start()].endswith("(")
            is_matcher = match[1] is None and re.search(r'=~"\(?$', text[: match.start()])
            if not (is_sql or is_matcher):
                yield text[max(0, match.start() - 20) : match.end()]


def known(found: JsonObject) -> Iterator[str]:
    """A variable that the dashboard lacks would be asked for by its own name."""
    names = {str(one.get("name")) for one in variables(found)}
    used = {name for text in strings(found) for name in re.findall(r"\$\{?([a-zA-Z][a-zA-Z_]*)", text)}
    yield from sorted(used - names)


def used(found: JsonObject) -> Iterator[str]:
    """A variable that nothing asks promises a choice that it does not give."""
    panels = list(strings([found.get("panels"), found.get("annotations")]))
    for one in variables(found, "query"):
        if not any(re.search(rf"\$\{{?{re.escape(str(one.get('name')))}\b", text) for text in panels):
            yield str(one.get("name"))
