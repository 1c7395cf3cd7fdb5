"""Every SQL panel is executed, on SQLite and on PostgreSQL, and gives the figures that its tables hold."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboards.source import NOT_SPENT, STATES
from tests.collector import support as collector_support
from tests.dashboards import tables
from tests.dashboards.support import Found, built, figures, panel, query_of, sql
from tests.dashboards.tables import END_S, MODELS, START_S, Ask, Value

CHOICES: dict[str, dict[str, list[str]]] = {
    "all": {},
    "one service": {"service_name": ["chat"]},
    "one objective of one model": {"objective": ["tpot"], "model_name": ["m1"]},
    "several": {"objective": ["ttft", "tpot"], "service_name": ["chat", "batch"], "model_name": list(MODELS)},
    "a name with a quote": {"model_name": [MODELS[1]]},
}


@dataclass(frozen=True, slots=True)
class Database:
    ask: Ask
    found: Found

    def rows(self, text: str, **chosen: Sequence[str]) -> list[dict[str, Value]]:
        return self.ask(sql(text, self.found, start_s=START_S, end_s=END_S, chosen=chosen))

    def of(self, title: str, ref: str | None = None, **chosen: Sequence[str]) -> list[dict[str, Value]]:
        """The rows of a query of a panel, the first one unless a `ref` is named."""
        targets = panel(self.found, title)["targets"]
        texts = {None: query_of(targets[0])} | {target["refId"]: query_of(target) for target in targets}
        return self.rows(texts[ref], **chosen)

    def last(self, title: str, ref: str | None = None, **chosen: Sequence[str]) -> dict[Value, Value]:
        """The last value of each line."""
        return {row["metric"]: row["value"] for row in self.of(title, ref, **chosen)}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.tools)])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            ask = stack.enter_context(tables.sqlite(Path(tmp_path_factory.mktemp("sqlite"))))
        else:
            if collector_support.initdb() is None:
                pytest.skip("postgresql is missing: tests/install_tools.sh installs it")
            ask = stack.enter_context(tables.postgresql(stack.enter_context(collector_support.postgresql())))
        yield Database(ask, built(request.param))


@pytest.mark.parametrize("choice", CHOICES)
def test_every_query_of_every_panel_gives_rows_in_order(database: Database, choice: str) -> None:
    asked = [(one, target) for one in figures(database.found) for target in one["targets"]]
    assert len(asked) > 20
    for one, target in asked:
        rows = database.rows(query_of(target), **CHOICES[choice])
        if target["refId"] != "limit":
            assert rows, f"{one['title']} {target['refId']}"
        if one["type"] != "table":
            assert all(list(row) == ["time", "metric", "value"] for row in rows), one["title"]
            assert all(isinstance(row["value"], float) for row in rows), one["title"]
            keys = [(row["time"], row["metric"]) for row in rows]
            assert len(set(keys)) == len(keys), one["title"]
            assert [time for time, _ in keys] == sorted(time for time, _ in keys), one["title"]


def test_every_variable_finds_its_values(database: Database) -> None:
    found = {
        variable["name"]: {next(iter(row.values())) for row in database.rows(variable["query"])}
        for variable in database.found["templating"]["list"][1:]
    }
    assert found == {
        "environment": {"staging"},
        "service_name": {"chat", "batch"},
        "model_name": set(MODELS),
        "objective": set(tables.OBJECTIVES),
    }


def test_an_objective_stands_as_it_is(database: Database) -> None:
    kept, burning, spent = (float(STATES.index(state)) for state in ("kept", "burning", "spent"))
    state = database.last("State", service_name=["chat"])
    assert state == {
        "chat ttft": kept,
        "chat tpot": burning,
        "chat whole": kept,
        "chat answered": spent,
        "chat kv-headroom": kept,
    }
    ends = database.last("Budget exhausted in", service_name=["batch"])
    assert ends["staging batch answered"] == 0
    assert ends["staging batch ttft"] == NOT_SPENT
    assert database.last("Error budget left")["chat answered"] == pytest.approx(1 - 80 / 60)


def test_the_table_has_a_row_an_objective_and_model(database: Database) -> None:
    rows = database.of("Objectives", service_name=["chat"])
    assert len(rows) == len(tables.OBJECTIVES) * (1 + len(MODELS))
    (answered,) = (row for row in rows if row["objective"] == "answered" and row["model_name"] == "*")
    assert float(str(answered["target"])) == 0.999
    assert answered["burn1h"] == 80
    shown = {change["id"]: change["options"] for change in panel(database.found, "Objectives")["transformations"]}
    assert set(shown["organize"]["renameByName"]) == set(answered)


def test_a_model_chosen_is_shown_and_no_other(database: Database) -> None:
    for title in ("Error budget left", "Burn over 1h and 5m: fast"):
        assert {str(name).endswith("m1") for name in database.last(title)} == {False}
        assert all(" m1" in str(name) for name in database.last(title, model_name=["m1"])), title


def test_figures_are_those_of_the_tables(database: Database) -> None:
    models = len(MODELS)
    assert database.last("Bad events", objective=["ttft"])["chat ttft"] == models
    assert database.last("Good events", objective=["ttft"], model_name=["m1"])["chat ttft"] == 2
    assert database.last("Requests by outcome", service_name=["chat"]) == {"ok": models, "error": models}
    assert database.last("Requests in flight")["chat in flight"] == 3 * models * 2
    assert database.last("Overdue requests")["chat ttft"] == 2 * models * 2
    assert database.last("Age of the last token")["chat"] == 1
    assert database.last("KV-cache occupancy")["chat m1"] == 0.8
    assert database.last("Running and waiting in the engine", "waiting")["chat waiting"] == models * 2
    assert database.last("Coverage of the period")["chat ttft"] == 0.25


def test_percentiles_are_the_sidecars_and_unknown_ones_their_lower_bound(database: Database) -> None:
    assert database.last("Time to first token", "p95")["chat m1 p95"] == pytest.approx(0.3)
    assert database.last("Time to first token", "p99")["chat m1 p99"] == 0.9
    refs = [target["refId"] for target in panel(database.found, "Request duration")["targets"]]
    assert refs == ["p50", "p90", "p95", "p99"]


def test_buckets_are_whole(database: Database) -> None:
    times = {row["time"] for row in database.of("Bad events")}
    assert min(times) > START_S
    assert max(times) < END_S


def test_rows_of_longer_steps_are_spread_over_their_own_length(database: Database) -> None:
    text = query_of(panel(database.found, "Bad events")["targets"][0]).replace("$__interval_ms", "10000")
    ((value,),) = ({row["value"] for row in database.rows(text, objective=["ttft"], service_name=["chat"])},)
    assert value == len(MODELS)


def test_only_the_limits_of_what_is_chosen_are_drawn(database: Database) -> None:
    every = {"page above 2.5": 2.5, "page above 5": 5, "page above 13.44": 13.44}
    every |= {"ticket above 5": 5, "ticket above 13.44": 13.44}
    assert database.last("Burn over 1h and 5m: fast", "limit") == every
    assert database.last("Burn over 1h and 5m: fast", "limit", objective=["ttft"]) == {"page above 5": 5}
    ends = {row["time"] for row in database.of("Burn over 1h and 5m: fast", "limit", objective=["ttft"])}
    assert ends == {START_S, END_S}


def test_alerts_of_a_service_stay_whatever_objective_is_chosen(database: Database) -> None:
    def names(**chosen: Sequence[str]) -> set[Value]:
        return {row["alertname"] for row in database.of("Alerts that fire", None, **chosen)}

    assert names() == {"LLMTPOTBudgetBurn", "LLMEngineStalled"}
    assert names(objective=["ttft"], model_name=["m1"]) == {"LLMEngineStalled"}
    assert names(service_name=["batch"]) == set()
    (burning,) = (row for row in database.of("Alerts that fire") if row["burn_tier"] == "fast")
    assert (burning["severity"], burning["notify"], burning["since"]) == ("critical", "page", (END_S - 100) * 1000)
