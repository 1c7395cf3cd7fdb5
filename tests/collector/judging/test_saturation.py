"""KV pressure and growing queues: found at an instance, told of the service."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from collector.judging import saturation
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.deltas import CounterRow, Deltas, GaugeRow
from collector.windowing.windows import Windows
from slo import signals
from slo.signals import LABELS, SYNTHETIC_CLASS, Metric
from slo.trouble import KV_PRESSURE, QUEUE_GROWING, QUEUE_WINDOW_S, SYNTHETIC_LOOK_S
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S

QUEUE = AlertKey(QUEUE_GROWING, "", "chat")
PAST = range(NOW_S - QUEUE_WINDOW_S - 600, NOW_S, TICK_S)
By = Callable[[int], float]
"""A value by the time."""


def gauges(metric: Metric, value: By, *, instance: str = "i1", attribute: str = "", model: str = "m") -> list[GaugeRow]:
    return [
        scene.gauge(metric.sql, value(at_s), at_s=at_s, attribute=attribute, model=model, instance=instance)
        for at_s in PAST
    ]


def counts(metric: Metric, value: By, *, instance: str = "i1", of_class: str = "") -> list[CounterRow]:
    said = ((LABELS[signals.CLASS], of_class),) if of_class else ()
    return [CounterRow("", "chat", "m", instance, "proxy", metric.sql, said, at_s, value(at_s)) for at_s in PAST]


def told(
    *rows: Iterable[GaugeRow | CounterRow], text: str = scene.TTFT, alerts: Mapping[AlertKey, Alert] | None = None
) -> list[Wanted]:
    return list(saturation.wanted(windows(*rows, text=text), alerts=alerts or {}, now_s=NOW_S))


def windows(*rows: Iterable[GaugeRow | CounterRow], text: str = scene.TTFT) -> Windows:
    one, flat = scene.windows(text), [row for some in rows for row in some]
    one.add(
        Deltas(
            gauges=tuple(row for row in flat if isinstance(row, GaugeRow)),
            counters=tuple(row for row in flat if isinstance(row, CounterRow)),
        )
    )
    return one


def states(found: Iterable[Wanted]) -> set[tuple[str, str]]:
    return {(one.key.name, one.state) for one in found}


def once(count: float, *, ago_s: int = SYNTHETIC_LOOK_S + TICK_S) -> By:
    """So many in one step, none before or after; by default as long ago as a ticket on saturation waits."""
    return lambda at_s: count if at_s == NOW_S - ago_s else 0


class TestKvPressure:
    @pytest.mark.parametrize(
        ("occupancy", "preempted", "rings"), [(0.95, 3, True), (0.95, 2, False), (0.9, 9, False), (1.0, 0, False)]
    )
    def test_it_takes_a_full_cache_and_preemptions(self, occupancy: float, preempted: float, rings: bool) -> None:
        found = told(
            gauges(signals.KV_OCCUPANCY, lambda _: occupancy), counts(signals.ENGINE_PREEMPTIONS, once(preempted))
        )
        assert states(found) == ({(KV_PRESSURE, "firing")} if rings else set())

    def test_one_that_began_lately_is_pending(self) -> None:
        lately = counts(signals.ENGINE_PREEMPTIONS, once(3, ago_s=TICK_S))
        assert states(told(gauges(signals.KV_OCCUPANCY, lambda _: 0.95), lately)) == {(KV_PRESSURE, "pending")}

    def test_where_nobody_says_how_full_it_is_nothing_is_known(self) -> None:
        assert told(counts(signals.ENGINE_PREEMPTIONS, once(9))) == []

    def test_at_one_instance(self) -> None:
        found = told(
            gauges(signals.KV_OCCUPANCY, lambda _: 0.95), counts(signals.ENGINE_PREEMPTIONS, once(9), instance="i2")
        )
        assert found == []

    def test_the_fullest_rank_counts(self) -> None:
        ranks = [
            gauges(signals.KV_OCCUPANCY, lambda _, full=full: full, attribute=rank)  # type: ignore[misc]
            for rank, full in (("0", 0.2), ("1", 0.97))
        ]
        (one,) = told(*ranks, counts(signals.ENGINE_PREEMPTIONS, once(4)))
        assert "i1 (97 % full, 4 preempted)" in dict(one.annotations)["description"]

    def test_a_moment_at_the_brim_is_no_pressure(self) -> None:
        found = told(gauges(signals.KV_OCCUPANCY, once(1)), counts(signals.ENGINE_PREEMPTIONS, once(9)))
        assert found == []

    def test_it_is_a_ticket_of_the_service(self) -> None:
        rows = gauges(signals.KV_OCCUPANCY, lambda _: 0.95), counts(signals.ENGINE_PREEMPTIONS, once(4))
        (one,) = told(*rows)
        assert one.key == AlertKey(KV_PRESSURE, "", "chat")
        assert dict(one.labels)["notify"] == "ticket"
        assert told(*rows, text=scene.TTFT.replace("chat", "search")) == []


def growing(since_s: int = PAST.start, *, per_tick: float = 1.0) -> By:
    return lambda at_s: max(at_s - since_s, 0) / TICK_S * per_tick


def firing() -> dict[AlertKey, Alert]:
    return {QUEUE: Alert(QUEUE, "firing", NOW_S - 600, NOW_S - 600, (), ())}


class TestGrowingQueue:
    def test_one_that_has_grown_for_long_enough_fires(self) -> None:
        (one,) = told(gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 10))
        assert (one.key, one.state) == (QUEUE, "firing")
        assert "i1 (119 wait, drains in 2 min 1 s)" in dict(one.annotations)["description"]
        assert "allows 500 ms" in dict(one.annotations)["description"]

    def test_one_that_began_lately_is_pending(self) -> None:
        found = told(gauges(signals.ENGINE_WAITING, growing(NOW_S - 200)), counts(signals.REQUESTS, lambda _: 10))
        assert states(found) == {(QUEUE_GROWING, "pending")}

    @pytest.mark.parametrize(
        ("why", "waits", "ends"),
        [
            ("it drains in time", growing(), 3000.0),
            ("few wait", growing(per_tick=0.04), 1.0),
            ("it stands still", lambda _: 40.0, 1.0),
            ("it shrinks", lambda at_s: (NOW_S - at_s) / TICK_S, 1.0),
        ],
    )
    def test_what_is_no_trouble(self, why: str, waits: By, ends: float) -> None:
        assert told(gauges(signals.ENGINE_WAITING, waits), counts(signals.REQUESTS, lambda _: ends)) == [], why

    def test_one_of_which_nothing_ends_does_not_drain(self) -> None:
        (one,) = told(gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 0))
        assert "does not drain" in dict(one.annotations)["description"]

    def test_where_nobody_counts_requests_the_oldest_alone_speaks(self) -> None:
        waits = gauges(signals.ENGINE_WAITING, growing())
        assert told(waits) == []
        assert told(waits, gauges(signals.OLDEST_AGE, lambda _: 0.4)) == []
        (one,) = told(waits, gauges(signals.OLDEST_AGE, lambda _: 40))
        assert one.state == "firing"
        assert "i1 (119 wait, the oldest for 40 s)" in dict(one.annotations)["description"]

    def test_one_that_drains_in_time_but_not_in_turn_fires(self) -> None:
        rows = gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 3000.0)
        assert told(*rows) == []
        oldest = [gauges(signals.OLDEST_AGE, lambda _, s=s: s, model=m) for m, s in (("m", 0), ("n", 9))]  # type: ignore[misc]
        assert states(told(*rows, *oldest)) == {(QUEUE_GROWING, "firing")}

    def test_one_that_drains_in_time_but_lets_expect_a_late_first_token_fires(self) -> None:
        rows = gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 3000.0)
        assert told(*rows, gauges(signals.TTFT_PREDICTED, lambda _: 0.4)) == []
        (one,) = told(*rows, gauges(signals.TTFT_PREDICTED, lambda _: 9.0))
        assert one.state == "firing"
        assert "a first token in 9 s by the sidecar's prediction" in dict(one.annotations)["description"]

    def test_nor_is_it_without_a_promise_on_the_first_token(self) -> None:
        text = "service: chat\nobjectives:\n  - {name: up, signal: availability, target: 99%}\n"
        rows = gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 10)
        assert told(*rows, text=text) == []

    def test_the_tightest_promise_decides(self) -> None:
        text = scene.TTFT + "  - {name: slow, signal: ttft, percentile: 99, threshold: 1h}\n"
        rows = gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 10)
        assert states(told(*rows, text=text)) == {(QUEUE_GROWING, "firing")}
        assert told(*rows, text=scene.TTFT.replace("500ms", "1h")) == []

    def test_models_of_one_engine_are_added(self) -> None:
        halves = [gauges(signals.ENGINE_WAITING, growing(per_tick=0.025), model=model) for model in ("m", "n")]
        ends = counts(signals.REQUESTS, lambda _: 1)
        assert told(halves[0], ends) == []
        assert states(told(*halves, ends)) == {(QUEUE_GROWING, "pending")}

    def test_it_outlives_the_growth_by_a_while(self) -> None:
        one = windows(gauges(signals.ENGINE_WAITING, growing()), counts(signals.REQUESTS, lambda _: 10))
        for later_s, kept in ((50, True), (350, True), (380, False)):
            now_s = NOW_S + later_s
            assert bool(list(saturation.wanted(one, alerts=firing(), now_s=now_s))) is kept, later_s
            # One that had not begun to fire is not kept; what waited is stale after a minute.
            assert bool(list(saturation.wanted(one, alerts={}, now_s=now_s))) is (later_s <= 50), later_s

    def test_two_engines_that_took_turns_have_neither_waited_long_enough(self) -> None:
        first = gauges(signals.ENGINE_WAITING, lambda at_s: growing()(at_s) if at_s < NOW_S - 200 else 0)
        second = gauges(signals.ENGINE_WAITING, growing(NOW_S - 250), instance="i2")
        ends = [counts(signals.REQUESTS, lambda _: 10, instance=instance) for instance in ("i1", "i2")]
        assert states(told(first, second, *ends)) == {(QUEUE_GROWING, "pending")}


class TestSyntheticLoad:
    """What it does to an engine is nobody's ticket."""

    def test_of_an_instance_most_of_whose_requests_are_synthetic_nothing_is_told(self) -> None:
        full = gauges(signals.KV_OCCUPANCY, lambda _: 0.95), counts(signals.ENGINE_PREEMPTIONS, lambda _: 1)
        queue = (gauges(signals.ENGINE_WAITING, growing()),)
        users = counts(signals.REQUESTS, lambda _: 10)
        for synthetic, expected in ((9, {(KV_PRESSURE, "firing"), (QUEUE_GROWING, "firing")}), (11, set())):
            of_class = counts(signals.REQUESTS, lambda _, n=synthetic: n, of_class=SYNTHETIC_CLASS)  # type: ignore[misc]
            assert states(told(*full, *queue, users, of_class)) == expected
