"""Every rule holds on every dashboard, and every rule is shown to fail on one that breaks it."""

import copy
from collections.abc import Callable
from decimal import Decimal

import pytest

from dashboards.check.rules import RULES, faults
from slo.capacity_result import CapacityResult
from tests.dashboards.support import Found, built, everything, figures, many, panel

DATASOURCES = ("prometheus", "postgres", "sqlite")
RESULTS = tuple(
    CapacityResult(f"chat-{n}", Decimal(10 + n), Decimal(20 + n), Decimal(32), Decimal(64)) for n in range(10)
)


@pytest.mark.parametrize("datasource", DATASOURCES)
def test_every_dashboard_keeps_every_rule(datasource: str) -> None:
    assert {name: broken for name, found in everything(datasource).items() if (broken := faults(found))} == {}


@pytest.mark.parametrize("datasource", DATASOURCES)
def test_they_do_with_ten_services_of_known_capacity(datasource: str) -> None:
    found = everything(datasource, many(10), results=RESULTS)
    assert {name: broken for name, one in found.items() if (broken := faults(one))} == {}


@pytest.mark.parametrize("wrong", [{}, {"panels": [{}, 7]}, {"panels": {"a": 1}, "templating": [], "links": None}])
def test_any_json_is_judged_and_none_is_a_dashboard(wrong: Found) -> None:
    assert "the schema is one that no old migration touches" in faults(wrong)


def first(found: Found) -> Found:
    return next(figures(found))


def set_default(key: str, value: object) -> Callable[[Found], object]:
    return lambda found: first(found)["fieldConfig"]["defaults"].update({key: value})


def drop_default(key: str, title: str = "Time to first token") -> Callable[[Found], object]:
    return lambda found: panel(found, title)["fieldConfig"]["defaults"].pop(key)


def set_top(key: str, value: object) -> Callable[[Found], object]:
    return lambda found: found.update({key: value})


def set_expr(text: str, title: str = "Time to first token") -> Callable[[Found], object]:
    return lambda found: panel(found, title)["targets"][0].update(expr=text)


def move_onto_another(found: Found) -> None:
    one, two = list(figures(found))[:2]
    two["gridPos"] = dict(one["gridPos"], y=one["gridPos"]["y"] + 1)


def no_least_value(found: Found) -> None:
    one = panel(found, "Time to first token")["fieldConfig"]["defaults"]
    del one["min"], one["custom"]["axisSoftMin"]


def variable(found: Found, name: str) -> Found:
    (one,) = (variable for variable in found["templating"]["list"] if variable["name"] == name)
    assert isinstance(one, dict)
    return one


