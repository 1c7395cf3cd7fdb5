"""To whom an Alertmanager gives an alert: its route tree walked as it walks it.

An alert goes down the first child that matches, and on to the next ones where that says `continue`; where no child
matches, the route itself takes it. A child takes from its parent what it does not say itself.
Source: Alertmanager's configuration reference, "route", "matcher".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from firsttoken.doctor.facts import Labels
from firsttoken.json_fields import Object, object_at, objects_at, text_at

_MATCHER = re.compile(r"\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*(.*)", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\n])')


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where an alert arrives: the receiver, and the labels by which the route groups (None: it does not group)."""

    receiver: str
    group_by: tuple[str, ...] | None


def arrivals(config: Object, labels: Labels) -> tuple[Arrival, ...]:
    """Where an alert with these labels arrives, once for each receiver that is told."""
    return tuple(_walk(object_at(config, "route"), labels, Arrival("", None)))


def tells_somebody(config: Object, receiver: str) -> bool:
    """Whether a receiver has any way to tell people."""
    found = next((one for one in objects_at(config, "receivers") if one.get("name") == receiver), {})
    return any(key.endswith("_configs") and bool(value) for key, value in found.items())


def _walk(route: Object, labels: Labels, above: Arrival) -> Iterator[Arrival]:
    grouped = route.get("group_by")
    here = Arrival(
        text_at(route, "receiver") or above.receiver,
        tuple(map(str, grouped)) if isinstance(grouped, list) else above.group_by,
    )
    is_taken = False
    for child in objects_at(route, "routes"):
        if _matches(child, labels):
            is_taken = True
            yield from _walk(child, labels, here)
            if child.get("continue") is not True:
                break
    if not is_taken:
        yield here


def _matches(route: Object, labels: Labels) -> bool:
    written = route.get("matchers")
    texts = [str(one) for one in written] if isinstance(written, list) else []
    equal, like = object_at(route, "match"), object_at(route, "match_re")
    return (
        all(matches(text, labels) for text in texts)
        and all(labels.get(str(name), "") == str(value) for name, value in equal.items())
        and all(_is_like(str(value), labels.get(str(name), "")) for name, value in like.items())
    )


def matches(matcher: str, labels: Labels) -> bool:
    """Whether a matcher such as `notify="page"` or `severity=~critical|error` holds; one that is none never does."""
    found = _MATCHER.fullmatch(matcher)
    if found is None:
        return False
    name, operator, text = found[1], found[2], _unquoted(found[3].strip())
    held = labels.get(name, "")
    agrees = _is_like(text, held) if operator in ("=~", "!~") else held == text
    return agrees != operator.startswith("!")


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text[1:-1])
    return text


def _is_like(pattern: str, text: str) -> bool:
    """As Alertmanager anchors it; a pattern of Go that Python cannot read matches nothing."""
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return False
