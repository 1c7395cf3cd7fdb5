"""The page as values: the verdict in words, cards, gauges and alerts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from collector.answering.status import status
from collector.judging.evaluate import Evaluation
from collector.pages.filters import Filters
from collector.pages.history import History, Points, empty
from collector.pages.view import LONG_LIST, MAX_ALERTS, MAX_DRIFTS, MAX_MODELS, Page, Seen, page, verdict
from collector.values.alerting import Alert
from slo.objective import parse
from slo.signals import KV_OCCUPANCY
from tests.collector.answering import test_status as made
from tests.collector.drift_scene import DRIFT

NO_PAST = empty(made.AT_S, window_s=300)


def past_of(**known: Mapping[Any, Any]) -> History:
    """The last ten minutes, with what is known of them."""
    return replace(NO_PAST, since_s=made.AT_S - 600, **known)  # type: ignore[arg-type]


def seen(found: Any = made.FULL, *alerts: Alert, past: History = NO_PAST, specs: Any = made.SPECS) -> Page:
    return page(Seen(specs, status(specs, found, alerts), past, alerts, 10))


def objective(name: str, state: str, *, remaining: float = 0.5, ends_s: float | None = None) -> dict[str, Any]:
    budget = {"remaining": remaining, "exhausted_in_s": ends_s}
    return {"service": "chat", "objective": name, "state": state, "period_s": 86400, "budget": budget}


VERDICTS = {
    "nothing heard": ([objective("a", "no_data")], "Nothing heard yet", "No telemetry"),
    "all kept": ([objective("a", "ok")], "The contract is kept", "No budget is being spent at the moment."),
    "kept, but spending": (
        [objective("a", "ok", ends_s=9000), objective("b", "ok", ends_s=7200)],
        "The contract is kept",
        "The tightest budget, b with 50 % left, lasts 2 h at the last hour's rate.",
    ),
    "kept, and spending slowly": (
        [objective("a", "ok", ends_s=86400)],
        "The contract is kept",
        "The tightest budget, a with 50 % left, lasts beyond 1 d at the last hour's rate.",
    ),
    "one silent": ([objective("a", "ok"), objective("b", "no_data")], "The contract is kept", "No data of b."),
    "two burn": (
        [objective("a", "burning"), objective("b", "burning", ends_s=60)],
        "The contract is at risk",
        "a and b are burning budget. The tightest budget, b with 50 % left, lasts 1 min",
    ),
    "one is spent": (
        [objective("a", "burning", ends_s=60), objective("b", "exhausted", remaining=-0.5)],
        "The contract is broken",
        "b has used 150 % of its budget.",
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts(case: str) -> None:
    objectives, title, detail = VERDICTS[case]
    found = verdict(objectives)
    assert found.title == title
    assert detail in found.detail


def test_a_card_is_an_objective_and_models_show_where_there_are_several() -> None:
    (first, second) = seen().cards
    assert (first.name, first.promise) == ("ttft", "95 % of requests get a first token within 500 ms")
    assert first.url == "/objectives/chat/ttft"
    assert first.models == ()
    assert second.whole.state == "no data"
    two = made.evaluation(budgets=(made.budget("*"), made.budget("m"), made.budget("n")))
    assert [one.model for one in seen(two).cards[0].models] == ["m", "n"]


def test_the_chart_is_the_promised_percentile_against_its_threshold() -> None:
    points = {name: [(made.AT_S - 60, 0.4), (made.AT_S, 0.6)] for name in ("p50", "p90", "p95", "p99", "p999")}
    past = past_of(percentiles={("", "chat", "m", "ttft"): points})
    card = seen(past=past).cards[0]
    assert (card.picture.title, card.picture.now, card.picture.limit) == ("p95 over 5 min", "600 ms", "500 ms")
    assert card.picture.chart.threshold_y is not None


def test_without_percentiles_the_chart_is_the_burn() -> None:
    points: Points = [(made.AT_S - 9, 0.5), (made.AT_S, 2.0)]
    past = past_of(burns={("", "chat", "*", "ttft"): points})
    card = seen(past=past).cards[0]
    assert (card.picture.title, card.picture.now, card.picture.limit) == ("burn over 5 min", "2.0×", "1.0×")


def test_gauges_show_the_latest_value_and_their_limit() -> None:
    specs = parse("service: chat\nobjectives: [{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}]")
    past = past_of(gauges={("chat", KV_OCCUPANCY.sql): [(made.AT_S - 5, 0.2), (made.AT_S, 0.42)]})
    (gauge,) = seen(past=past, specs=specs).gauges
    assert (gauge.picture.title, gauge.picture.now, gauge.picture.limit) == ("KV cache", "42 %", "90 %")
    assert gauge.picture.chart.threshold_y is not None


def test_percentiles_of_several_models_stand_side_by_side() -> None:
    budgets = (made.budget("*"), made.budget("m"), made.budget("n"))
    found = made.evaluation(budgets=budgets, rows=(made.percentile("m"), made.percentile("n", p95=0.7)))
    card = seen(found).cards[0]
    assert card.corner == "5m"
    assert [(line.window, line.values[1]) for line in card.latencies] == [
        ("m", ("p95", "400 ms", "good")),
        ("n", ("p95", "700 ms", "bad")),
    ]


def test_before_the_first_evaluation_there_is_a_page_too() -> None:
    found = seen(None)
    assert (found.at, found.at_s) == ("–", None)
    assert len(found.cards) == 2
    assert found.span == "3 h"
    assert seen(past=past_of()).span == "10 min"


def many(count: int) -> Page:
    """A page about one objective of so many models, of which one in the middle is over its budget."""
    return seen(many_of(count))


def many_of(count: int) -> Evaluation:
    """An evaluation of so many models, of which one in the middle is over its budget."""
    models = [f"m{number:03}" for number in range(count)]
    budgets = [made.budget(model, remaining=-0.5 if model == models[count // 2] else 0.9) for model in models]
    return made.evaluation(budgets=(made.budget("*"), *budgets))


def test_of_more_models_than_people_read_the_worst_are_shown_and_the_rest_counted() -> None:
    card = many(MAX_MODELS + 12).cards[0]
    assert (len(card.models), card.left_out) == (MAX_MODELS, 12)
    assert (card.models[0].model, card.models[0].state) == ("m021", "budget spent")
    few = many(3).cards[0]
    assert ([one.model for one in few.models], few.left_out) == (["m000", "m001", "m002"], 0)


def test_of_more_alerts_than_people_read_the_most_urgent_are_told() -> None:
    alerts = [replace(made.firing(f"m{number}"), since_s=made.AT_S - number) for number in range(3)]
    named = [replace(one, key=replace(one.key, objective=f"o{number}")) for number, one in enumerate(alerts * 5)]
    page = seen(made.FULL, *named)
    assert (len(page.active), len(page.told)) == (15, MAX_ALERTS)
    assert list(page.told) == list(page.active[:MAX_ALERTS])


def test_a_list_that_is_longer_than_a_look_is_shown_at_a_glance_first() -> None:
    lines = "\n".join(f"  - {{name: o{n}, signal: ttft, percentile: 95, threshold: 1s}}" for n in range(LONG_LIST + 1))
    assert seen(specs=parse(f"service: chat\nobjectives:\n{lines}\n")).is_long
    assert not seen().is_long


def test_a_sentence_names_a_few_and_counts_the_rest() -> None:
    said = verdict([objective(f"o{number}", "burning") for number in range(9)])
    assert said.detail.startswith("o0, o1, o2, o3 and 5 more are burning budget.")


def test_of_many_drifts_those_that_shifted_most_are_told() -> None:
    drifts = tuple(replace(DRIFT, model=f"m{number}", effect=0.1 * number) for number in range(MAX_DRIFTS + 3))
    found = seen(replace(made.FULL, drifts=drifts)).drifts
    assert [line.who for line in found] == [f"m{number}" for number in range(MAX_DRIFTS + 2, 2, -1)]


TWO = parse(
    "service: chat\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 1s}]\n---\n"
    "service: search\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 1s}]\n"
)


def test_objectives_stand_by_service_and_are_named_with_it() -> None:
    search = [replace(made.budget("*", remaining=-0.5), service="search"), made.budget("*")]
    found = seen(made.evaluation(budgets=tuple(search)), specs=TWO)
    assert [(group.service, group.told) for group in found.groups] == [
        ("chat", "1 objective"),
        ("search", "1 objective, 1 budget spent"),
    ]
    assert found.verdict.detail == "search ttft has used 150 % of its budget."
    assert (found.services_told, found.is_filterable) == ("chat, search", True)


def test_a_page_of_a_choice_says_so_and_shows_no_more() -> None:
    seen_all = Seen(TWO, status(TWO, None, ()), NO_PAST, (made.firing(),), 10, filters=Filters(service="search"))
    found = page(seen_all)
    assert [card.service for card in found.cards] == ["search"]
    assert (found.total, found.active) == (2, [])
    assert list(found.choices.services) == ["chat", "search"]
    nothing = page(replace(seen_all, filters=Filters(service="voice")))
    assert (nothing.cards, nothing.verdict.title) == ([], "Nothing matches")


def test_services_without_an_objective_are_told_with_what_they_send() -> None:
    rows = [replace(made.percentile(f"m{number}"), service="search") for number in range(7)]
    engine: Points = [(made.AT_S, 0.2)]
    past = past_of(gauges={("voice", KV_OCCUPANCY.sql): engine, ("chat", KV_OCCUPANCY.sql): engine})
    found = seen(made.evaluation(rows=tuple(rows)), past=past).unjudged
    assert [(one.service, one.told) for one in found] == [
        ("search", "sends ttft of m0, m1, m2, m3 and m4 and 2 more"),
        ("voice", "sends figures of its engine"),
    ]
