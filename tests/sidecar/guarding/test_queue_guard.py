from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guarding.queue_guard import MAX_DOUBLINGS, Promise, Queued, QueueGuard, Shedding, Verdict, loosest
from sidecar.limits import GUARD_MARGIN, GUARD_RETRY_S
from tests.sidecar.guarding.queues import (
    Met,
    Server,
    by_size,
    chancy,
    high,
    overloaded,
    poisson,
    run,
    steady,
    waits,
)

S = 1_000_000_000
WITHIN_1_S = Promise(S, 0.95)
SIZES = Server(by_size(0.02, 1e-5), size=lambda chance: int(chance.lognormvariate(8.5, 1)))
SIZES_RATE = 1 / (0.02 + 1e-5 * 8100)
SERVERS = {
    "one at a time, each as long": (Server(steady(0.1)), 10.0),
    "one at a time, chancy": (Server(chancy(0.1)), 10.0),
    "by their sizes": (SIZES, SIZES_RATE),
    "eight at a time": (Server(steady(0.4), slots=8), 20.0),
    "late by a third of what is allowed": (Server(steady(0.1), later_s=0.3), 10.0),
}
every_server = pytest.mark.parametrize("name", SERVERS)


def share(met: Sequence[Met], verdict: Verdict) -> float:
    return Counter(one.queued.verdict for one in met)[verdict] / len(met)


def warm(mode: Shedding, server: Server | None = None, *, rate: float = 8.0, seconds: float = 60.0) -> QueueGuard:
    """A guard that has seen a server, by itself one that takes 0.1 s each, under a load that it bears; then nothing."""
    guard = QueueGuard(mode)
    run(guard, server or Server(steady(0.1)), poisson(rate, seconds, Random(4)), promise=WITHIN_1_S)
    return guard


def ask(guard: QueueGuard, at_s: float, promise: Promise | None = WITHIN_1_S, *, streams: bool = True) -> Queued:
    return guard.join(Queued(1000, round(at_s * S), promise, streams=streams))


# What is predicted.


def test_of_a_server_whose_queue_can_be_known_every_prediction_is_exact() -> None:
    met = overloaded(Server(steady(0.1)), "shadow", rate=9.5, seconds=200, promise=WITHIN_1_S)
    told = [one for one in met if one.queued.predicted_s is not None and one.queued.ahead]
    assert len(told) > 500
    for one in told:
        assert one.waited_s == pytest.approx(one.queued.predicted_s, rel=0.02)


def test_of_work_that_its_size_decides_predictions_are_close() -> None:
    met = overloaded(SIZES, "shadow", rate=0.95 * SIZES_RATE, seconds=200, promise=WITHIN_1_S)
    ratios = sorted(
        one.waited_s / one.queued.predicted_s
        for one in met
        if one.waited_s is not None and one.queued.predicted_s and one.queued.ahead
    )
    assert 0.75 < high(ratios, 0.05) < high(ratios, 0.95) < 1.25
    assert high(ratios, 0.5) == pytest.approx(1, abs=0.05)


@every_server
def test_in_shadow_nobody_is_refused_and_of_those_said_to_be_late_nearly_all_are(name: str) -> None:
    server, rate = SERVERS[name]
    met = overloaded(server, "shadow", rate=2 * rate, seconds=60, promise=WITHIN_1_S)
    assert all(one.waited_s is not None for one in met)
    said = [one.fate for one in met if one.fate is not None and one.fate.verdict == "would_shed"]
    assert len(said) > 0.9 * len(met)
    assert sum(not fate.good for fate in said) > 0.95 * len(said)


# What is refused.


@every_server
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_an_overload_the_admitted_keep_the_objective_and_the_server_is_used(name: str, seed: int) -> None:
    server, rate = SERVERS[name]
    met = overloaded(server, "on", rate=2 * rate, seconds=80, promise=WITHIN_1_S, seed=seed)
    admitted = waits(met)
    assert high(admitted) <= 1.0
    assert len(admitted) >= 0.85 * 40 * rate, "of what the server can do in that time"


