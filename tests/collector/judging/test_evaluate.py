"""One evaluation: every figure of every series, unknown where it is, and an incident from its start to its end."""

import math

import pytest

from collector.decoding.otlp import decode_metrics
from collector.folding.rollup import Intake, fold
from collector.judging.evaluate import Evaluation, evaluate
from collector.judging.percentiles import PercentileRow
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import Deltas
from collector.windowing.windows import Windows
from slo import signals
from slo.signals import LAST_TOKEN_AGE, OVERDUE
from tests.collector import messages, scene
from tests.collector.messages import Value
from tests.collector.scene import NOW_S

DEMO = """
service: chat
environment: prod
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}
"""


def percentile(evaluation: Evaluation, window_s: int = 300, **of: str) -> PercentileRow:
    (found,) = [
        row
        for row in evaluation.percentiles
        if row.window_s == window_s and all(getattr(row, name) == value for name, value in of.items())
    ]
    return found


def judged(windows: Windows) -> Evaluation:
    return evaluate(windows, alerts={}, now_s=windows.now_s)


def test_percentiles_are_of_all_values_of_the_window_with_their_error() -> None:
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 600, NOW_S))
    found = [0.001 * number for number in range(1, 1001)]
    windows.add(Deltas(latencies=(scene.values(NOW_S - 400, found[:500]), scene.values(NOW_S - 10, found[500:]))))
    row = percentile(judged(windows), 1800)
    assert (row.count, row.censored, row.at_least) == (1000, 0, None)
    for value, exact in (
        (row.p50, 0.5),
        (row.p90, 0.9),
        (row.p95, 0.95),
        (row.p99, 0.99),
        (row.p999, 0.999),
        (row.max, 1),
    ):
        assert value == pytest.approx(exact, rel=0.011)
    assert row.rel_error is not None
    assert 0.01 < row.rel_error < 0.011
    assert row.coverage == pytest.approx(410 / 1800)
    fresh = percentile(judged(windows), 300)
    assert (fresh.count, fresh.p50) == (500, pytest.approx(0.75, rel=0.011))


def test_a_window_without_values_stands_with_none() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=(scene.values(NOW_S - 1000, [0.1]),)))
    row = percentile(judged(windows))
    assert (row.count, row.censored, row.p50, row.max, row.at_least, row.rel_error) == (0, 0, None, None, None, None)


def test_sources_and_models_are_never_added_into_one_series() -> None:
    windows = scene.windows()
    windows.add(
        Deltas(
            latencies=(
                scene.values(NOW_S, [0.1]),
                scene.values(NOW_S, [0.2], source="engine"),
                scene.values(NOW_S, [0.3], model="n"),
            )
        )
    )
    evaluation = judged(windows)
    assert [percentile(evaluation, source=source, model="m").count for source in ("proxy", "engine")] == [1, 1]
    assert percentile(evaluation, model="n").p50 == pytest.approx(0.3, rel=0.011)


class TestCensored:
    """A percentile never contradicts good and bad: who waits past a deadline is slower than all who got a token."""

    def test_those_that_ended_so_push_a_quantile_into_the_unknown(self) -> None:
        windows = scene.windows()
        windows.add(Deltas(latencies=(scene.values(NOW_S, [0.1] * 90), scene.values(NOW_S, [7.0] * 10, censored=True))))
        row = percentile(judged(windows))
        assert (row.count, row.censored) == (90, 10)
        assert row.p90 == pytest.approx(0.1, rel=0.011)
        assert (row.p95, row.p99, row.max) == (None, None, None)
        assert row.at_least == pytest.approx(7.0, rel=0.022)

    def overdue(self, count: float, **of: str) -> PercentileRow:
        windows = scene.windows()
        windows.add(scene.live(NOW_S - 60, NOW_S))
        gauge = {"attribute": "ttft", "model": "m", "instance": "i1", **of}
        windows.add(
            Deltas(
                latencies=(scene.values(NOW_S, [0.1] * 90),),
                gauges=(scene.gauge(OVERDUE.sql, count, at_s=NOW_S, **gauge),),  # type: ignore[arg-type]
            )
        )
        return percentile(judged(windows))

    def test_those_that_wait_now_count_and_exceed_the_threshold(self) -> None:
        row = self.overdue(10)
        assert (row.count, row.censored, row.p95, row.at_least) == (90, 10, None, 0.5)

    @pytest.mark.parametrize("of", [{"attribute": "e2e"}, {"model": "n"}, {"instance": "i2"}])
    def test_others_that_wait_do_not(self, of: dict[str, str]) -> None:
        assert self.overdue(10, **of).censored == 0


def test_no_figure_is_nan_or_infinite() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=(scene.values(NOW_S, [0.0, 1e-9, 1e9]),), slo=(scene.slo(NOW_S, 0, 5),)))
    evaluation = judged(windows)
    for row in (*evaluation.percentiles, *evaluation.burns, *evaluation.budgets):
        numbers = [getattr(row, name) for name in row.__slots__]
        assert all(math.isfinite(number) for number in numbers if isinstance(number, float)), row


def test_every_objective_has_all_its_rows_though_nothing_came() -> None:
    evaluation = judged(scene.windows(DEMO))
    assert [(row.environment, row.model, row.burn) for row in evaluation.burns] == [("prod", "*", None)] * 10
    assert [(row.model, row.remaining) for row in evaluation.budgets] == [("*", 1.0)]
    assert (len(evaluation.percentiles), evaluation.alerts, evaluation.transitions) == (0, (), ())


