"""What the names of a head's fields say by themselves, whatever their values.

A client writes the same names in the same order with every request, and a server with every answer. So what follows
from the names alone is found out once and kept: their lower case, where each stands, whether any of them must not be
passed on as it came. Values are never kept.
"""

import functools
from dataclasses import dataclass

Headers = tuple[tuple[bytes, bytes], ...]

TOKEN = b"x-firsttoken-token"  # speaks to us, and so of this connection only
HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"http2-settings", TOKEN))

MAX_SHAPES = 128  # kept at a time; a head is bounded, and so are they
MOST_NAMES = 64  # of a head whose shape is kept


@dataclass(frozen=True, slots=True)
class Shape:
    """The names of a head's fields, in lower case.

    `places`: where each stands first. `twice`: those that stand more than once. `passes`: none speaks of one
    connection only. `is_usual`: of a request that passes, it has one Host and at most a length, so that no two parsers
    could read its framing differently."""

    names: tuple[bytes, ...]
    places: dict[bytes, int]
    twice: frozenset[bytes]
    passes: bool
    is_usual: bool


def shape_of(headers: Headers) -> Shape:
    """The shape of a head with these fields."""
    names: tuple[bytes, ...] = next(zip(*headers), ())  # noqa: B905  pairs are as long as each other
    return _kept(names) if len(names) <= MOST_NAMES else _made(names)


def _made(written: tuple[bytes, ...]) -> Shape:
    names = tuple(name.lower() for name in written)
    places: dict[bytes, int] = {}
    for place, name in enumerate(names):
        places.setdefault(name, place)
    twice = frozenset(name for name, place in places.items() if name in names[place + 1 :])
    passes = HOP_BY_HOP.isdisjoint(names)
    framed_once = b"transfer-encoding" not in places and twice.isdisjoint((b"host", b"content-length"))
    return Shape(names, places, twice, passes, is_usual=passes and framed_once and b"host" in places)


_kept = functools.lru_cache(maxsize=MAX_SHAPES)(_made)
