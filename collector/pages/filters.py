"""Which objectives a page is to show: what its URL asks for, and what there is to choose from. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from slo.signals import ALL_MODELS

STATES = {"burning": "burning", "exhausted": "budget spent", "ok": "kept", "no_data": "no data"}
MAX_CHOICES = 200
"""Models to choose from."""
MAX_TEXT = 255


@dataclass(frozen=True, slots=True)
class Filters:
    """Each that is not empty must hold."""

    service: str = ""
    model: str = ""
    state: str = ""

    @property
    def are_any(self) -> bool:
        return any((self.service, self.model, self.state))

    @property
    def query(self) -> str:
        """As it stands in a URL, with its question mark; empty without a filter."""
        asked = {name: value for name, value in self.items() if value}
        return f"?{urlencode(asked)}" if asked else ""

    def items(self) -> list[tuple[str, str]]:
        return [("service", self.service), ("model", self.model), ("state", self.state)]

    def chosen(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The rows of a status that are asked for. An objective is in a state when it is so over all its models, or for
        one of them; then all of it is shown."""
        found: list[Mapping[str, Any]] = []
        for _, group in groupby(rows, key=lambda row: (row["environment"], row["service"], row["objective"])):
            mine = [row for row in group if self._holds(row)]
            if not self.state or any(row["state"] == self.state for row in mine):
                found += mine
        return found

    def _holds(self, row: Mapping[str, Any]) -> bool:
        return (not self.service or row["service"] == self.service) and (not self.model or row["model"] == self.model)


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to choose from."""

    services: Sequence[str]
    models: Sequence[str]


def read(query: Mapping[str, str]) -> Filters:
    """The filters of a URL; what is no filter says nothing."""
    return Filters(*(query.get(name, "")[:MAX_TEXT] for name in ("service", "model", "state")))


def choices(rows: Iterable[Mapping[str, Any]]) -> Choices:
    """Every service and model of a status."""
    services: dict[str, None] = {}
    models: set[str] = set()
    for row in rows:
        services[row["service"]] = None
        models.add(row["model"])
    return Choices(list(services), sorted(models - {ALL_MODELS})[:MAX_CHOICES])
