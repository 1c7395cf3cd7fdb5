"""The page about one objective, as values."""

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from collector.answering.status import status
from collector.pages.drill import MAX_SAMPLES, MAX_WORST, Asked, Drill, drill, ranked, ranks
from collector.pages.history import Ended
from collector.pages.view import Seen, page
from collector.values.alerting import Alert, AlertKey
from collector.values.measurement import FAILED, NS, Request, Resource
from slo.objective import Objective, parse
from tests.collector.answering import test_status as made
from tests.collector.pages.test_view import past_of

NOTHING = Asked()
TTFT, ANSWERED = made.SPECS[0].objectives


def request(number: int, ttft_s: float | None, *, took_s: float = 9.0, failed: bool = False, **of: str) -> Request:
    latencies = {} if ttft_s is None else {"ttft": ttft_s}
    named = {"model": "m", "class_": "", "outcome": "ok"} | of
    return Request(
        Resource("", "chat", "i1", "proxy"), f"{number:032x}", f"{number:016x}", has_failed=failed,
        end_ns=(made.AT_S - 60) * NS, took_s=took_s, latencies=latencies, input_tokens=1200, output_tokens=7, **named,
    )  # fmt: skip


def drilled(asked: Asked = NOTHING, *alerts: Alert, name: str = "ttft", found: Any = made.FULL, **past: Any) -> Drill:
    seen = Seen(made.SPECS, status(made.SPECS, found, alerts), past_of(**past), alerts, 10)
    whole = page(seen)
    return drill(seen, whole, next(card for card in whole.cards if card.name == name), asked)


def tier_alert(state: str, tier: str = "fast") -> Alert:
    one = made.firing()
    return replace(one, key=replace(one.key, tier=tier), state=state)  # type: ignore[arg-type]


def test_every_tier_says_both_its_windows_and_what_it_waits_for() -> None:
    lines = drilled(Asked(), tier_alert("firing"), tier_alert("pending", "medium")).tiers
    assert [line.name for line in lines] == ["fast", "medium", "slow", "long"]
    fast, medium, slow, _ = lines
    assert (fast.long, fast.short, fast.factor) == (("1h", "2.0×", "good"), ("5m", "–", "none"), "5.0×")
    assert (fast.state, fast.tone, fast.coverage) == ("firing for 1 min", "bad", "50 %")
    assert fast.does.startswith("pages at ")
    assert (medium.tone, medium.state) == ("warn", "the long window burns, a shorter one not yet or no longer")
    assert (slow.tone, slow.state, slow.coverage) == ("good", "quiet", "–")


def test_a_tier_that_burns_and_does_not_fire_says_what_holds_it_back() -> None:
    def state(bad: float, coverage: float) -> str:
        burns = tuple(
            replace(made.burn("*", window_s), burn=bad, coverage=coverage) for window_s in (300, 3600, 21600, 86400)
        )
        return drilled(found=made.evaluation(burns=burns, budgets=(made.budget("*"),))).tiers[0].state

    assert state(4.0, 1.0) == "quiet"
    assert state(6.0, 0.5) == "held back: 30 min of 1 h are known, too little to be sure"
    assert state(6.0, 1.0) == "held back: too few bad events, or too close together"


def test_the_state_is_a_sentence() -> None:
    assert drilled().said == (
        "50 % of the budget is left; at the last hour's rate it lasts 10 min: 10 bad events, where 20 are allowed. "
        "Telemetry is known for 10 % of the period."
    )
    spent = made.evaluation(budgets=(made.budget("*", remaining=-1.0),))
    assert drilled(found=spent).said.startswith("The budget is spent: 10 bad events")
    assert drilled(found=None).said == "Nothing was heard of it yet, so nothing is judged."


def test_only_its_own_alerts_are_told() -> None:
    other = replace(made.firing(), key=replace(made.firing().key, objective="answered"))
    past = Ended("LLMTTFTBudgetBurn", "chat", "*", "ttft", "fast", 10, 70, b"{}")  # type: ignore[arg-type]
    found = drilled(Asked(ended=[past]), made.firing(), other)
    assert [line.of for line in found.active] == ["chat · ttft"]
    assert [line.state for line in found.ended] == ["ended"]


def test_the_chart_at_large_has_its_values_beside_it() -> None:
    points = [(made.AT_S - 10 * number, 0.001 * number) for number in range(50, -1, -1)]
    columns = dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), points)
    found = drilled(percentiles={("", "chat", "m", "ttft"): columns})
    assert found.picture.title == "p95 over 5 min"
    assert (found.top, found.end) == ("575 ms", "08:00:00 UTC")
    assert len(found.samples) == 11, "of 51 values every fifth"
    assert found.samples[0] == ("2027-01-15 08:00:00 UTC", "0.00 ms")
    assert found.error == ("±1.1 %")