@every_server
def test_under_a_load_that_is_borne_few_are_refused(name: str) -> None:
    server, rate = SERVERS[name]
    free = waits(overloaded(server, "shadow", rate=0.5 * rate, seconds=120, promise=WITHIN_1_S))
    met = overloaded(server, "on", rate=0.5 * rate, seconds=120, promise=WITHIN_1_S)
    assert share(met, "shed") < 0.03 + sum(wait > 1 for wait in free) / len(free)


def test_a_server_that_gets_ten_times_slower_is_followed_both_ways() -> None:
    server = Server(lambda _chance, _size, at_s: 0.4 if 60 <= at_s < 300 else 0.04)
    times = poisson(18, 420, Random(2))
    met = run(QueueGuard("on"), server, times, promise=Promise(2 * S, 0.95))
    slow = [one for one in met if 120 <= one.at_s < 300]
    assert high(waits(slow)) < 4.0, "unguarded they would wait for minutes"
    assert len(waits(slow)) > 0.7 * 180 / 0.4
    after = [one for one in met if one.at_s > 360]
    assert share(after, "shed") < 0.05
    assert high(waits(after)) < 1.0


def test_a_restart_leaves_nobody_refused_once_it_is_over() -> None:
    guard = warm("on")
    for number in range(50):  # refused connections, and streams that broke off
        queued = ask(guard, 100 + number / 10)
        guard.leave(queued, queued.at_ns + S // 100)
    met = run(guard, Server(steady(0.1)), [120 + at_s for at_s in poisson(5, 60, Random(9))], promise=WITHIN_1_S)
    assert share(met, "shed") < 0.02


# Who never is.


def test_nobody_is_refused_before_enough_was_seen() -> None:
    guard = QueueGuard("on")
    assert {ask(guard, number / 100).verdict for number in range(200)} == {"in_time", "few"}


def test_a_burst_deeper_than_any_seen_is_let_through_while_none_of_it_is_late() -> None:
    guard = warm("on", rate=4)
    verdicts = [ask(guard, 100 + number / 1000).verdict for number in range(200)]
    assert "shed" not in verdicts
    assert verdicts[-1] == "few"
    later = [ask(guard, at_s).verdict for at_s in (101.5, 101.6)]
    assert later == ["probe", "shed"], "the first of it waits too long by now, and nothing has come"


def test_whoever_is_promised_nothing_is_let_through_and_makes_others_wait() -> None:
    guard = warm("on", rate=9.5)
    for number in range(12):
        assert ask(guard, 100 + number / 1000, None).waits
    assert ask(guard, 100.02).verdict != "in_time"


def test_nobody_is_refused_whom_nothing_is_before() -> None:
    guard = warm("on", Server(steady(2.0)), rate=0.1, seconds=600)
    assert ask(guard, 1000).waits, "whatever an idle server takes"


def test_a_request_that_is_on_its_way_is_not_called_refused() -> None:
    guard = warm("on", rate=9.5)
    verdicts = [
        guard.join(Queued(1000, 100 * S + number, WITHIN_1_S), may_refuse=False).verdict for number in range(14)
    ]
    assert "shed" not in verdicts
    assert verdicts[-1] == "probe"


def test_predictions_that_were_too_long_refuse_nobody() -> None:
    guard = warm("on", rate=9.5)
    # From now on four are served at a time, at depths that were seen: each prediction is four times too long at first.
    verdicts = Counter(
        one.queued.verdict
        for one in run(guard, Server(steady(0.1), slots=4), [100 + k * 0.02 for k in range(300)], promise=WITHIN_1_S)
    )
    assert verdicts["shed"] < 60


# What does not move.


def test_a_hung_server_gets_probes_ever_further_apart_and_is_noticed_when_it_is_back() -> None:
    guard = warm("on", rate=9.5)
    stuck = [ask(guard, 100 + number / 10) for number in range(600)]
    assert {one.verdict for one in stuck[20:]} == {"shed", "probe"}
    probes_s = [one.at_ns / S for one in stuck if one.verdict == "probe"]
    assert 4 <= len(probes_s) <= 6
    gaps_s = [later_s - sooner_s for sooner_s, later_s in pairwise(probes_s)]
    assert all(later_s > 1.5 * sooner_s for sooner_s, later_s in pairwise(gaps_s))
    for place, one in enumerate(one for one in stuck if one.waits):
        guard.first_token(one, round((160 + place / 10) * S))
    met = run(guard, Server(steady(0.1)), [200 + at_s for at_s in poisson(5, 30, Random(5))], promise=WITHIN_1_S)
    assert share(met, "shed") < 0.05


def test_a_server_that_only_the_refused_could_show_to_be_fast_again_is_found_out() -> None:
    guard = QueueGuard("on")
    server = Server(lambda _chance, _size, at_s: 1.0 if at_s < 100 else 0.05)
    met = run(guard, server, poisson(3, 300, Random(7)), promise=Promise(S, 0.95))
    assert share([one for one in met if 80 < one.at_s < 100], "shed") > 0.4
    assert share([one for one in met if one.at_s > 200], "shed") < 0.05


def test_probes_are_no_further_apart_than_a_limit() -> None:
    guard = warm("on", rate=9.5)
    probes = [one for one in (ask(guard, 100 + number) for number in range(1000)) if one.verdict == "probe"]
    gaps_s = [(later.at_ns - sooner.at_ns) / S for sooner, later in pairwise(probes)]
    assert max(gaps_s) <= 2**MAX_DOUBLINGS + 2


# The way of one request.


def test_of_many_at_once_only_those_go_on_unasked_that_would_still_be_in_time() -> None:
    guard = warm("on")
    ask(guard, 100.0)
    unasked = 0
    while not guard.asks():
        unasked += 1
    assert (unasked + 1) * 0.1 * GUARD_MARGIN <= 0.9 < (unasked + 3) * 0.1 * GUARD_MARGIN
    unknown = QueueGuard("on")
    ask(unknown, 1.0)
    assert not any(unknown.asks() for _ in range(1000)), "nobody is refused by a guard that has seen nothing"


def test_in_shadow_nobody_is_asked() -> None:
    guard = warm("shadow")
    for number in range(100):
        ask(guard, 100 + number / 1000)
        assert not guard.asks()


def test_of_two_promises_the_tighter_one_says_who_is_asked() -> None:
    guard = warm("on")
    ask(guard, 100.0)
    ask(guard, 100.0, Promise(100 * S, 0.95))
    assert [guard.asks(), guard.asks()].count(True) >= 1


@pytest.mark.parametrize("mode", ["on", "shadow"])
def test_a_stream_that_hangs_by_itself_makes_nobody_late(mode: Shedding) -> None:
    server, guard = Server(steady(0.4), slots=8), QueueGuard(mode)
    met: list[Met] = []
    for begun_s in range(0, 200, 20):
        stuck = ask(guard, begun_s)
        times = [begun_s + at_s for at_s in poisson(8, 19.9, Random(begun_s))]
        met += run(guard, server, times, promise=WITHIN_1_S, seed=begun_s)
        guard.first_token(stuck, (begun_s + 20) * S)
    assert all(one.waited_s is not None and one.waited_s < 1 for one in met)
    assert {one.queued.verdict for one in met} <= {"in_time", "few"}
    assert share(met, "few") < 0.05


def test_answers_that_do_not_stream_leave_the_queue_with_a_later_stream() -> None:
    guard = QueueGuard("shadow")
    whole = [ask(guard, at_s, None, streams=False) for at_s in (1.0, 2.0, 4.0)]
    guard.first_token(ask(guard, 3.0), 5 * S)
    assert [one.is_overtaken for one in whole] == [True, True, False]
    guard.leave(whole[2], 6 * S)
    assert ask(guard, 7.0).ahead == 0


def test_a_fate_is_told_once_and_only_of_who_was_promised_something() -> None:
    guard = QueueGuard("shadow")
    early, late, gone, left, nothing = (ask(guard, 1.0, promise) for promise in (WITHIN_1_S,) * 4 + (None,))
    assert guard.first_token(early, round(1.5 * S)) == ("in_time", True, None)
    assert guard.first_token(late, 3 * S) == ("few", False, None)
    assert guard.leave(gone, 3 * S) == ("few", False, None)
    assert guard.leave(left, round(1.5 * S)) is None, "nobody knows what would have become of it"
    assert guard.first_token(nothing, 3 * S) is None
    assert guard.first_token(early, 4 * S) is None
    assert guard.leave(early, 4 * S) is None


def test_the_error_of_a_prediction_is_told_of_those_that_queued() -> None:
    guard = warm("shadow", rate=9.5)
    queued = [ask(guard, 100 + number / 1000) for number in range(8)]
    predicted_s = queued[-1].predicted_s
    assert predicted_s is not None
    assert predicted_s == pytest.approx(0.8, abs=0.05)
    fate = guard.first_token(queued[-1], queued[-1].at_ns + S)
    assert fate is not None
    assert fate.error_s == pytest.approx(1 - predicted_s)


def test_the_outlook_is_that_of_a_usual_request() -> None:
    assert QueueGuard("shadow").outlook_s(S) is None
    guard = warm("shadow", rate=9.5)
    assert guard.outlook_s(100 * S) == pytest.approx(0.1)
    for number in range(5):
        ask(guard, 100 + number / 1000)
    assert guard.outlook_s(round(100.005 * S)) == pytest.approx(0.6, abs=0.02)


def test_the_loosest_promise_is_the_last_to_be_broken() -> None:
    tight, loose = Promise(S, 0.99), Promise(2 * S, 0.5)
    assert loosest([tight, None, loose, tight]) == loose
    assert loosest([None]) is None


def test_who_is_refused_may_come_again_when_the_queue_has_drained() -> None:
    guard = warm("on", rate=20)
    refused = next(one for one in (ask(guard, 100 + number / 1000) for number in range(100)) if not one.waits)
    assert refused.retry_s == 2, "ten times 0.1 s, and itself"


@st.composite
def storms(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    steps = st.tuples(
        st.integers(0, 2 * S), st.integers(0, 20), st.sampled_from(["ask", "whole", "synthetic", "token", "end"])
    )
    return draw(st.lists(steps, max_size=80))


@given(storms(), st.sampled_from(["shadow", "on"]))
def test_whatever_happens_the_queue_is_what_has_not_left_it(storm: list[tuple[int, int, str]], mode: Shedding) -> None:
    guard, at_ns = QueueGuard(mode), S
    alive: list[Queued] = []
    for later_ns, place, what in storm:
        at_ns += later_ns
        if what in ("ask", "whole", "synthetic"):
            promise = WITHIN_1_S if what == "ask" else None
            queued = guard.join(Queued(place, at_ns, promise, streams=what != "whole"))
            assert queued.ahead == sum(one.waits and not one.is_overtaken for one in alive)
            assert 0 <= (queued.predicted_s or 0) < float("inf")
            assert queued.promise is None or 1 <= queued.retry_s <= GUARD_RETRY_S
            alive.append(queued)
        elif alive:
            queued = alive.pop(place % len(alive))
            fate = (
                guard.first_token(queued, at_ns) if what == "token" and queued.streams else guard.leave(queued, at_ns)
            )
            assert fate is None or fate.verdict in guard.verdicts
        assert 0 <= (guard.outlook_s(at_ns) or 0) < float("inf")
    for queued in alive:
        guard.leave(queued, at_ns)
    assert ask(guard, at_ns / S + 1).ahead == 0


@given(st.sampled_from([8, 64, 1024]))
def test_any_unit_of_time_gives_the_same_verdicts(unit: int) -> None:
    def verdicts(per_second: int) -> list[str]:
        chance, guard = Random(6), QueueGuard("on")
        promise = Promise(S // per_second, 0.95)
        server = Server(lambda chance, _size, _at_s: chance.expovariate(10) / per_second)
        times = [at_s / per_second for at_s in poisson(20, 20, chance)]
        return [one.queued.verdict for one in run(guard, server, times, promise=promise)]

    assert Counter(verdicts(unit)) == pytest.approx(Counter(verdicts(1)), abs=8)