class Service:
    """A sidecar's exports every two seconds through the whole pure way: bytes, rows, windows, evaluation."""

    def __init__(self) -> None:
        self.at_s = NOW_S
        self.windows = scene.windows(DEMO, now_s=NOW_S, tick_s=2)
        self.alerts: dict[AlertKey, Alert] = {}
        self.transitions: list[tuple[int, str, str]] = []
        self.hash = self.windows.plan.specs[0].objectives[0].hash
        self.evaluation: Evaluation | None = None

    def export(self, found: list[float], *, good: int, bad: int, overdue: int = 0, token_age: float = 0.1) -> None:
        event: dict[str, Value] = {
            **messages.MODEL,
            signals.OBJECTIVE: "ttft",
            signals.OBJECTIVE_HASH: self.hash,
        }
        of = {"at_s": self.at_s, "start_s": self.at_s - 2}
        waits: dict[str, Value] = {**messages.MODEL, signals.SIGNAL: "ttft"}
        request = messages.metrics(
            messages.exponential(signals.TTFT.name, messages.exponential_point(found, **of)),  # type: ignore[arg-type]
            messages.counter(
                signals.SLO_EVENTS.name,
                messages.number(good, attributes={**event, signals.RESULT: "good"}, **of),
                messages.number(bad, attributes={**event, signals.RESULT: "bad"}, **of),
            ),
            messages.counter(signals.HEARTBEAT.name, messages.number(2, attributes={}, **of)),
            messages.gauge(OVERDUE.name, messages.number(overdue, attributes=waits, **of)),
            messages.gauge(LAST_TOKEN_AGE.name, messages.number(token_age, attributes={}, **of)),
        )
        batch = decode_metrics(request.SerializeToString(), json=False)
        intake = Intake(now_s=self.at_s, tick_s=2, oldest_s=self.at_s - self.windows.plan.horizon_s, since_s=NOW_S)
        rows = fold(batch, intake=intake, streams={})
        assert (rows.rejected, rows.ignored) == ((), ())
        self.windows.add(rows)

    def tick(self) -> Evaluation:
        self.windows.advance(self.at_s)
        evaluation = evaluate(self.windows, alerts=self.alerts, now_s=self.at_s)
        self.alerts = {one.key: one for one in evaluation.alerts if one.state != "resolved"}
        self.transitions += [
            (self.at_s - NOW_S, one.key.name, one.state)
            for one in evaluation.transitions
            if one.key.model in ("*", "") and one.key.tier in ("fast", "")
        ]
        self.at_s += 2
        self.evaluation = evaluation
        return evaluation

    def run(self, seconds: int, found: list[float], *, good: int, bad: int, hung: bool = False) -> None:
        for number in range(0, seconds, 2):
            waits = number * 4 if hung else 0
            self.export(found, good=good, bad=bad, overdue=waits, token_age=number if hung else 0.1)
            self.tick()


def test_a_slow_engine_pages_and_its_recovery_resolves() -> None:
    service = Service()
    service.run(60, [0.1, 0.2] * 4, good=8, bad=0)
    assert service.transitions == []
    service.run(60, [2.0] * 4, good=0, bad=4)
    fired = [at_s for at_s, name, state in service.transitions if (name, state) == ("LLMTTFTBudgetBurn", "firing")]
    assert len(fired) == 1
    # 50 % of the budget of 10 m in 60 s is 25 % bad: of 8 good and then 4 bad in two seconds that is within 30 s.
    assert 60 < fired[0] <= 90
    service.run(60, [0.1, 0.2] * 4, good=8, bad=0)
    burn = [(at_s, state) for at_s, name, state in service.transitions if name == "LLMTTFTBudgetBurn"]
    assert [state for _, state in burn if state != "pending"] == ["firing", "resolved", "resolved"]
    ended = [at_s for at_s, state in burn if state == "resolved"]
    assert 120 < ended[0] <= 140, "the short window is 15 s"
    assert burn[-2:] == [(ended[0] + 2, "pending"), (ended[1], "resolved")], "the long window still burns for a while"
    assert service.evaluation is not None
    row = percentile(service.evaluation, 600)
    assert (row.count, row.p50) == (600, pytest.approx(0.2, rel=0.011))
    assert row.p95 == pytest.approx(2.0, rel=0.011)


def test_a_hung_engine_pages_though_no_request_ends() -> None:
    service = Service()
    service.run(60, [0.1] * 8, good=8, bad=0)
    service.run(100, [], good=0, bad=4, hung=True)
    names = [(name, state) for _, name, state in service.transitions]
    assert ("LLMTTFTBudgetBurn", "firing") in names
    assert ("LLMEngineStalled", "firing") in names
    stalled = next(at_s for at_s, name, _ in service.transitions if name == "LLMEngineStalled")
    assert stalled - 60 <= 120
    assert service.evaluation is not None
    row = percentile(service.evaluation, 300)
    assert row.censored > row.count
    assert (row.p95, row.at_least) == (None, 0.5)


def test_quiet_traffic_pages_nobody() -> None:
    service = Service()
    service.run(240, [0.1], good=1, bad=0)
    assert service.transitions == []


def test_a_sidecar_that_vanishes_ends_no_burn_and_is_missed() -> None:
    service = Service()
    service.run(60, [2.0] * 4, good=0, bad=4)
    for _ in range(180):
        service.tick()
    names = [(name, state) for _, name, state in service.transitions]
    assert names.index(("LLMTTFTBudgetBurn", "firing")) < names.index(("LLMTTFTBudgetBurn", "resolved"))
    resolved = next(at_s for at_s, name, state in service.transitions if state == "resolved")
    assert resolved >= 110, "only when the long window holds nothing any more"
    assert names[-1] == ("LLMTelemetryAbsent", "firing")
