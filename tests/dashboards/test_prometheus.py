"""Every expression of the overview parses, and a real Prometheus gives each panel its figures."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from dashboards.source import NOT_SPENT, STATES
from tests.dashboards import stack
from tests.dashboards.support import STRANGE_MODELS, Found, built, figures, many, panel, promql, query_of, specs

LIVE = """
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
CHOICES: dict[str, dict[str, list[str]]] = {
    "all": {},
    "one service": {"service_name": ["chat"]},
    "one objective of one model": {"objective": ["answered"], "model_name": ["m1"]},
    "some of several": {"objective": ["ttft", "answered"], "service_name": ["chat", "batch"]},
    "names that are no words": {"model_name": list(STRANGE_MODELS)},
    **{f"the model {name}": {"model_name": [name]} for name in STRANGE_MODELS},
}


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH: tests/install_tools.sh installs it")
    return found


def live_text() -> str:
    """The spec with windows of the demo's kind: 10 minutes, alerts over 60 s and 15 s."""
    documents = list(yaml.safe_load_all(LIVE))
    for document in documents:
        for objective in document["objectives"]:
            objective["window"] = "10m"
            tier = {"name": "fast", "budget": "10%", "long": "60s", "short": "15s", "notify": "page"}
            objective["alerts"] = {"tiers": [tier]}
    return yaml.safe_dump_all(documents)


def expressions(found: Found) -> Iterator[tuple[str, str]]:
    for one in figures(found):
        yield from ((f"{one['title']} {target['refId']}", query_of(target)) for target in one["targets"])
    yield from ((marks["name"], marks["expr"]) for marks in found["annotations"]["list"])


