"""Fields of somebody else's JSON: what is missing, or of another kind than asked for, is absent, never 0."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

Object = Mapping[str, object]


def object_of(value: object) -> Object:
    """The value where it is an object; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> Iterable[Object]:
    """The objects of a value that is a list."""
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def object_at(item: object, key: str) -> Object:
    """The object that stands at `key`; an empty one where there is none."""
    return object_of(object_of(item).get(key))


def objects_at(item: object, key: str) -> Iterable[Object]:
    """The objects of the list that stands at `key`."""
    return objects_of(object_of(item).get(key))


def text_at(item: Object, key: str) -> str:
    """The text that stands at `key`; '' where there is none."""
    value = item.get(key)
    return value if isinstance(value, str) else ""


def number_of(value: object) -> float | None:
    """A JSON number, or a number written as text; one that is not finite, or too large for a float, is absent."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def number_at(item: Object, key: str) -> float | None:
    """The number that stands at `key`, as JSON or as text."""
    return number_of(item.get(key))


def moment_at(item: Object, key: str) -> float | None:
    """Epoch seconds of a moment that is written as RFC 3339."""
    try:
        return datetime.fromisoformat(text_at(item, key)).timestamp()
    except (ValueError, OverflowError):
        return None


def whole_at(item: Object, key: str) -> int | None:
    """A number cut to a whole one."""
    value = number_at(item, key)
    return None if value is None else int(value)
