"""Every dashboard over both real databases: each panel has its figures, and they are those of the tables.

One file, so that one process sets the scene.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest

from dashboards.model import DATASOURCES, POSTGRES, SQLITE
from dashboards.promise import Limit
from dashboards.questions import NOT_SPENT, STATES
from dashboards.sql.dialect import Dialect
from dashboards.sql.load import SqlLoad
from dashboards.sql.selection import Selection
from slo.promql import SERVICE_KEY
from tests.dashboards import tables
from tests.dashboards.database import CHOICES, Database
from tests.dashboards.support import Found, figures, panel, query_of
from tests.dashboards.tables import BIN_OFFSET, END_S, MODELS, SCALE, START_S, Value


@pytest.fixture
def dialect(database: Database) -> Dialect:
    return Dialect(POSTGRES if "postgres" in database.boards["gpu"]["tags"] else SQLITE)


def test_json_is_read_by_field_and_by_element(database: Database, dialect: Dialect) -> None:
    found = database.boards["gpu"]
    of_field = f'SELECT {dialect.field("t.a", "reason")} AS reason FROM (SELECT \'{{"reason": "x"}}\' AS a) AS t'
    assert database.rows(of_field, found) == [{"reason": "x"}]
    of_elements = (
        f"SELECT {dialect.place} AS place, {dialect.element} AS n FROM (SELECT '[7, 0, 9]' AS a) AS t"
        f" {dialect.elements('t.a')} ORDER BY 1"
    )
    assert [tuple(row.values()) for row in database.rows(of_elements, found)] == [(0, 7), (1, 0), (2, 9)]


def test_milliseconds_sort_as_texts(database: Database, dialect: Dialect) -> None:
    found = database.boards["gpu"]
    lengths = "(SELECT 900 AS us UNION ALL SELECT 12345678) AS t"
    text = f"SELECT {dialect.milliseconds('t.us')} AS ms FROM {lengths} ORDER BY 1"
    shown = [str(row["ms"]) for row in database.rows(text, found)]
    assert [one.strip() for one in shown] == ["0.9 ms", "12345.7 ms"]
    assert len({len(one) for one in shown}) == 1


def test_figures_are_those_of_the_tables(database: Database) -> None:
    models = len(MODELS)
    outcomes = database.last("Requests by outcome", service_name=["chat"])
    assert outcomes == {"ok": models, "error": models, "rejected": models / 2, "quota": models / 2}
    assert database.last("Requests in flight")["chat in flight"] == 3 * models * 2
    assert database.last("Overdue requests")["chat ttft"] == 2 * models * 2
    assert database.last("Age of the last token")["chat"] == 1
    assert database.last("KV-cache occupancy")["chat m1"] == 0.8
    assert database.last("Running and waiting in the engine", "waiting")["chat waiting"] == models * 2


def test_ranks_and_gpus_are_told_apart_by_the_attribute_that_is_kept(database: Database) -> None:
    ranks = database.last("Occupancy by rank", board="kv-cache", service_name=["chat"])
    assert ranks == {"chat i ": 0.6, "chat i 1": 0.8, "chat j ": 0.6, "chat j 1": 0.8}
    assert database.last("Temperature", board="gpu", service_name=["chat"]) == {"chat GPU-1": 1}
    held = database.last("Clocks held back", board="gpu", service_name=["chat"])
    assert held == {"chat gpu0 GPU-1 sw_thermal": pytest.approx(0.1 * len(MODELS))}
    assert database.last("Power", board="gpu", hw_id=["other"]) == {}
    assert database.last("Energy", board="gpu", hw_id=["other"]) == {}


def test_buckets_are_whole(database: Database) -> None:
    times = {row["time"] for row in database.of("Bad events")}
    assert min(times) > START_S
    assert max(times) < END_S


def test_rows_of_longer_steps_are_spread_over_their_own_length(database: Database) -> None:
    found = database.boards["slo-overview"]
    text = query_of(panel(found, "Bad events")["targets"][0]).replace("$__interval_ms", "10000")
    rows = database.rows(text, found, objective=["ttft"], service_name=["chat"])
    assert {row["value"] for row in rows} == {len(MODELS)}


def test_every_variable_finds_its_values(database: Database) -> None:
    found = {
        variable["name"]: {next(iter(row.values())) for row in database.rows(variable["query"], board)}
        for board in database.boards.values()
        for variable in board["templating"]["list"][1:]
    }
    assert found == {
        "environment": {"staging"},
        "service_name": {"chat", "batch"},
        "model_name": set(MODELS),
        "objective": set(tables.OBJECTIVES),
        "instance": {"i"},
        "hw_id": {"GPU-1"},
    }


def marks(database: Database, name: str, **chosen: list[str]) -> list[Mapping[str, Value]]:
    found: Found = database.boards["incidents"]
    (one,) = (one for one in found["annotations"]["list"] if one["name"] == name)
    text = one["target"].get("rawSql") or one["target"]["queryText"]
    return list(database.rows(text, found, **chosen))


def test_an_alert_is_marked_from_its_start_to_its_end(database: Database) -> None:
    ended, firing = marks(database, "Firing alerts")
    assert (ended["time"], ended["timeend"]) == (END_S - 900, END_S - 50)
    assert (firing["time"], firing["timeend"]) == (END_S - 100, END_S)
    assert str(firing["text"]).startswith("LLMTPOTBudgetBurn chat tpot")
    assert marks(database, "Firing alerts", service_name=["batch"]) == []


def test_drift_and_starts_are_marked(database: Database) -> None:
    ended, lasting = marks(database, "Drift")
    assert (ended["time"], ended["timeend"], ended["tags"]) == (END_S - 3000, END_S - 2400, "server")
    assert lasting["timeend"] == END_S
    assert {row["time"] for row in marks(database, "Starts")} == {START_S}


def test_only_the_limits_of_what_is_chosen_are_drawn(database: Database) -> None:
    every = {"page above 2.5": 2.5, "page above 5": 5, "page above 13.44": 13.44}
    every |= {"ticket above 5": 5, "ticket above 13.44": 13.44}
    assert database.last("Burn over 1h and 5m: fast", "limit") == every
    assert database.last("Burn over 1h and 5m: fast", "limit", objective=["ttft"]) == {"page above 5": 5}
    ends = {row["time"] for row in database.of("Burn over 1h and 5m: fast", "limit", objective=["ttft"])}
    assert ends == {START_S, END_S}


def test_who_was_heard_and_when(database: Database) -> None:
    assert database.last("Time that is known", board="telemetry-health") == {"chat": 1, "staging batch": 1}
    (row,) = database.of("Instances", board="telemetry-health", service_name=["chat"])
    assert (row["instance"], row["silent"], row["since"]) == ("i", 0, START_S * 1000)


def test_how_old_and_how_good_figures_are(database: Database) -> None:
    assert database.last("Age of the last evaluation", board="telemetry-health") == {"collectors": 0}
    errors = database.last("Error of percentiles", board="telemetry-health")
    assert errors["ttft proxy"] == errors["ttft engine"] == 0.01


def test_what_came_in(database: Database) -> None:
    assert database.last("OTLP bodies kept in mind", board="telemetry-health") == {
        "all collectors": pytest.approx(1 / 60)
    }


def test_alerts_of_a_service_stay_whatever_objective_is_chosen(database: Database) -> None:
    def names(**chosen: Sequence[str]) -> set[Value]:
        return {row["alertname"] for row in database.of("Alerts that fire", None, **chosen)}

    assert names() == {"LLMTPOTBudgetBurn", "LLMEngineStalled"}
    assert names(objective=["ttft"], model_name=["m1"]) == {"LLMEngineStalled"}
    assert names(service_name=["batch"]) == set()
    (burning,) = (row for row in database.of("Alerts that fire") if row["burn_tier"] == "fast")
    assert (burning["severity"], burning["notify"], burning["since"]) == ("critical", "page", (END_S - 100) * 1000)


def test_what_fired_is_listed_after_its_end(database: Database) -> None:
    over, firing = database.of("Alerts of the time shown", board="incidents")
    assert (over["alertname"], over["since"]) == ("LLMTTFTBudgetBurn", (END_S - 900) * 1000)
    assert (firing["alertname"], firing["notify"], firing["burn_tier"]) == ("LLMTPOTBudgetBurn", "page", "fast")


def test_alerts_are_counted_while_they_fire(database: Database) -> None:
    counts = {row["time"]: row["value"] for row in database.of("Alerts over time", board="incidents")}
    assert counts[START_S] == 0
    assert counts[END_S - 600] == 1
    assert counts[END_S] == 1
    assert {row["metric"] for row in database.of("Alerts over time", board="incidents")} == {"page"}


def test_a_shift_is_drawn_while_it_lasts(database: Database) -> None:
    rows = database.of("Shift against its own past", board="incidents")
    lines = {name: [row["time"] for row in rows if row["metric"] == name] for name in {row["metric"] for row in rows}}
    ended, lasting = lines["chat m1 e2e proxy server"], lines["chat m1 ttft proxy server"]
    assert (min(ended), max(ended)) == (END_S - 3000, END_S - 2400 - 60)
    assert (min(lasting), max(lasting)) == (END_S - 1200, END_S)
    assert {row["value"] for row in rows} == {0.25}


def test_starts_and_versions_of_the_contract_are_rows(database: Database) -> None:
    (start,) = database.of("Sidecars, by when they started", board="incidents", service_name=["chat"])
    assert start == {"environment": "", "service_name": "chat", "instance": "i", "since": START_S * 1000}
    rows = database.of(
        "Versions of the contract that are judged",
        board="incidents",
        objective=["ttft"],
        model_name=["m1"],
        service_name=["chat"],
    )
    assert {row["result"]: round(float(str(row["events"])), 6) for row in rows} == {"good": 2, "bad": 1}
    assert {row["objective_hash"] for row in rows} == {"h"}


def test_percentiles_are_the_sidecars_and_unknown_ones_their_lower_bound(database: Database) -> None:
    assert database.last("Time to first token", "p95")["chat m1 p95"] == pytest.approx(0.3)
    assert database.last("Time to first token", "p99")["chat m1 p99"] == 0.9
    refs = [target["refId"] for target in panel(database.boards["slo-overview"], "Request duration")["targets"]]
    assert refs == ["p50", "p90", "p95", "p99"]


def test_the_engines_own_stands_beside_them(database: Database) -> None:
    title = "Time to first token, both views"
    assert database.last(title, "sidecar", board="latency")["chat m1 p95 at the sidecar"] == pytest.approx(0.3)
    assert database.last(title, "engine", board="latency")["chat m1 p95 by the engine"] == pytest.approx(30)


def test_a_bin_is_counted_under_the_quarter_of_an_octave_that_it_lies_in(database: Database) -> None:
    """Bins -64 and -62 of scale 5 lie in the first quarter above 2^-2 s, which ends at 2^-1.75 s."""
    assert (SCALE, BIN_OFFSET) == (5, -64)
    counts = database.last("Distribution: time to first token", board="latency", service_name=["chat"])
    ((edge, count),) = counts.items()
    assert str(edge).strip() == f"{1000 * 2**-1.75:.1f} ms"
    assert count == 4 * len(MODELS) * 2
    assert len(str(edge)) == len("       1.0 ms") + 1


def test_means_are_told_by_instance(database: Database) -> None:
    means = database.last("Request duration: mean by instance", board="latency", service_name=["chat"])
    assert means == pytest.approx({"chat i": 0.3, "chat j": 0.3})


def test_requests_without_a_value_are_counted_apart(database: Database) -> None:
    ended = database.last("Ended without a value", board="latency", service_name=["chat"])
    assert ended == pytest.approx({"chat ttft": 4 * 2 * len(MODELS) / 60})


def test_prompts_of_each_length_have_a_line(database: Database) -> None:
    lines = database.last("Time to first token by length of prompt", board="latency", service_name=["chat"])
    assert set(lines) == {f"chat {length} tokens p95" for length in ("to_256", "to_1k", "to_4k", "to_16k", "over_16k")}


def test_the_past_is_drawn_where_it_is_now(database: Database) -> None:
    now = {row["time"] for row in database.of("Request duration against the past", "now", board="incidents")}
    for ref, when in (("ago1d", "yesterday"), ("ago7d", "a week ago")):
        rows = database.of("Request duration against the past", ref, board="incidents", model_name=["m1"])
        assert {row["metric"] for row in rows} == {f"chat m1 p95 {when}", f"staging batch m1 p95 {when}"}
        assert {row["time"] for row in rows} <= now


OFFERED = 3.0 * len(MODELS)


def test_load_and_its_peak_leave_synthetic_requests_out(database: Database) -> None:
    assert database.last("Load", board="capacity") == {"chat": OFFERED, "staging batch": OFFERED}
    assert database.last("Peak of the time shown", board="capacity") == {"chat": OFFERED, "staging batch": OFFERED}


@pytest.mark.parametrize("bears", [Decimal(12), Decimal("4.5")])
def test_headroom_is_what_a_service_has_left_of_its_own(database: Database, bears: Decimal) -> None:
    found = database.boards["capacity"]
    datasource = next(one for one in DATASOURCES.values() if one.name in found["tags"])
    load = SqlLoad(Dialect(datasource), Selection(SERVICE_KEY))
    rows = database.rows(load.headroom((Limit("chat", "", bears, ""),)).text, found)
    assert {row["metric"] for row in rows} == {"chat"}
    assert [row["value"] for row in rows] == pytest.approx([1 - OFFERED / float(bears)] * len(rows))


def test_requests_in_flight_stand_beside_the_seconds_spent_in_a_second(database: Database) -> None:
    title = "Requests in flight, and by Little's law"
    counted = database.last(title, "counted", board="capacity", service_name=["chat"])
    assert counted == {"chat counted": 3 * len(MODELS) * 2}
    little = database.last(title, "little", board="capacity", service_name=["chat"])
    assert little == pytest.approx({"chat by Little's law": 1.2 * 2 * len(MODELS) / 60})


def test_who_is_refused_is_a_share_and_a_stream_has_its_share_of_tokens(database: Database) -> None:
    assert database.last("Share refused", board="capacity", service_name=["chat"]) == {"chat": pytest.approx(1 / 3)}
    speed = database.last("Tokens per running request", board="kv-cache", service_name=["chat"])
    assert speed == {"chat": pytest.approx(10 * len(MODELS) / (5 * 2 * len(MODELS)))}


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
    found = database.boards["slo-overview"]
    shown = {change["id"]: change["options"] for change in panel(found, "Objectives")["transformations"]}
    assert set(shown["organize"]["renameByName"]) == set(answered)


def test_a_model_chosen_is_shown_and_no_other(database: Database) -> None:
    for title in ("Error budget left", "Burn over 1h and 5m: fast"):
        assert {str(name).endswith("m1") for name in database.last(title)} == {False}
        assert all(" m1" in str(name) for name in database.last(title, model_name=["m1"])), title


def test_events_and_coverage_are_those_of_the_tables(database: Database) -> None:
    models = len(MODELS)
    assert database.last("Bad events", objective=["ttft"])["chat ttft"] == models
    assert database.last("Good events", objective=["ttft"], model_name=["m1"])["chat ttft"] == 2
    assert database.last("Coverage of the period")["chat ttft"] == 0.25


def test_what_no_objective_judges_is_a_share_of_what_one_could(database: Database) -> None:
    """150 requests a minute and model could be judged: 60 ok, 60 in error, 30 rejected; 180 events came of each,
    and more than all is shown as all."""
    judged = database.last("Requests that each objective judges", service_name=["chat"])
    assert set(judged) == {"chat ttft", "chat tpot", "chat whole", "chat answered"}
    assert judged["chat ttft"] == 1
    assert database.last("Requests that no objective judges") == {"chat": 0, "staging batch": 0}


ONLY_OF = {
    "Shift against its own past": "the latency of one model has shifted",
    "Alerts of the time shown": "alerts fired for one service",
    "Alerts that fire": "alerts fire for one service",
}
"""Panels that are rightly empty when something else is chosen, each with the reason."""


@pytest.mark.parametrize("choice", CHOICES)
def test_every_query_of_every_panel_gives_rows_in_order(database: Database, choice: str) -> None:
    asked = [
        (found, one, target)
        for found in database.boards.values()
        for one in figures(found)
        for target in one["targets"]
    ]
    assert len(asked) > 100
    for found, one, target in asked:
        rows = database.rows(query_of(target), found, **CHOICES[choice])
        if target["refId"] != "limit" and not (CHOICES[choice] and one["title"] in ONLY_OF):
            assert rows, f"{one['title']} {target['refId']}"
        if one["type"] != "table":
            assert all(list(row) == ["time", "metric", "value"] for row in rows), one["title"]
            assert all(isinstance(row["value"], float) for row in rows), one["title"]
            keys = [(row["time"], row["metric"]) for row in rows]
            assert len(set(keys)) == len(keys), one["title"]
            assert [time for time, _ in keys] == sorted(time for time, _ in keys), one["title"]