@pytest.mark.parametrize("held", [1, 12, 13, 23, 35, 60])
def test_the_values_beside_the_chart_are_spread_over_all_of_it(held: int) -> None:
    points = [(made.AT_S - 10 * number, 0.001) for number in range(held - 1, -1, -1)]
    columns = dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), points)
    samples = drilled(percentiles={("", "chat", "m", "ttft"): columns}).samples
    first_s, told = made.AT_S - 10 * (held - 1), [datetime.fromisoformat(at[:-4] + "Z") for at, _ in samples]
    assert len(samples) <= MAX_SAMPLES
    assert told[0].timestamp() == made.AT_S
    steps = {(later - earlier).total_seconds() for later, earlier in pairwise(told)}
    assert len(steps) <= 1
    assert told[-1].timestamp() - first_s < next(iter(steps), 10), "the first of the chart are among them"


def test_the_worst_requests_are_those_that_took_longest_and_what_waited_in_vain() -> None:
    slow = [request(number, 0.1 * number) for number in range(1, 30)]
    vain = [request(100 + number, None, took_s=30, failed=True, outcome="timeout") for number in range(9)]
    found = drilled(Asked(worst=[*slow, *vain, *slow], worst_since_s=made.AT_S - 7200))
    assert len(found.worst) == MAX_WORST
    assert [one.value for one in found.worst] == ["none in 30.0 s"] * 5 + [
        "2.90 s",
        "2.80 s",
        "2.70 s",
        "2.60 s",
        "2.50 s",
    ]
    assert {one.tone for one in found.worst} == {"bad"}
    last = found.worst[-1]
    assert (last.outcome, last.model, last.tokens, last.whole) == ("ok", "m", "1,200 in, 7 out", "9.00 s")
    assert (last.trace_id, last.instance, last.when) == (f"{25:032x}", "i1", "2027-01-15 07:59:00 UTC")
    assert found.worst_by == "time to first token"
    assert found.worst_of.startswith("of the spans sent to this collector since it started 2 h ago")


def test_one_within_the_promise_is_no_bad_one() -> None:
    (one,) = drilled(Asked(worst=[request(1, 0.4)])).worst
    assert (one.value, one.tone) == ("400 ms", "none")


def test_an_objective_of_answers_tells_of_those_that_failed() -> None:
    assert ranks(ANSWERED) == (FAILED,)
    found = drilled(Asked(worst=[request(1, None, failed=True, outcome="")]), name="answered")
    assert (found.worst[0].value, found.worst[0].outcome, found.worst_by) == ("9.00 s", "error", "failed after")


def test_an_objective_of_an_engine_tells_of_no_request() -> None:
    (kv,) = parse("service: chat\nobjectives: [{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}]")[
        0
    ].objectives
    assert ranks(kv) == ()


def matching(**match: str) -> Objective:
    inside = ", ".join(f"{key}: {value}" for key, value in match.items())
    line = f"{{name: t, signal: ttft, percentile: 95, threshold: 1s, match: {{{inside}}}}}"
    return parse(f"service: chat\nclasses: [a, b]\nobjectives: [{line}]")[0].objectives[0]


def test_only_requests_that_the_objective_speaks_of_are_told() -> None:
    some = [request(1, 1.0, model="m", class_="a"), request(2, 2.0, model="n", class_="b"), request(3, 3.0, model="m2")]
    assert [one.trace_id[-1] for one in ranked(some, matching(model="m*"))] == ["3", "1"]
    assert [one.trace_id[-1] for one in ranked(some, matching(**{"class": "b"}))] == ["2"]


def test_a_tier_that_could_never_fire_is_named() -> None:
    specs = parse("service: chat\nobjectives: [{name: ttft, signal: ttft, percentile: 2, threshold: 1s}]")
    seen = Seen(specs, status(specs, None, ()), past_of(), (), 10)
    whole = page(seen)
    found = drill(seen, whole, whole.cards[0], Asked())
    assert found.never
    assert "could make it fire" in found.never[0]


def test_trouble_with_a_question_is_told_beside_the_form() -> None:
    found = drilled(Asked(percentile="x", trouble="percentile: x is not a share"))
    assert found.answer is not None
    assert found.answer.trouble == "percentile: x is not a share"
    assert found.form.percentile == "x"
    assert drilled().answer is None


def test_the_key_of_an_alert_decides_whose_it_is() -> None:
    key = AlertKey("LLMTTFTBudgetBurn", "eu", "chat", "*", "ttft", "fast")
    assert drilled(Asked(), replace(made.firing(), key=key)).active == []
