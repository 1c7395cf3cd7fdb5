"""Dashboards over a real database: what a panel's queries give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.dashboards.support import Found, panel, query_of, sql
from tests.dashboards.tables import END_S, MODELS, START_S, Ask, Value

CHOICES: Mapping[str, Mapping[str, list[str]]] = {
    "all": {},
    "one service": {"service_name": ["chat"]},
    "one objective of one model": {"objective": ["tpot"], "model_name": ["m1"]},
    "several": {"objective": ["ttft", "tpot"], "service_name": ["chat", "batch"], "model_name": list(MODELS)},
    "a name with a quote": {"model_name": [MODELS[1]]},
}


@dataclass(frozen=True, slots=True)
class Database:
    """A database, and every dashboard over it."""

    ask: Ask
    boards: Mapping[str, Found]

    def rows(self, text: str, found: Found, **chosen: Sequence[str]) -> list[dict[str, Value]]:
        return self.ask(sql(text, found, start_s=START_S, end_s=END_S, chosen=chosen))

    def of(
        self, title: str, ref: str | None = None, *, board: str = "slo-overview", **chosen: Sequence[str]
    ) -> list[dict[str, Value]]:
        """The rows of a query of a panel, the first one unless a `ref` is named."""
        found = self.boards[board]
        targets = panel(found, title)["targets"]
        texts = {None: query_of(targets[0])} | {target["refId"]: query_of(target) for target in targets}
        return self.rows(texts[ref], found, **chosen)

    def last(
        self, title: str, ref: str | None = None, *, board: str = "slo-overview", **chosen: Sequence[str]
    ) -> dict[Value, Value]:
        """The last value of each line."""
        return {row["metric"]: row["value"] for row in self.of(title, ref, board=board, **chosen)}
