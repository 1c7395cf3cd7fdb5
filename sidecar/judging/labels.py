"""The closed set of model labels: names that a server really serves, a bounded number of them.

A request can name any model; a label must not follow it there, or one client could fill every store behind us. A
name enters after a 2xx answer or from the server's own list, until the set is full. Everything else is `other`, and a
request that names no model belongs to the only one served, or to `unknown`.
"""

from collections.abc import Iterable

from slo.signals import ALL_MODELS, OTHER_MODEL, UNKNOWN_MODEL

MAX_NAME = 200
_RESERVED = frozenset((ALL_MODELS, OTHER_MODEL, UNKNOWN_MODEL, ""))


class ModelLabels:
    """The names known so far."""

    def __init__(self, max_models: int) -> None:
        self._max = max_models
        self.names: dict[str, None] = {}  # those let in, in that order
        self.served: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Every name that was let in, in that order."""
        return tuple(self.names)

    @property
    def sole(self) -> str | None:
        """The server's model when it serves exactly one."""
        if len(self.served) == 1 and self.served[0] in self.names:
            return self.served[0]
        return None

    def learn(self, name: str | None) -> bool:
        """Let a name in; whether it is new."""
        if name is None or name in self.names or name in _RESERVED or len(self.names) >= self._max:
            return False
        if len(name) > MAX_NAME or not name.isprintable():
            return False
        self.names[name] = None
        return True

    def serve(self, names: Iterable[str]) -> list[str]:
        """Take over the server's own list; the names that are new."""
        self.served = tuple(names)
        return [name for name in self.served if self.learn(name)]

    def take_over(self, names: Iterable[str], *, served: Iterable[str]) -> None:
        """Let in what a set elsewhere has let in, which had its own bound, and the server's list that it knows."""
        self.names.update(dict.fromkeys(names))
        self.served = tuple(served)

    def of(self, name: str | None) -> str:
        """The label of a request that names `name`."""
        if name is None or name == UNKNOWN_MODEL:
            return self.sole or UNKNOWN_MODEL
        return name if name in self.names else OTHER_MODEL
