"""Every dashboard over a real Prometheus: each panel has its figures, and they are those of the pages.

One file, so that one process sets the scene.
"""

import re
import time
from decimal import Decimal

import pytest

from dashboards.prometheus.load import PrometheusLoad
from dashboards.prometheus.selection import Selection
from dashboards.promise import Limit
from dashboards.questions import NOT_SPENT, STATES
from slo.promql import SERVICE_KEY
from tests.dashboards import stack
from tests.dashboards.live import CHOICES, MODELS, Live
from tests.dashboards.support import figures, panel, promql, query_of


@pytest.mark.tools
def test_its_figures_are_in_the_units_shown(live: Live) -> None:
    shown = {
        title: [value for _, value in live.of(title, board="gpu", Hostname=["node-1"])]
        for title in ("Utilization", "Memory in use", "Share of memory in use", "Clock", "Heat")
    }
    assert shown["Utilization"] == pytest.approx([0.8])
    assert shown["Memory in use"] == [60000 * 2**20]
    assert shown["Share of memory in use"] == [0.75]
    assert shown["Clock"] == [1.98e9]
    assert shown["Heat"] == [60]
    assert live.of("Heat", board="gpu", Hostname=["other"]) == []


@pytest.mark.tools
def test_figures_are_those_of_the_page(live: Live) -> None:
    models = len(MODELS)
    chat = {"service_name": ["chat"]}
    ok = {of["outcome"]: value for of, value in live.a_second("Requests by outcome", **chat)}["ok"]
    assert ok == pytest.approx(stack.REQUESTS_PER_S * models)
    assert {value for _, value in live.of("KV-cache occupancy")} == {0.7}
    assert {value for _, value in live.of("Running and waiting in the engine", "running")} == {7}
    assert {value for _, value in live.of("Requests in flight", service_name=["chat"])} == {3 * models}


@pytest.mark.tools
def test_every_variable_finds_its_values(live: Live) -> None:
    found = {}
    for board in live.boards.values():
        for variable in board["templating"]["list"][1:]:
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert match is not None
            assert match[2] == variable["name"]
            rows = live.values(f"group by ({match[2]}) ({match[1]})", board)
            found[match[2]] = {labels.get(match[2], "") for labels, _ in rows}
    assert found["service_name"] == {"chat", "batch"}
    assert found["environment"] == {"", "staging"}
    assert found["model_name"] == set(MODELS)
    assert found["objective"] == {"ttft", "tpot", "answered", "kv-headroom"}
    assert found["hw_id"] == {"x"}
    assert found["Hostname"] == {"node-1"}
    assert len(found["instance"]) == 1


@pytest.mark.tools
def test_only_the_limits_of_what_is_chosen_are_drawn(live: Live) -> None:
    def lines(**chosen: list[str]) -> dict[str, float]:
        return {of["limit"]: value for of, value in live.of("Time to first token", "limit", **chosen)}

    assert lines() == {"at most 500ms": 0.5, "at most 2s": 2}
    assert lines(service_name=["batch"]) == {"at most 2s": 2}
    assert lines(objective=["answered"]) == {}


@pytest.mark.tools
def test_targets_of_ours_answer_and_others_are_not_ours(live: Live) -> None:
    rows = live.of("Targets that answer", board="telemetry-health")
    assert {(of["job"], value) for of, value in rows} == {("sidecar", 1), ("collector", 1)}


@pytest.mark.tools
def test_an_instance_is_known_with_its_start_and_its_silence(live: Live) -> None:
    assert all(0 <= silent < 120 for _, silent in live.of("Instances", "silent", board="telemetry-health"))
    ((_, since),) = live.of("Instances", "since", board="telemetry-health", service_name=["chat"])
    assert 0 <= time.time() - since / 1000 < 3600


@pytest.mark.tools
def test_evaluations_commits_and_rules_are_told(live: Live) -> None:
    assert [value for _, value in live.of("Age of the last evaluation", board="telemetry-health")] == [1]
    assert [value for _, value in live.of("Length of a commit", board="telemetry-health")] == pytest.approx([1])
    for ref in ("failed", "missed"):
        rows = live.of("Rules that fail or are late", ref, board="telemetry-health")
        assert all("firsttoken:" in of["rule_group"] for of, _ in rows)
    assert all(0 < known < 0.2 for _, known in live.of("Time that is known", board="telemetry-health"))


