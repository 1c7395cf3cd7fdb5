"""Good or bad, and when: requests as scripts of the wire, judged by the objectives of DESIGN 5."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guarding.queue_guard import Promise
from sidecar.judging.deadlines import MAX_HELD_S, Judge, Rule, Seconds, StateSeconds, Verdict, matching, rules
from sidecar.said.dialects import read_ask, recognise
from sidecar.said.exchange import Exchange
from slo.objective import Objective, parse

MS = 1_000_000
T0_NS = 5_000 * MS

SPEC = """
service: chat
classes: [interactive]
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: ttft-loose, signal: ttft, percentile: 99, threshold: 2s}
  - {name: e2e, signal: e2e, percentile: 95, threshold: 10s}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms, stall: 3s}
  - {name: tpot-long, signal: tpot, percentile: 99, threshold: 50ms, stall: 60s, min_output_tokens: 5}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: patient, signal: availability, target: 99.9%, patience: 4s}
  - {name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}
  - {name: queue, signal: queue, threshold: 10, target: 99%}
"""
OBJECTIVES: dict[str, Objective] = {objective.name: objective for objective in parse(SPEC)[0].objectives}

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
FAULT = b'data: {"error":{"type":"boom"}}\n\n'
ANSWER = b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'

Step = tuple[int, str, Any]


def head(at_ms: int, status: int = 200, content_type: str = "text/event-stream") -> Step:
    return at_ms, "head", (status, content_type)


def sent(at_ms: int, data: bytes) -> Step:
    return at_ms, "bytes", data


def end(at_ms: int) -> Step:
    return at_ms, "end", None


def left(at_ms: int) -> Step:
    return at_ms, "left", None


def lost(at_ms: int) -> Step:
    return at_ms, "lost", None


def timed_out(at_ms: int) -> Step:
    return at_ms, "timed out", None


def apply(exchange: Exchange, step: Step) -> None:
    at_ms, what, value = step
    at_ns = T0_NS + at_ms * MS
    if what == "head":
        status, content_type = value
        exchange.response_started(status, content_type, at_ns=at_ns)
    elif what == "bytes":
        exchange.feed(value, at_ns)
    elif what == "end":
        exchange.response_ended(at_ns)
    elif what == "left":
        exchange.client_left(at_ns)
    elif what == "lost":
        exchange.upstream_lost(at_ns, "upstream_reset")
    else:
        exchange.timed_out(at_ns)


def exchange_of(*, stream: bool = True) -> Exchange:
    dialect = recognise(b"/v1/chat/completions")
    assert dialect is not None
    return Exchange(read_ask(dialect, json.dumps({"stream": stream}).encode()), T0_NS)


def judged(
    steps: list[Step], names: tuple[str, ...] = (), *, stream: bool = True, with_timer: bool = True
) -> dict[str, tuple[bool, float]]:
    """Good or bad by objective, and the milliseconds after t0 at which; `with_timer` wakes the judge at each deadline,
    without it only the end asks."""
    exchange = exchange_of(stream=stream)
    chosen = [OBJECTIVES[name] for name in names] if names else list(OBJECTIVES.values())
    judge = Judge(matching(rules(chosen), model="m", request_class=None, prompt_bytes=0), exchange)
    verdicts: list[Verdict] = []
    for step in steps:
        step_ns = T0_NS + step[0] * MS
        while with_timer and (deadline_ns := judge.next_deadline_ns()) is not None and deadline_ns < step_ns:
            found = judge.passed(deadline_ns)
            verdicts += found
            assert found, "a deadline that brings no verdict would wake the timer for ever"
        before = exchange.token_events
        apply(exchange, step)
        if exchange.token_events > before == 0:
            verdicts += judge.first_token()
    verdicts += judge.ended(exchange.record())
    assert judge.next_deadline_ns() is None
    names_seen = [objective.name for objective, *_ in verdicts]
    assert len(names_seen) == len(set(names_seen)), "more than one event for an objective"
    return {objective.name: (good, (at_ns - T0_NS) / MS) for objective, good, at_ns in verdicts}


GOOD, BAD = True, False
# The steps, the objectives asked (all when empty), and the verdicts.
REQUESTS: dict[str, tuple[list[Step], tuple[str, ...], dict[str, tuple[bool, float]]]] = {
    "a quick answer is good for all": (
        [head(100), sent(100, ROLE), sent(300, TOKEN), sent(340, TOKEN), sent(340, FINISH + DONE), end(341)],
        (),
        {
            "ttft": (GOOD, 300), "ttft-loose": (GOOD, 300), "e2e": (GOOD, 341), "tpot": (GOOD, 341),
            "answered": (GOOD, 341), "patient": (GOOD, 341),
        },
    ),
    "a first token at the threshold is within": (
        [head(1), sent(500, TOKEN), left(510)],
        ("ttft",),
        {"ttft": (GOOD, 500)},
    ),
    "a late first token is bad at the deadline, not when it comes": (
        [head(1), sent(900, TOKEN), end(950)],
        ("ttft", "ttft-loose"),
        {"ttft": (BAD, 500), "ttft-loose": (GOOD, 900)},
    ),
    "a hung engine is bad while it hangs": (
        [head(1), left(60_000)],
        (),
        {
            "ttft": (BAD, 500), "ttft-loose": (BAD, 2000), "e2e": (BAD, 10_000), "answered": (BAD, 30_000),
            "patient": (BAD, 4000),
        },
    ),
    "an error before the deadline is bad at once": (
        [head(50, 500), end(60)],
        ("ttft", "e2e", "answered", "tpot"),
        {"ttft": (BAD, 60), "e2e": (BAD, 60), "answered": (BAD, 60)},
    ),
    "a rejection is bad at once": (
        [head(50, 503), end(60)],
        ("ttft", "e2e", "answered"),
        {"ttft": (BAD, 60), "e2e": (BAD, 60), "answered": (BAD, 60)},
    ),
    "a refused connection is bad at once": (
        [lost(5)],
        ("ttft", "e2e", "answered"),
        {"ttft": (BAD, 5), "e2e": (BAD, 5), "answered": (BAD, 5)},
    ),
    "our own limit is bad at once": (
        [timed_out(300)],
        ("ttft", "e2e", "answered"),
        {"ttft": (BAD, 300), "e2e": (BAD, 300), "answered": (BAD, 300)},
    ),
    "an error among the events: the first token stands, the rest is bad": (
        [head(1), sent(100, TOKEN), sent(150, TOKEN), sent(200, FAULT + DONE), end(201)],
        ("ttft", "e2e", "answered", "tpot"),
        {"ttft": (GOOD, 100), "e2e": (BAD, 201), "answered": (BAD, 201)},
    ),
    "a client that leaves early makes no events": ([left(400)], (), {}),
    "a client that leaves early after tokens makes those of its tokens": (
        [head(1), sent(100, TOKEN), sent(140, TOKEN), left(200)],
        (),
        {"ttft": (GOOD, 100), "ttft-loose": (GOOD, 100), "tpot": (GOOD, 200)},
    ),
    "a client that leaves after the deadline left a bad request": (
        [left(700)],
        ("ttft", "answered"),
        {"ttft": (BAD, 500)},
    ),
    "a client that leaves after patience too": ([left(4100)], ("patient",), {"patient": (BAD, 4000)}),
    "a ping is nothing received": (
        [head(1), sent(100, b": ping\n\n"), left(5000)],
        ("patient",),
        {"patient": (BAD, 4000)},
    ),
    "something received after patience comes too late": (
        [head(1), sent(4001, TOKEN + FINISH), end(4002)],
        ("patient", "answered"),
        {"patient": (BAD, 4000), "answered": (GOOD, 4002)},
    ),
    "a role is something received": ([head(1), sent(100, ROLE), left(5000)], ("patient",), {}),
    "an empty reply before the deadline is available, and no more": (
        [head(1), sent(100, FINISH + DONE), end(101)],
        (),
        {"answered": (GOOD, 101), "patient": (GOOD, 101)},
    ),
    "an empty reply after the deadline was bad already": (
        [head(1), sent(800, FINISH + DONE), end(801)],
        ("ttft", "answered"),
        {"ttft": (BAD, 500), "answered": (GOOD, 801)},
    ),
    "a client's error makes none": ([head(50, 400), end(60)], (), {}),
    "a quota makes none": ([head(50, 429), end(60)], (), {}),
    "a client's error after the deadline: what was counted stands": (
        [head(700, 400), end(701)],
        ("ttft", "answered"),
        {"ttft": (BAD, 500)},
    ),
    "slow tokens are bad at the end": (
        [head(1), sent(100, TOKEN), sent(200, TOKEN), sent(300, TOKEN + FINISH + DONE), end(301)],
        ("tpot",),
        {"tpot": (BAD, 301)},
    ),
    "a pace at the threshold is within": (
        [head(1), sent(100, TOKEN), sent(150, TOKEN), sent(200, TOKEN + FINISH), end(300)],
        ("tpot",),
        {"tpot": (GOOD, 300)},
    ),
    "too few tokens have no pace": (
        [head(1), sent(100, TOKEN), sent(200, TOKEN + FINISH), end(201)],
        ("tpot-long",),
        {},
    ),
    "one token has no pace": ([head(1), sent(100, TOKEN + FINISH), end(201)], ("tpot",), {}),
    "a stalled stream is bad at once": (
        [head(1), sent(100, TOKEN), sent(140, TOKEN), left(20_000)],
        ("tpot", "tpot-long"),
        {"tpot": (BAD, 3140)},
    ),
    "each token moves the stall": (
        [head(1), sent(100, TOKEN), sent(3000, TOKEN), sent(5900, TOKEN), left(20_000)],
        ("tpot",),
        {"tpot": (BAD, 8900)},
    ),
    "a stream that has finished does not stall": (
        [head(1), sent(100, TOKEN), sent(140, TOKEN + FINISH), end(20_000)],
        ("tpot",),
        {"tpot": (GOOD, 20_000)},
    ),
    "a stream that finishes after a stall was bad already": (
        [head(1), sent(100, TOKEN), sent(140, TOKEN), sent(9000, FINISH), end(9001)],
        ("tpot",),
        {"tpot": (BAD, 3140)},
    ),
    "silence before the first token is no stall": ([head(1), sent(9000, TOKEN + FINISH), end(9001)], ("tpot",), {}),
    "an answer finished in time and not closed is judged by its end": (
        [head(1), sent(100, TOKEN), sent(9000, FINISH + DONE), left(15_000)],
        ("e2e",),
        {"e2e": (GOOD, 15_000)},
    ),
    "an answer that streams past the deadline is bad then": (
        [head(1), sent(100, TOKEN), sent(11_000, FINISH + DONE), end(11_001)],
        ("e2e",),
        {"e2e": (BAD, 10_000)},
    ),
}  # fmt: skip

# A verdict of the timer is one nanosecond past the threshold: to the millisecond they are the same.


@pytest.mark.parametrize("sentence", REQUESTS)
def test_requests(sentence: str) -> None:
    steps, names, expected = REQUESTS[sentence]
    found = judged(steps, names)
    assert {name: (good, round(at_ms, 3)) for name, (good, at_ms) in found.items()} == expected


@pytest.mark.parametrize("sentence", REQUESTS)
def test_a_timer_that_never_rang_changes_no_verdict(sentence: str) -> None:
    steps, names, expected = REQUESTS[sentence]
    found = judged(steps, names, with_timer=False)
    assert {name: good for name, (good, _) in found.items()} == {name: good for name, (good, _) in expected.items()}
    for name in {"ttft", "ttft-loose"} & set(found):
        assert round(found[name][1], 3) == expected[name][1]


WHOLE: dict[str, tuple[list[Step], dict[str, bool]]] = {
    "an answer in one piece takes part in e2e and availability alone": (
        [head(3000, 200, "application/json"), sent(3000, ANSWER), end(3001)],
        {"e2e": GOOD, "answered": GOOD, "patient": GOOD},
    ),
    "it has no default patience": (
        [head(50_000, 200, "application/json"), sent(50_000, ANSWER), end(50_001)],
        {"e2e": BAD, "answered": GOOD, "patient": BAD},
    ),
    "its error is no first token missed": ([head(50, 500), end(60)], {"e2e": BAD, "answered": BAD, "patient": BAD}),
    "its client leaves late": ([left(20_000)], {"e2e": BAD, "patient": BAD}),
}


@pytest.mark.parametrize("sentence", WHOLE)
def test_requests_that_are_not_streamed(sentence: str) -> None:
    steps, expected = WHOLE[sentence]
    assert {name: good for name, (good, _) in judged(steps, stream=False).items()} == expected


def test_a_stream_that_the_server_answers_whole_has_no_first_token() -> None:
    steps = [head(100, 200, "application/json"), sent(200, ANSWER), end(201)]
    assert set(judged(steps)) == {"e2e", "answered", "patient"}


def test_no_objectives_no_verdicts() -> None:
    exchange = exchange_of()
    judge = Judge((), exchange)
    assert judge.next_deadline_ns() is None
    assert judge.passed(T0_NS + 10**12) == []
    exchange.client_left(T0_NS + 10**12)
    assert judge.ended(exchange.record()) == []
    assert judge.censored(exchange.record()) == ()


def judge_of(*names: str) -> tuple[Exchange, Judge]:
    exchange = exchange_of()
    return exchange, Judge(rules(OBJECTIVES[name] for name in names), exchange)


def test_overdue_is_past_a_deadline_without_a_value() -> None:
    exchange, judge = judge_of("ttft", "ttft-loose", "e2e", "answered")

    def overdue(at_ms: int) -> tuple[str, ...]:
        return judge.overdue(T0_NS + at_ms * MS)

    apply(exchange, head(1))
    assert overdue(500) == ()
    assert overdue(501) == ("ttft",)
    judge.passed(T0_NS + 501 * MS)
    assert overdue(501) == ("ttft",)
    assert overdue(10_001) == ("ttft", "e2e")
    apply(exchange, sent(10_050, TOKEN))
    assert overdue(10_060) == ("e2e",)
    apply(exchange, sent(10_100, FINISH))
    assert overdue(10_110) == ()
    apply(exchange, left(10_200))
    assert overdue(10_300) == ()


def test_a_hung_request_is_not_overdue_once_it_has_ended() -> None:
    exchange, judge = judge_of("ttft", "e2e")
    apply(exchange, left(700))
    assert judge.overdue(T0_NS + 800 * MS) == ()


CENSORED: dict[str, tuple[list[Step], tuple[tuple[str, float], ...]]] = {
    "a value is not censored": ([head(1), sent(900, TOKEN + FINISH), end(950)], ()),
    "ended before any deadline": ([left(400)], ()),
    "ended past the first deadline without a token": ([head(1), left(700)], (("ttft", 0.7),)),
    "ended past both": ([head(1), left(12_000)], (("ttft", 12.0), ("e2e", 12.0))),
    "a token, but no end": ([head(1), sent(100, TOKEN), left(12_000)], (("e2e", 12.0),)),
    "an error before a deadline waited for nothing": ([lost(300)], ()),
    "an error after it did": ([lost(800)], (("ttft", 0.8),)),
    "a client's error after it did": ([head(800, 400), end(801)], (("ttft", 0.801),)),
}


@pytest.mark.parametrize("sentence", CENSORED)
def test_censored(sentence: str) -> None:
    steps, expected = CENSORED[sentence]
    exchange, judge = judge_of("ttft", "ttft-loose", "e2e", "answered")
    for step in steps:
        apply(exchange, step)
    assert judge.censored(exchange.record()) == expected


def test_a_request_that_is_not_streamed_waits_for_no_first_token() -> None:
    exchange = exchange_of(stream=False)
    judge = Judge(rules(OBJECTIVES[name] for name in ("ttft", "e2e")), exchange)
    assert judge.overdue(T0_NS + 60_000 * MS) == ("e2e",)
    apply(exchange, left(60_000))
    assert judge.censored(exchange.record()) == (("e2e", 60.0),)


def test_only_requests_that_match_are_judged() -> None:
    text = SPEC.replace(
        "threshold: 2s}", "threshold: 2s, match: {model: big-*, class: interactive, prompt_bytes: '<1k'}}"
    )
    all_rules = rules(parse(text)[0].objectives)

    def names(**more: Any) -> set[str]:
        asked: dict[str, Any] = {"model": "big-1", "request_class": "interactive", "prompt_bytes": 10, **more}
        return {rule.objective.name for rule in matching(all_rules, **asked)}

    assert "ttft-loose" in names()
    assert "ttft-loose" not in names(model="small")
    assert "ttft-loose" not in names(request_class=None)
    assert "ttft-loose" not in names(prompt_bytes=1024)
    assert names(model="small") == {"ttft", "e2e", "tpot", "tpot-long", "answered", "patient"}


STEPS = st.lists(
    st.tuples(
        st.integers(1, 4000),
        st.sampled_from([ROLE, TOKEN, TOKEN, b": ping\n\n", FINISH, FAULT, DONE]),
    ),
    max_size=12,
)


@given(gaps=STEPS, ending=st.sampled_from([end, left, lost, timed_out]), status=st.sampled_from([200, 200, 500, 400]))
def test_the_timer_and_the_end_agree_on_any_stream(gaps: list[tuple[int, bytes]], ending: Any, status: int) -> None:
    at_ms = 1
    steps = [head(at_ms, status)]
    for gap_ms, data in gaps:
        at_ms += gap_ms
        steps.append(sent(at_ms, data))
    steps.append(ending(at_ms + 7))
    timer, without = judged(steps), judged(steps, with_timer=False)
    assert {n: good for n, (good, _) in timer.items()} == {n: good for n, (good, _) in without.items()}
    assert all(at <= at_ms + 7 for _, at in timer.values())


# Seconds of an instance with work.


def state(*names: str) -> StateSeconds:
    return StateSeconds(rules(OBJECTIVES[name] for name in names or OBJECTIVES))


def totals(*observed: dict[str, Any]) -> dict[str, tuple[int, int]]:
    seconds = state()
    counts: dict[str, tuple[int, int]] = {}
    for one in observed:
        for found in seconds.observe(
            one["s"], kv_occupancy=one.get("kv"), waiting=one.get("q"), in_flight=one.get("n", 1)
        ):
            good, bad = counts.get(found.objective.name, (0, 0))
            counts[found.objective.name] = (good + found.good, bad + found.bad)
    return counts


def test_each_second_is_judged_by_the_state_before_it() -> None:
    found = totals(
        {"s": 0.2, "kv": 0.5, "q": 0}, {"s": 1.2, "kv": 0.95, "q": 11}, {"s": 3.2, "kv": 0.9, "q": 10}, {"s": 4.9}
    )
    assert found == {"kv": (2, 2), "queue": (2, 2)}


def test_a_second_without_work_counts_for_nothing() -> None:
    assert totals({"s": 0, "kv": 0.5, "n": 0}, {"s": 5, "kv": 0.5}, {"s": 7}) == {"kv": (2, 0)}


def test_an_unknown_state_counts_for_nothing() -> None:
    found = totals({"s": 0, "kv": 0.5, "q": 1}, {"s": 2, "q": 1}, {"s": 5, "kv": 0.99, "q": 1}, {"s": 6})
    assert found == {"kv": (2, 1), "queue": (6, 0)}


def test_an_old_state_is_held_so_long_and_no_longer() -> None:
    assert totals({"s": 0, "kv": 0.5}, {"s": 4000}) == {"kv": (MAX_HELD_S, 0)}


@given(times=st.lists(st.floats(0, 30), min_size=1, max_size=60).map(sorted))
def test_the_interval_of_observation_changes_nothing(times: list[float]) -> None:
    """A state that stays the same counts every whole second once, however often it is looked at."""
    ends = [0.0, *times, 30.0]
    dense = [s for start, stop in pairwise(ends) for s in (start, (start + stop) / 2)] + [30.0]
    for seen in (dense, [0.0, 10.0, 20.0, 30.0]):
        assert totals(*({"s": s, "kv": 0.95} for s in seen)) == {"kv": (0, 30)}


def test_an_objective_of_another_model_is_left_out() -> None:
    text = SPEC.replace("threshold: 90%, target: 99%}", "threshold: 90%, target: 99%, match: {model: big*}}")
    seconds = StateSeconds(rules(parse(text)[0].objectives))

    def second(at_s: int, *models: str) -> list[Seconds]:
        seconds.serve(models)
        return seconds.observe(at_s, kv_occupancy=0.5, waiting=None, in_flight=1)

    second(0, "small")
    assert second(1, "small") == second(2, "small", "tiny") == []
    of_big = Seconds(parse(text)[0].objectives[-2], 1, 0)
    assert second(3, "big-7b") == second(4, "small", "big-7b") == second(5) == [of_big]


def test_time_that_stands_still_or_goes_back_counts_for_nothing() -> None:
    assert totals({"s": 5, "kv": 0.5}, {"s": 5.4, "kv": 0.5}, {"s": 3, "kv": 0.5}) == {}


def test_rules_are_frozen() -> None:
    rule = rules([OBJECTIVES["ttft"]])[0]
    assert rule == Rule(
        OBJECTIVES["ttft"],
        "ttft",
        limit_ns=500 * MS,
        waits_ns=(None, 500 * MS),
        takes_all=True,
        min_tokens=2,
        promise=Promise(500 * MS, 0.95),
    )
    assert [one.promise for one in rules([OBJECTIVES["e2e"], OBJECTIVES["answered"]])] == [None, None]


@pytest.mark.parametrize(
    ("stream", "steps"),
    [(True, []), (True, [head(1)]), (True, [head(1), sent(2, TOKEN)]), (False, []), (False, [head(1)])],
)
def test_what_is_at_stake_is_what_breaking_off_is_bad_for(stream: bool, steps: list[Step]) -> None:
    exchange = exchange_of(stream=stream)
    of_requests = [one for one in OBJECTIVES.values() if one.signal not in ("kv_occupancy", "queue")]
    judge = Judge(rules(of_requests), exchange)
    for step in steps:
        apply(exchange, step)
        judge.first_token()
    at_stake = {objective.name for objective in judge.at_stake()}
    assert at_stake
    apply(exchange, lost(3))
    assert at_stake == {objective.name for objective, good, _ in judge.ended(exchange.record()) if not good}
    assert judge.at_stake() == []
