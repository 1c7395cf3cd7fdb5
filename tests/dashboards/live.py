"""Dashboards over a real Prometheus that has seen every metric: what a panel's queries give."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.dashboards import stack
from tests.dashboards.support import STRANGE_MODELS, Found, everything, panel, promql, query_of, specs

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: tpot, signal: tpot, percentile: 90, threshold: 50ms}
  - {name: answered, signal: availability, target: 99%}
  - {name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 95%}
  - {name: short-queue, signal: queue, threshold: 10, target: 95%}
---
service: batch
environment: staging
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 2s}
"""
MODELS = ("m1", *STRANGE_MODELS)
CHOICES: Mapping[str, dict[str, list[str]]] = {
    "all": {},
    "one service": {"service_name": ["chat"]},
    "one objective of one model": {"objective": ["answered"], "model_name": ["m1"]},
    "some of several": {"objective": ["ttft", "answered"], "service_name": ["chat", "batch"]},
    "names that are no words": {"model_name": list(STRANGE_MODELS)},
    **{f"the model {name}": {"model_name": [name]} for name in STRANGE_MODELS},
}
TRIES = 6
Rows = list[tuple[dict[str, str], float]]


@dataclass(frozen=True, slots=True)
class Live:
    """A Prometheus, and every dashboard over it."""

    url: str
    boards: Mapping[str, Found]

    def values(self, text: str, found: Found, **chosen: list[str]) -> Rows:
        """A gauge is gone for a moment when a scrape comes too late, so what is empty is asked again."""
        asked = promql(text, found, chosen, interval="30s")
        for _ in range(TRIES):
            if rows := stack.values(self.url, asked):
                return rows
            time.sleep(0.5)
        return []

    def of(self, title: str, ref: str | None = None, *, board: str = "slo-overview", **chosen: list[str]) -> Rows:
        """What a query of a panel gives, the first one unless a `ref` is named."""
        found = self.boards[board]
        targets = panel(found, title)["targets"]
        texts = {None: query_of(targets[0])} | {target["refId"]: query_of(target) for target in targets}
        return self.values(texts[ref], found, **chosen)

    def a_second(self, title: str, *, board: str = "slo-overview", **chosen: list[str]) -> Rows:
        """The rates of a panel by the page's own clock, its heartbeat: when a scrape is late, both are."""
        clock = 'sum(rate(firsttoken_heartbeat_total{service_name="chat"}[30s]))'
        found = self.boards[board]
        rates = query_of(panel(found, title)["targets"][0])
        return self.values(f"({rates}) / on () group_left () {clock}", found, **chosen)


def tool(name: str) -> str:
    """A program from PATH; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH: tests/install_tools.sh installs it")
    return found


def text() -> str:
    """The spec with windows of the demo's kind: 10 minutes, alerts over 60 s and 15 s."""
    documents = list(yaml.safe_load_all(SPEC))
    for document in documents:
        for objective in document["objectives"]:
            objective["window"] = "10m"
            tier = {"name": "fast", "budget": "10%", "long": "60s", "short": "15s", "notify": "page"}
            objective["alerts"] = {"tiers": [tier]}
    return yaml.safe_dump_all(documents)


@contextmanager
def running(folder: Path) -> Iterator[Live]:
    """A Prometheus over the pages, once it has judged enough of them for every panel."""
    program, of = tool("prometheus"), specs(text())
    (folder / "slo.yaml").write_text(text())
    stack.rules(folder / "slo.yaml", folder)
    with (
        stack.exporter(lambda age_s: stack.page(of, MODELS, age_s)) as sidecars,
        stack.exporter(lambda age_s: stack.collector_page(of, MODELS, age_s)) as collector,
        stack.prometheus(program, folder, {"sidecar": sidecars, "collector": collector}) as url,
    ):
        firing = 'count(ALERTS{alertstate="firing",objective="answered",model_name="*"})'
        stack.until(lambda: stack.values(url, firing) != [])
        stack.until(lambda: len(stack.values(url, 'firsttoken:error_budget_allowance:events{model_name="*"} > 0')) == 5)
        stack.until(lambda: stack.values(url, "firsttoken:budget_exhausted_in:seconds") != [])
        spent = 'firsttoken:error_budget_remaining:ratio{objective="answered",model_name="*"} < 0'
        stack.until(lambda: stack.values(url, spent) != [])
        yield Live(url, everything(of=of))