@pytest.mark.tools
@pytest.mark.parametrize("choice", CHOICES)
def test_every_expression_parses_whatever_is_chosen(tmp_path: Path, choice: str) -> None:
    found = built(of=many(3))
    rules = [
        {"record": f"r:{number}", "expr": promql(text, found, CHOICES[choice])}
        for number, (_, text) in enumerate(expressions(found))
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", "rules.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


@dataclass(frozen=True, slots=True)
class Live:
    url: str
    found: Found

    def values(self, text: str, **chosen: list[str]) -> list[tuple[dict[str, str], float]]:
        return stack.values(self.url, promql(text, self.found, chosen, interval="30s"))

    def of(self, title: str, ref: str | None = None, **chosen: list[str]) -> list[tuple[dict[str, str], float]]:
        """What a query of a panel gives, the first one unless a `ref` is named."""
        targets = panel(self.found, title)["targets"]
        texts = {None: query_of(targets[0])} | {target["refId"]: query_of(target) for target in targets}
        return self.values(texts[ref], **chosen)

    def a_second(self, title: str, **chosen: list[str]) -> list[tuple[dict[str, str], float]]:
        """The rates of a panel by the page's own clock, its heartbeat: when a scrape is late, both are."""
        clock = 'sum(rate(firsttoken_heartbeat_total{service_name="chat"}[30s]))'
        rates = query_of(panel(self.found, title)["targets"][0])
        return self.values(f"({rates}) / on () group_left () {clock}", **chosen)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A Prometheus that has seen the sidecars' pages and fires for the objective `answered`."""
    program, folder = tool("prometheus"), tmp_path_factory.mktemp("prometheus")
    (folder / "slo.yaml").write_text(live_text())
    of = specs(live_text())
    stack.rules(folder / "slo.yaml", folder)
    with (
        stack.exporter(lambda age_s: stack.page(of, MODELS, age_s)) as target,
        stack.prometheus(program, folder, target) as url,
    ):
        firing = 'count(ALERTS{alertstate="firing",objective="answered",model_name="*"})'
        stack.until(lambda: stack.values(url, firing) != [])
        stack.until(lambda: len(stack.values(url, 'firsttoken:error_budget_allowance:events{model_name="*"} > 0')) == 5)
        stack.until(lambda: stack.values(url, "firsttoken:budget_exhausted_in:seconds") != [])
        spent = 'firsttoken:error_budget_remaining:ratio{objective="answered",model_name="*"} < 0'
        stack.until(lambda: stack.values(url, spent) != [])
        yield Live(url, built(of=of))


@pytest.mark.tools
@pytest.mark.parametrize("choice", CHOICES)
def test_every_query_of_every_panel_gives_figures(live: Live, choice: str) -> None:
    asked = [(one["title"], target) for one in figures(live.found) for target in one["targets"]]
    assert len(asked) > 25
    empty = [
        f"{title} {target['refId']}"
        for title, target in asked
        if target["refId"] != "limit" and not live.values(query_of(target), **CHOICES[choice])
    ]
    assert empty == []


@pytest.mark.tools
def test_every_variable_finds_its_values(live: Live) -> None:
    found = {}
    for variable in live.found["templating"]["list"][1:]:
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert match is not None
        assert match[2] == variable["name"]
        rows = live.values(f"group by ({match[2]}) ({match[1]})")
        found[match[2]] = {labels.get(match[2], "") for labels, _ in rows}
    assert found["service_name"] == {"chat", "batch"}
    assert found["environment"] == {"", "staging"}
    assert found["model_name"] == set(MODELS)
    assert found["objective"] == {"ttft", "tpot", "answered", "kv-headroom"}


SPENT, KEPT, NO_DATA = STATES.index("spent"), STATES.index("kept"), STATES.index("no data")


@pytest.mark.tools
def test_an_objective_stands_as_it_is(live: Live) -> None:
    state = {(of.get("service_name"), of["objective"], of.get("model_name")): value for of, value in live.of("State")}
    assert state == {
        ("chat", "ttft", "*"): KEPT,
        ("chat", "tpot", "*"): KEPT,
        ("chat", "answered", "*"): SPENT,
        ("chat", "kv-headroom", "*"): KEPT,
        ("chat", "short-queue", None): NO_DATA,
        ("batch", "ttft", "*"): KEPT,
    }
    left = {of["objective"]: value for of, value in live.of("Error budget left", service_name=["chat"])}
    assert left["ttft"] == 1
    assert left["answered"] < 0
    ends = {of["objective"]: value for of, value in live.of("Budget exhausted in", service_name=["chat"])}
    assert ends == {"ttft": NOT_SPENT, "tpot": NOT_SPENT, "kv-headroom": NOT_SPENT, "answered": 0}


@pytest.mark.tools
@pytest.mark.parametrize("model", MODELS)
def test_a_model_chosen_is_shown_and_no_other(live: Live, model: str) -> None:
    for title in ("Error budget left", "Burn over 1m and 15s: fast", "Time to first token", "KV-cache occupancy"):
        rows = live.of(title, model_name=[model])
        assert {of["model_name"] for of, _ in rows} == {model}, title


@pytest.mark.tools
def test_all_models_are_one_figure_where_objectives_are_judged(live: Live) -> None:
    burn = live.of("Burn over 1m and 15s: fast")
    assert {of["model_name"] for of, _ in burn} == {"*"}
    rows = live.of("Objectives", "left", objective=["answered"])
    assert {of["model_name"] for of, _ in rows} == {"*", *MODELS}


@pytest.mark.tools
def test_figures_are_those_of_the_page(live: Live) -> None:
    models = len(MODELS)
    chat = {"service_name": ["chat"]}
    ok = {of["outcome"]: value for of, value in live.a_second("Requests by outcome", **chat)}["ok"]
    assert ok == pytest.approx(stack.REQUESTS_PER_S * models)
    ((_, bad),) = live.a_second("Bad events", objective=["answered"])
    assert bad == pytest.approx(stack.REQUESTS_PER_S * models / 2, rel=0.1)
    ((_, p95),) = live.of("Time to first token", "p95", service_name=["batch"], model_name=["m1"])
    assert p95 == pytest.approx(0.295)
    assert {value for _, value in live.of("KV-cache occupancy")} == {0.7}
    assert {value for _, value in live.of("Running and waiting in the engine", "running")} == {7}
    assert {value for _, value in live.of("Requests in flight", service_name=["chat"])} == {3 * models}


@pytest.mark.tools
def test_only_the_limits_of_what_is_chosen_are_drawn(live: Live) -> None:
    def lines(**chosen: list[str]) -> dict[str, float]:
        return {of["limit"]: value for of, value in live.of("Time to first token", "limit", **chosen)}

    assert lines() == {"at most 500ms": 0.5, "at most 2s": 2}
    assert lines(service_name=["batch"]) == {"at most 2s": 2}
    assert lines(objective=["answered"]) == {}


@pytest.mark.tools
def test_an_environment_keeps_the_others_out(live: Live) -> None:
    rows = live.of("Error budget left", environment=["staging"])
    assert {of["service_name"] for of, _ in rows} == {"batch"}


@pytest.mark.tools
def test_the_alert_that_fires_is_listed_with_its_labels_and_since_when(live: Live) -> None:
    rows = live.of("Alerts that fire", model_name=["m1"])
    shown = {(of["alertname"], of["notify"], of["burn_tier"], of["model_name"]) for of, _ in rows}
    assert ("LLMAvailabilityBudgetBurn", "page", "fast", "*") in shown
    assert {model for *_, model in shown} <= {"*", "m1"}
    assert all(0 <= time.time() - since / 1000 < 3600 for _, since in rows)


@pytest.mark.tools
def test_charts_hold_over_a_range(live: Live) -> None:
    text = promql(query_of(panel(live.found, "Error budget left over time")["targets"][0]), live.found)

    def is_line() -> bool:
        end = time.time()
        found = stack.ask(live.url, "query_range", query=text, start=str(end - 60), end=str(end), step="1")
        return bool(found["result"]) and all(len(series["values"]) >= 3 for series in found["result"])

    stack.until(is_line)