@pytest.mark.tools
@pytest.mark.parametrize("title", ["Alerts that fire", "Alerts of the time shown"])
def test_the_alert_that_fires_is_listed_with_its_labels_and_since_when(live: Live, title: str) -> None:
    rows = live.of(title, board="incidents", model_name=["m1"])
    shown = {(of["alertname"], of["notify"], of["burn_tier"], of["model_name"]) for of, _ in rows if "burn_tier" in of}
    assert ("LLMAvailabilityBudgetBurn", "page", "fast", "*") in shown
    assert {model for *_, model in shown} <= {"*", "m1"}
    assert all(0 <= time.time() - since / 1000 < 3600 for _, since in rows)


@pytest.mark.tools
def test_alerts_are_counted_by_what_they_do(live: Live) -> None:
    counts = {of["notify"]: value for of, value in live.of("Alerts over time", board="incidents")}
    assert counts["page"] >= 1
    none = {of["notify"]: value for of, value in live.of("Alerts over time", board="incidents", service_name=["x"])}
    assert none == {"page": 0}


@pytest.mark.tools
def test_a_latency_that_has_shifted_is_told_with_its_kind(live: Live) -> None:
    ((of, effect),) = live.of("Shift against its own past", board="incidents", service_name=["batch"])
    assert (of["signal"], of["kind"], effect) == ("ttft", "server", 0.3)


@pytest.mark.tools
def test_starts_and_versions_of_the_contract_are_rows(live: Live) -> None:
    ((of, since),) = live.of("Sidecars, by when they started", board="incidents", service_name=["batch"])
    assert of["instance"].startswith("127.0.0.1:")
    assert 0 <= time.time() - since / 1000 < 3600
    chosen = {"objective": ["answered"], "model_name": ["m1"]}
    rows = live.of("Versions of the contract that are judged", board="incidents", **chosen)
    assert {of["result"] for of, _ in rows} == {"good", "bad"}
    assert len({of["objective_hash"] for of, _ in rows}) == 1


@pytest.mark.tools
def test_percentiles_are_those_of_the_page(live: Live) -> None:
    ((_, p95),) = live.of("Time to first token", "p95", service_name=["batch"], model_name=["m1"])
    assert p95 == pytest.approx(0.295)
    for ref in ("sidecar", "engine"):
        rows = live.of("Request duration, both views", ref, board="latency", model_name=["m1"])
        assert [value for _, value in rows] == pytest.approx([0.295, 0.295])
    ((of, mean),) = live.of("Time to first token by length of prompt", board="latency", service_name=["batch"])
    assert (of["prompt_tokens"], mean) == ("to_256", pytest.approx(0.25))


@pytest.mark.tools
def test_means_and_percentiles_are_told_by_instance(live: Live) -> None:
    ((of, mean),) = live.of("Time to first token: mean by instance", board="latency", service_name=["batch"])
    assert (of["instance"].startswith("127.0.0.1:"), mean) == (True, pytest.approx(0.25))
    ((of, p95),) = live.of("Time to first token: p95 by instance", board="latency", service_name=["batch"])
    assert (of["instance"].startswith("127.0.0.1:"), p95) == (True, pytest.approx(0.295))


@pytest.mark.tools
def test_a_heatmap_has_the_buckets_of_the_page_without_the_engines(live: Live) -> None:
    counts = {of["le"]: value for of, value in live.of("Distribution: time to first token", board="latency")}
    assert counts["0.2"] == 0
    assert counts["0.3"] == counts["+Inf"] > 0
    ((_, ended),) = live.of("Ended without a value", board="latency", service_name=["batch"])
    assert ended == 0


OFFERED = stack.REQUESTS_PER_S * len(MODELS)


@pytest.mark.tools
def test_load_leaves_synthetic_requests_out(live: Live) -> None:
    ((_, load),) = live.a_second("Load", board="capacity", service_name=["chat"])
    assert load == pytest.approx(OFFERED)
    ((_, now),) = live.of("Load", board="capacity", service_name=["chat"])
    ((_, peak),) = live.of("Peak of the time shown", board="capacity", service_name=["chat"])
    assert now * 0.5 < peak < OFFERED * 2


