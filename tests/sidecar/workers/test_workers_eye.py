"""The sum of several workers, by their reports alone."""

import asyncio
import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sidecar.configuration.plan import Plan, edges_s
from sidecar.counting.histogram import LogBuckets
from sidecar.counting.tally import Attributes, Increment, Number, Tally
from sidecar.otlp_settings import ExportSettings
from sidecar.serving.telemetry import emitter_of, eye_of
from sidecar.workers.worker_pipe import Report, State
from sidecar.workers.workers_eye import Heard, WorkersEye
from slo.objective import Spec
from slo.signals import (
    EXPORT_DROPPED,
    HEARTBEAT,
    IN_FLIGHT,
    LAST_TOKEN_AGE,
    OBJECTIVE,
    OBJECTIVE_HASH,
    OLDEST_AGE,
    OUTCOME,
    REQUEST_MODEL,
    REQUESTS,
    RESULT,
    SLO_EVENTS,
    TTFT,
    TTFT_PREDICTED,
    WORKER_DEATHS,
    WORKERS,
    Metric,
)
from tests.sidecar.rig import spec

JUDGED = spec(
    "{name: first, signal: ttft, percentile: 95, threshold: 300ms}",
    "{name: room, signal: kv_occupancy, threshold: 90%, target: 99%}",
)
SECOND_NS = 10**9


def workers_eye(judged: Spec | None = JUDGED, *, max_models: int = 100) -> WorkersEye:
    plan = Plan("chat", "1", "proxy", ExportSettings(None, None), spec=judged, max_models=max_models)
    loop = asyncio.new_event_loop()
    try:
        emitter = emitter_of(plan)
        made = WorkersEye(eye_of(plan, loop, emitter), emitter.count)
    finally:
        loop.close()
    made.load(judged)
    return made


def report(*counted: Number, **more: object) -> Report:
    empty = Report(Increment(tuple(counted)), (), (), (), (), 0, 0, 0, 0, False, 0)
    return replace(empty, **more)  # type: ignore[arg-type]


def asked(model: str, outcome: str = "ok", count: int = 1) -> Number:
    return Number(REQUESTS, ((REQUEST_MODEL, model), (OUTCOME, outcome)), count)


def requests(of: WorkersEye, model: str, outcome: str = "ok") -> int:
    return of.tally.total(REQUESTS, asked(model, outcome).attributes)


def event(judged: Spec, result: str, *, model: str = "m", count: int = 1) -> Number:
    objective = judged.objectives[0]
    named = ((OBJECTIVE, objective.name), (OBJECTIVE_HASH, objective.hash), (RESULT, result))
    return Number(SLO_EVENTS, ((REQUEST_MODEL, model), *named), count)


def gauge(of: WorkersEye, metric: Metric, model: str | None = None, now_ns: int = 0) -> float | None:
    named: Attributes = () if model is None else ((REQUEST_MODEL, model),)
    found = [n.value for n in of.gauges(now_ns) if n.metric.name == metric.name and n.attributes == named]
    return found[0] if found else None


def test_what_workers_told_adds_up_and_outlives_them() -> None:
    whole = workers_eye()
    whole.reported(1, report(asked("m"), models=("m",)))
    whole.reported(2, report(asked("m", count=2)))
    assert requests(whole, "m") == 3
    assert whole.lost(1, unasked=True) == 0
    assert requests(whole, "m") == 3
    whole.reported(1, report(asked("m")))
    assert requests(whole, "m") == 4
    assert whole.tally.total(WORKER_DEATHS, ()) == 1
    assert whole.lost(2, unasked=False) == whole.lost(7, unasked=True) == 0
    assert whole.tally.total(WORKER_DEATHS, ()) == 2


def test_what_was_in_flight_in_a_dead_worker_is_counted_once_as_it_had_said() -> None:
    whole = workers_eye()
    broken = (asked("m", "error", 3), event(JUDGED, "bad", count=2))
    whole.reported(1, report(asked("m"), models=("m",), in_flight=3, at_stake=broken))
    assert requests(whole, "m", "error") == 0
    assert whole.in_flight == 3
    assert whole.lost(1, unasked=True) == 3
    assert whole.lost(1, unasked=True) == 0
    assert requests(whole, "m", "error") == 3
    assert whole.tally.total(SLO_EVENTS, event(JUDGED, "bad").attributes) == 2
    assert whole.in_flight == 0


