"""Fields of somebody else's JSON: what is missing, or of another kind than asked for, is absent, never 0."""

from collections.abc import Iterable, Mapping
from datetime import datetime

Object = Mapping[str, object]


def object_at(item: object, key: str) -> Object:
    """The object that stands at `key`; an empty one where there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, dict) else {}


def objects_at(item: object, key: str) -> Iterable[Object]:
    """The objects of the list that stands at `key`."""
    value = item.get(key) if isinstance(item, dict) else None
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def text_at(item: Object, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def number_at(item: Object, key: str) -> float | None:
    """A JSON number, or a number written as text."""
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


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
