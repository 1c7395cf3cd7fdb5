"""What rows of a stretch of time say: over all instances, over one, and nothing where nobody told."""

from collector.judging.evidence import Evidence, Latency, Level, Seen, Total, evidence
from slo.signals import (
    E2E,
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    GPU_LOST,
    GPU_THROTTLE,
    IN_FLIGHT,
    KV_OCCUPANCY,
    LAST_TOKEN_AGE,
    OLDEST_AGE,
    REQUESTS,
    TOKENS,
    TPOT,
    WAITING_FIRST_TOKEN,
    Metric,
)


def level(
    metric: Metric, mean: float, *, instance: str = "a", model: str = "m", samples: int = 10, rise: float = 0.0
) -> Level:
    return Level(instance, model, metric.sql, "", mean, 2 * mean, samples, last_s=100, first=mean, last=mean + rise)


def requests(outcome: str, count: float, *, instance: str = "a") -> Total:
    return Total(instance, REQUESTS.sql, (("class", ""), ("outcome", outcome)), count)


def tokens(kind: str, count: float) -> Total:
    return Total("a", TOKENS.sql, (("type", kind),), count)


def test_nothing_known_is_nothing_and_never_nought() -> None:
    assert evidence(Seen(60)) == Evidence()
    assert Seen(60).instances() == ()


def test_requests_are_those_that_ended_and_those_that_are_more_in_flight() -> None:
    seen = Seen(60, (requests("ok", 50), requests("error", 10)), (level(IN_FLIGHT, 5, rise=30.0),))
    found = evidence(seen)
    assert (found.came, found.arrivals) == (90, 1.5)
    assert evidence(Seen(60, seen.totals, (level(IN_FLIGHT, 5, rise=-90.0),))).came == 0


def test_shares_are_of_what_the_server_answered_for() -> None:
    counted = (("ok", 60), ("error", 20), ("timeout", 10), ("rejected", 10), ("client_error", 500), ("quota", 500))
    found = evidence(Seen(60, tuple(requests(outcome, count) for outcome, count in counted)))
    assert (found.failed, found.refused) == (0.3, 0.1)
    assert evidence(Seen(60, (requests("client_error", 500),))).failed is None


def test_tokens_are_of_a_request() -> None:
    seen = Seen(60, (requests("ok", 10), tokens("input", 3000), tokens("output", 400)))
    assert (evidence(seen).in_tokens, evidence(seen).out_tokens) == (300, 40)


def test_an_engine_is_one_whatever_its_models_and_two_instances_are_two() -> None:
    levels = (
        level(ENGINE_RUNNING, 4, model="m"),
        level(ENGINE_RUNNING, 4, model="n"),
        level(ENGINE_RUNNING, 8, instance="b"),
        level(WAITING_FIRST_TOKEN, 1, model="m"),
        level(WAITING_FIRST_TOKEN, 2, model="n"),
        level(OLDEST_AGE, 3, model="m"),
        level(OLDEST_AGE, 8, model="n"),
        level(KV_OCCUPANCY, 0.3),
        level(LAST_TOKEN_AGE, 1),
        level(LAST_TOKEN_AGE, 20, instance="b"),
    )
    found = evidence(Seen(60, (), levels))
    assert (found.running, found.unstarted, found.kv_occupancy) == (6, 3, 0.3)
    assert found.oldest_s == 16
    assert (found.token_age_s, found.longest_gap_s, found.token_gap_s) == (20, 40, 10.5)
    assert Seen(60, (), levels).instances() == ("a", "b")
    alone = evidence(Seen(60, (), levels), ("b",))
    assert (alone.running, alone.unstarted, alone.token_age_s) == (8, None, 20)


def test_a_latency_is_that_of_who_watches_the_requests_else_the_engines() -> None:
    latencies = (Latency("a", TPOT.sql, "proxy", 10, 0.4), Latency("a", TPOT.sql, "engine", 10, 0.2))
    found = evidence(Seen(60, latencies=(*latencies, Latency("a", E2E.sql, "engine", 4, 8.0))))
    assert (found.tpot_s, found.engine_tpot_s) == (0.04, 0.02)
    assert (found.answers, found.engine_answers) == (10, 10)
    assert (found.e2e_s, found.ttft_s) == (2.0, None)


def test_an_engine_is_heard_of_as_often_as_its_watcher_tells_of_it() -> None:
    silent = Level("b", "", ENGINE_RUNNING.sql, "", 1, 1, 4, last_s=40)
    watched = (level(IN_FLIGHT, 1), level(ENGINE_RUNNING, 1), level(IN_FLIGHT, 1, instance="b"), silent)
    found = evidence(Seen(60, (), watched))
    assert (found.heard, found.unheard_s) == (0.4, 60)
    assert (evidence(Seen(60, (), watched), ("a",)).heard, evidence(Seen(60, (), watched), ("a",)).unheard_s) == (1, 0)
    assert evidence(Seen(60, (), (level(IN_FLIGHT, 1),))).unheard_s is None


def test_a_gpu_that_is_held_back_counts_by_its_reason() -> None:
    def held(reason: str, seconds: float) -> Total:
        return Total("a", GPU_THROTTLE.sql, (("hw_id", "g"), ("reason", reason)), seconds)

    assert evidence(Seen(60, (held("hw_thermal", 30), held("sw_power_cap", 60)))).throttled == 0.5
    assert evidence(Seen(60, (held("sw_power_cap", 60),))).throttled == 0
    assert evidence(Seen(60, (), (level(GPU_LOST, 0.5), level(GPU_LOST, 0.5, instance="b")))).gpu_lost == 2


def test_rates_are_per_second() -> None:
    assert evidence(Seen(60, (Total("a", ENGINE_PREEMPTIONS.sql, (), 30),))).preemptions == 0.5