def test_what_has_ended_by_the_next_report_is_at_stake_no_more() -> None:
    whole = workers_eye()
    whole.reported(1, report(models=("m",), in_flight=1, at_stake=(asked("m", "error"),)))
    whole.reported(1, report(asked("m")))
    assert whole.lost(1, unasked=True) == 0
    assert requests(whole, "m", "error") == 0


def test_labels_keep_their_bound_over_all_workers_together() -> None:
    whole = workers_eye(max_models=2)
    whole.reported(1, report(asked("a"), models=("a", "b")))
    whole.reported(
        2,
        report(
            asked("c"), asked("d", count=2), models=("c", "d"), gauges=(Number(IN_FLIGHT, ((REQUEST_MODEL, "c"),), 1),)
        ),
    )
    assert whole.labels.known == ("a", "b")
    assert (requests(whole, "a"), requests(whole, "c"), requests(whole, "other")) == (1, 0, 3)
    assert gauge(whole, IN_FLIGHT, "other") == 1
    assert whole.state().models == ("a", "b")


def test_events_of_an_objective_that_is_judged_by_no_more_are_left_out() -> None:
    new = spec("{name: first, signal: ttft, percentile: 95, threshold: 400ms}")
    whole = workers_eye()
    whole.reported(1, report(event(JUDGED, "bad"), models=("m",)))
    whole.load(new)
    whole.reported(1, report(event(JUDGED, "bad"), event(new, "good"), at_stake=(event(JUDGED, "bad"),)))
    whole.lost(1, unasked=True)
    assert whole.tally.total(SLO_EVENTS, event(JUDGED, "bad").attributes) == 0
    assert whole.tally.total(SLO_EVENTS, event(new, "good").attributes) == 1
    assert not any(n.attributes == event(JUDGED, "bad").attributes for n in whole.tally.totals())


def test_gauges_add_up_and_what_was_shown_once_stays_at_zero() -> None:
    whole = workers_eye()

    def standing(model: str, count: int) -> Report:
        return report(in_flight=count, gauges=(Number(IN_FLIGHT, ((REQUEST_MODEL, model),), count),))

    whole.reported(1, standing("other", 2))
    whole.reported(2, standing("other", 3))
    assert (gauge(whole, IN_FLIGHT, "other"), gauge(whole, WORKERS)) == (5, 2)
    whole.reported(2, standing("other", 1))
    assert gauge(whole, IN_FLIGHT, "other") == 3
    whole.lost(1, unasked=True)
    whole.lost(2, unasked=True)
    assert (gauge(whole, IN_FLIGHT, "other"), gauge(whole, WORKERS)) == (0, 0)


def test_the_oldest_request_is_that_of_any_worker() -> None:
    whole = workers_eye()
    for worker, seconds in ((1, 2.5), (2, 4.0)):
        whole.reported(worker, report(in_flight=1, gauges=(Number(OLDEST_AGE, ((REQUEST_MODEL, "other"),), seconds),)))
    assert gauge(whole, OLDEST_AGE, "other") == 4.0
    whole.lost(2, unasked=True)
    assert gauge(whole, OLDEST_AGE, "other") == 2.5
    whole.reported(1, report())
    assert gauge(whole, OLDEST_AGE, "other") == 0


def test_the_predicted_first_token_is_that_of_the_worker_who_waits_longest_and_is_told_only_while_one_knows() -> None:
    whole = workers_eye()
    for worker, seconds in ((1, 2.5), (2, 4.0)):
        whole.reported(worker, report(gauges=(Number(TTFT_PREDICTED, (), seconds),)))
    assert gauge(whole, TTFT_PREDICTED) == 4.0
    for worker in (1, 2):
        whole.reported(worker, report())
    assert gauge(whole, TTFT_PREDICTED) is None