@pytest.mark.tools
def test_headroom_is_what_each_service_has_left_of_its_own(live: Live) -> None:
    known = (Limit("chat", "", Decimal(240), ""), Limit("batch", "", Decimal(60), ""))
    load = PrometheusLoad(Selection(SERVICE_KEY))
    both = f"({load.headroom(known).text}) + on (service_name) group_left () ({load.offered().text}) / 240"
    left = {of["service_name"]: value for of, value in live.values(both, live.boards["capacity"])}
    assert left["chat"] == pytest.approx(1, abs=0.01)
    assert left["batch"] < 1


@pytest.mark.tools
def test_requests_in_flight_stand_beside_arrivals_times_duration(live: Live) -> None:
    title = "Requests in flight, and by Little's law"
    ((_, counted),) = live.of(title, "counted", board="capacity", service_name=["chat"])
    assert counted == 3 * len(MODELS)
    _, little = panel(live.boards["capacity"], title)["targets"]
    load = query_of(panel(live.boards["capacity"], "Load")["targets"][0])
    ((_, each_s),) = live.values(f"({query_of(little)}) / ({load})", live.boards["capacity"], service_name=["chat"])
    assert each_s == pytest.approx(0.25, rel=0.01)


@pytest.mark.tools
def test_nobody_is_refused_and_a_stream_has_its_share_of_tokens(live: Live) -> None:
    assert {value for _, value in live.of("Share refused", board="capacity")} == {0}
    ((_, speed),) = live.a_second("Tokens per running request", board="kv-cache", service_name=["chat"])
    assert speed == pytest.approx(10 * OFFERED / 7)


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
def test_events_are_those_of_the_page(live: Live) -> None:
    ((_, bad),) = live.a_second("Bad events", objective=["answered"])
    assert bad == pytest.approx(stack.REQUESTS_PER_S * len(MODELS) / 2, rel=0.1)


@pytest.mark.tools
def test_an_environment_keeps_the_others_out(live: Live) -> None:
    rows = live.of("Error budget left", environment=["staging"])
    assert {of["service_name"] for of, _ in rows} == {"batch"}


@pytest.mark.tools
def test_what_is_judged_is_told_by_objective_and_what_is_not_by_service(live: Live) -> None:
    rows = live.of("Requests that each objective judges")
    judged = {(of["service_name"], of["objective"]): value for of, value in rows}
    assert set(judged) == {("chat", "ttft"), ("chat", "tpot"), ("chat", "answered"), ("batch", "ttft")}
    assert judged["chat", "ttft"] == pytest.approx(1, abs=0.05)
    unjudged = {of["service_name"]: value for of, value in live.of("Requests that no objective judges")}
    assert unjudged == pytest.approx({"chat": 0, "batch": 0}, abs=0.05)


OF_THE_PAST = {"ago1d", "ago7d"}
"""A stack of seconds has no yesterday."""


OF_A_MINUTE = {"Time that is known A", "Instances silent"}
"""Nor has it always seen the turn of a minute: `demo_panels` has."""


@pytest.mark.tools
@pytest.mark.parametrize("choice", ["all", "some of several", "names that are no words"])
def test_every_query_of_every_panel_gives_figures(live: Live, choice: str) -> None:
    chosen = CHOICES[choice]
    empty = {
        f"{one['title']} {target['refId']}"
        for found in live.boards.values()
        for one in figures(found)
        for target in one["targets"]
        if target["refId"] not in {"limit", *OF_THE_PAST} and not live.values(query_of(target), found, **chosen)
    }
    assert empty - OF_A_MINUTE == set()


@pytest.mark.tools
def test_every_mark_finds_its_events(live: Live) -> None:
    empty = [
        f"{name}: {marks['name']}"
        for name, found in live.boards.items()
        for marks in found["annotations"]["list"]
        if "expr" in marks and not live.values(marks["expr"].replace("< 120", "< 9999"), found)
    ]
    assert empty == []


@pytest.mark.tools
def test_charts_hold_over_a_range(live: Live) -> None:
    found = live.boards["slo-overview"]
    text = promql(query_of(panel(found, "Error budget left over time")["targets"][0]), found)

    def is_line() -> bool:
        end = time.time()
        asked = stack.ask(live.url, "query_range", query=text, start=str(end - 60), end=str(end), step="1")
        return bool(asked["result"]) and all(len(series["values"]) >= 3 for series in asked["result"])

    stack.until(is_line)