BROKEN: dict[str, list[Callable[[Found], object]]] = {
    "the schema is one that no old migration touches": [set_top("schemaVersion", 12)],
    "nothing is null but the id that Grafana gives": [
        set_top("id", 7),
        set_default("max", None),
        set_default("thresholds", {"mode": "absolute", "steps": [{"color": "green", "value": "null"}]}),
    ],
    "no key is one that Grafana has given up": [set_top("rows", []), lambda found: first(found).update(span=4)],
    "every datasource is the one that the variable names": [
        lambda found: first(found).update(datasource="Prometheus"),
        lambda found: first(found)["targets"][0].update(datasource={"type": "prometheus", "uid": "P1809F7"}),
        lambda found: first(found)["targets"][0].pop("datasource"),
        lambda found: found["annotations"]["list"][0].update(datasource={"type": "grafana", "uid": "-- Grafana --"}),
        lambda found: first(found).update(datasource={"type": "grafana", "uid": "-- Grafana --"}),
        lambda found: variable(found, "objective").update(datasource={"type": "prometheus", "uid": "${ds}"}),
    ],
    "the datasource is a variable of its type": [
        lambda found: found["templating"]["list"].pop(0),
        lambda found: variable(found, "datasource").update(name="DS_PROMETHEUS"),
    ],
    "nothing waits for the import dialogue to fill it in": [
        set_top("__inputs", []),
        lambda found: first(found)["targets"][0].update(datasource={"uid": "${DS_PROMETHEUS}"}),
    ],
    "every panel has an id of its own": [lambda found: first(found).update(id=1)],
    "the queries of a panel are told apart": [
        lambda found: panel(found, "Time to first token")["targets"][0].update(refId="p95"),
        lambda found: first(found)["targets"][0].update(refId=""),
    ],
    "no panel covers another or leaves the page": [
        move_onto_another,
        lambda found: first(found)["gridPos"].update(x=20),
        lambda found: first(found).pop("gridPos"),
    ],
    "panels are few, however many services there are": [
        lambda found: first(found).update(repeat="service_name"),
        lambda found: found["panels"].extend([first(found)] * 60),
    ],
    "every panel says what it shows and names what it reads": [
        lambda found: first(found).update(description=""),
        lambda found: first(found).update(description="What it shows, though not from where."),
    ],
    "every panel has a unit": [set_default("unit", ""), drop_default("unit")],
    "the unit is that of the figures": [
        lambda found: panel(found, "Time to first token")["fieldConfig"]["defaults"].update(unit="ms"),
        lambda found: panel(found, "KV-cache occupancy")["fieldConfig"]["defaults"].update(unit="percent"),
        lambda found: panel(found, "Bad events")["fieldConfig"]["defaults"].update(unit="s"),
    ],
    "every panel has words for no data": [drop_default("noValue")],
    "every panel has a least value, or shows a budget that can be overspent": [no_least_value],
    "not a number is shown as no traffic": [drop_default("mappings"), set_default("mappings", [])],
    "rates are taken over the interval that Grafana reckons": [
        set_expr("sum(rate(gen_ai_server_time_to_first_token_seconds_count[1m]))")
    ],
    "no step is finer than figures come in": [
        lambda found: first(found).pop("interval"),
        lambda found: first(found).update(interval="0s"),
        lambda found: panel(found, "Bad events")["targets"][0].pop("interval"),
    ],
    "it refreshes, shares the crosshair, and shows the reader's own time": [
        set_top("refresh", ""),
        set_top("graphTooltip", 0),
        set_top("timezone", "utc"),
        set_top("tags", ["slo"]),
    ],
    "links lead to its siblings and keep variables and time": [
        set_top("links", []),
        lambda found: found["links"][0].update(keepTime=False),
        lambda found: found["links"][0].update(tags=["other"]),
    ],
    "every variable takes several values, and All": [
        lambda found: variable(found, "model_name").update(multi=False),
        lambda found: variable(found, "model_name").pop("allValue"),
    ],
    "every variable that is asked for is there": [
        set_expr('up{instance=~"$instance"}'),
        lambda found: first(found).update(title="State of ${service}"),
    ],
    "every variable that is there is asked for": [
        lambda found: found["templating"]["list"].append({**variable(found, "objective"), "name": "owner"}),
    ],
    "no choice of its maker's is left in it": [
        lambda found: variable(found, "datasource").update(current={"text": "Prometheus", "value": "P1809F7"}),
        lambda found: variable(found, "objective").update(current={"text": ["ttft"], "value": ["ttft"]}),
    ],
    "variables stand where their values are escaped": [
        set_expr('up{model_name=~"${model_name:regex}"}'),
        set_expr('up{model_name="$model_name"}'),
    ],
    "the uid is short, stable and ours": [set_top("uid", "firsttoken-" + "x" * 30), set_top("uid", None)],
    "thresholds ascend": [
        set_default("thresholds", {"steps": [{"color": "red", "value": 2}, {"color": "green", "value": 1}]}),
        set_default("thresholds", {"steps": []}),
    ],
    "it names every plugin that it needs": [set_top("__requires", [])],
}


def test_every_rule_has_samples_that_break_it() -> None:
    assert set(BROKEN) == set(RULES)


@pytest.fixture(scope="module")
def whole() -> Found:
    return built()


@pytest.mark.parametrize(("rule", "spoil"), [(rule, spoil) for rule, samples in BROKEN.items() for spoil in samples])
def test_a_rule_finds_what_breaks_it(whole: Found, rule: str, spoil: Callable[[Found], object]) -> None:
    found = copy.deepcopy(whole)
    spoil(found)
    assert list(RULES[rule](found)) != []
