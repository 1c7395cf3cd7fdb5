"""Fields of a foreign document, as the node walk of `slo.source` gives them: what is of another kind is absent."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")
Item = Mapping[str, object]


def mapping_at(item: object, key: str) -> Item:
    """The mapping that stands at `key`; an empty one where there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, dict) else {}


def mappings_at(item: object, key: str) -> Iterator[Item]:
    """The mappings of the list that stands at `key`."""
    value = item.get(key) if isinstance(item, dict) else None
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def text_at(item: Item, key: str) -> str:
    """Text, or a number as it was written."""
    value = item.get(key)
    return str(value) if isinstance(value, str | Decimal) else ""


def number_at(item: Item, key: str) -> Decimal | None:
    """A number, or one that is written in quotes."""
    value = item.get(key)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Decimal(value)
    return value if isinstance(value, Decimal) else None


def texts_of(item: Item) -> dict[str, str]:
    """Those of its values that are text or numbers."""
    return {key: str(value) for key, value in item.items() if isinstance(value, str | Decimal)}