def test_the_age_of_the_last_token_is_that_of_all_workers_together() -> None:
    whole = workers_eye()
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) is None
    own = Number(LAST_TOKEN_AGE, (), 99.0)  # a worker's own says nothing of the others
    whole.reported(1, report(in_flight=1, busy_since_ns=2 * SECOND_NS, gauges=(own,)))
    whole.reported(2, report(in_flight=1, busy_since_ns=1 * SECOND_NS))
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) == 8
    whole.reported(1, report(in_flight=1, busy_since_ns=2 * SECOND_NS, last_token_ns=5 * SECOND_NS))
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) == 4
    whole.lost(1, unasked=True)  # its last token was a sign of life all the same
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) == 4
    whole.reported(2, report(in_flight=1, busy_since_ns=8 * SECOND_NS))
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) == 4  # one after the other, there was always one
    whole.reported(2, report())
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=9 * SECOND_NS) is None
    whole.reported(2, report(in_flight=1, busy_since_ns=10 * SECOND_NS))
    assert gauge(whole, LAST_TOKEN_AGE, now_ns=11 * SECOND_NS) == 1


def test_seconds_of_the_engines_state_and_heartbeats_are_counted_once() -> None:
    whole = workers_eye()
    for worker in (1, 2):
        whole.reported(worker, report(in_flight=1))
    for second in range(4):
        whole.second(second * SECOND_NS, kv_occupancy=0.95, waiting=None, heartbeats=1)
    events = {
        dict(n.attributes)[RESULT]: n.value for n in whole.tally.totals() if dict(n.attributes).get(OBJECTIVE) == "room"
    }
    assert events == {"good": 0, "bad": 3}
    assert whole.tally.total(HEARTBEAT, ()) == 4
    assert whole.state().kv_occupancy == 0.95


def test_seconds_in_which_most_requests_of_all_workers_are_synthetic_judge_nothing() -> None:
    whole = workers_eye()
    whole.reported(1, report(in_flight=1))
    whole.reported(2, report(in_flight=2, synthetic_in_flight=2))
    for second in range(4):
        whole.second(second * SECOND_NS, kv_occupancy=0.95, waiting=None, heartbeats=1)
    assert {n.value for n in whole.tally.totals() if dict(n.attributes).get(OBJECTIVE) == "room"} <= {0}


def test_workers_are_told_what_the_poller_heard() -> None:
    whole = workers_eye()
    assert whole.state() == State(None, False, None, 0, (), ())
    whole.usage.engine_is("tgi")
    whole.usage.server_gone()
    whole.overload_429 = True
    whole.introduce(whole.labels.serve(["m"]))
    assert whole.state() == State(None, True, "tgi", 1, ("m",), ("m",))
    assert isinstance(whole.usage, Heard)


def test_what_a_worker_gave_up_of_its_spans_is_counted() -> None:
    given_up: list[tuple[object, ...]] = []
    whole = workers_eye()
    whole = WorkersEye(whole._eye, lambda *item: given_up.append(item))
    whole.reported(1, report(exports=((EXPORT_DROPPED, "traces", "queue_full", 3),)))
    assert given_up == [(EXPORT_DROPPED, "traces", "queue_full", 3)]


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 200)), max_size=60), st.randoms(use_true_random=False))
def test_however_latencies_are_shared_out_and_reported_the_sum_is_that_of_one(
    values: list[tuple[int, float]], chance: random.Random
) -> None:
    named: Attributes = ((REQUEST_MODEL, "m"),)
    alone = Tally(lambda metric: edges_s(JUDGED, metric))
    shares = [Tally(lambda metric: edges_s(JUDGED, metric)) for _ in range(3)]
    whole = workers_eye()
    for worker, seconds in values:
        alone.record(TTFT, named, seconds)
        shares[worker].record(TTFT, named, seconds)
        if chance.random() < 0.3:
            whole.reported(worker, report(models=("m",), increment=shares[worker].increment()))
    for worker, share in enumerate(shares):
        whole.reported(worker, report(models=("m",), increment=share.increment()))
    assert page_of(whole.tally) == page_of(alone)
    assert buckets(whole.tally) == buckets(alone)


def page_of(tally: Tally) -> list[tuple[float, int]]:
    found = [classic.cumulative() for metric, _, classic in tally.classics() if metric is TTFT]
    return found[0] if found and found[0][-1][1] else []


def buckets(tally: Tally) -> list[tuple[object, ...]]:
    _, distributions = tally.take(delta=True)
    return [
        (b.scale, b.count, b.min, b.max, b.zero_count, b.offset, b.counts, round(b.sum, 6))
        for b in (one.buckets for one in distributions)
        if isinstance(b, LogBuckets)
    ]
