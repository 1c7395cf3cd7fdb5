"""Windows: kept incrementally they answer as windows built anew from all rows, whatever came late or out of order."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.values import bins
from collector.values.bins import Sheet
from collector.values.deltas import Deltas, LatencyKey, LatencyRow, concat
from collector.values.histogram import Layout
from collector.values.quantile import quantiles
from collector.windowing.events import EventKey, Held
from collector.windowing.windows import Windows, plan, too_short
from slo import objective
from slo.burn import STANDARD_WINDOWS_S
from tests.collector import scene
from tests.collector.scene import DAY_S, NOW_S
from tests.strategies import BOUNDS, deltas

SHORT = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s}]}
"""
KEY = LatencyKey("", "chat", "m", "ttft", "proxy")


def everything(windows: Windows) -> list[object]:
    """All that windows answer, in comparable form."""
    answers: list[object] = []
    for window_s in windows.plan.windows_s:
        for key in windows.latencies.seen():
            parts = [p for p in windows.latencies.values(key, window_s) if p.count]
            told = sorted((p.low.tolist(), p.high.tolist(), p.counts.tolist()) for p in parts)
            answers.append((window_s, key, told, windows.latencies.first_s(key)))
        for event in sorted(windows.events.keys("", "chat", "ttft")):
            spans = [windows.events.bad_spans([event], window_s, spread_s=spread_s) for spread_s in (60, None)]
            answers.append((window_s, event, windows.events.held([event], window_s), spans))
        answers.append((window_s, [windows.coverage(service, window_s) for service in windows.services()]))
    return answers


@given(st.lists(st.tuples(st.sampled_from([0, 10, 20, 70, 600, 4000]), deltas(until_s=4000)), max_size=6))
@settings(max_examples=60, deadline=None)
def test_incremental_windows_equal_windows_built_anew(acts: list[tuple[int, Deltas]]) -> None:
    at_s = NOW_S // 3600 * 3600
    windows = scene.windows(SHORT, now_s=at_s)
    came: list[Deltas] = []
    for move_s, rows in acts:
        at_s += move_s
        windows.advance(at_s)
        moved = _moved(rows, at_s - 3900)
        windows.add(moved)
        came.append(moved)
    rebuilt = scene.windows(SHORT, now_s=at_s)
    for rows in reversed(came):
        rebuilt.add(rows)
    assert everything(windows) == everything(rebuilt)


def _moved(rows: Deltas, by_s: int) -> Deltas:
    """The same rows, later: some of them end up a little in the future."""
    by_s -= by_s % 10
    return Deltas(
        latencies=tuple(replace(row, start_s=row.start_s + by_s) for row in rows.latencies),
        slo=tuple(replace(row, start_s=row.start_s + by_s) for row in rows.slo),
        known=tuple(replace(row, start_s=row.start_s + by_s) for row in rows.known),
    )


def test_a_clock_that_went_back_moves_nothing() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=(scene.values(NOW_S, [0.1]),)))
    windows.advance(NOW_S + 3000)
    before = everything(windows)
    windows.advance(NOW_S - 600)
    assert everything(windows) == before
    assert windows.now_s == NOW_S + 3000


def test_layouts_of_one_latency_are_kept_apart_and_answer_together() -> None:
    windows = scene.windows()
    fine, coarse = [0.1] * 50, [0.3] * 50
    windows.add(Deltas(latencies=(scene.values(NOW_S, fine), scene.values(NOW_S, coarse, layout=Layout(None, BOUNDS)))))
    parts = windows.latencies.values(KEY, 300)
    assert sorted(part.count for part in parts) == [50, 50]
    p50, p90 = quantiles(parts, (0.5, 0.9))
    assert p50.value == pytest.approx(0.1, rel=0.011)
    assert p90.value == pytest.approx(1 / 3)
    windows.advance(NOW_S + 280)
    windows.add(Deltas(latencies=(scene.values(NOW_S + 280, fine),)))
    windows.advance(NOW_S + 300)
    (p99,) = quantiles(windows.latencies.values(KEY, 300), (0.99,))
    assert p99.value == pytest.approx(0.1, rel=0.011), "what was coarse has left, and its error with it"


def test_waits_are_no_values() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=(scene.values(NOW_S, [9.0, 9.0], censored=True),)))
    assert windows.latencies.seen() == [KEY]
    assert windows.latencies.values(KEY, 300) == []
    assert [part.count for part in windows.latencies.waits(KEY, 300)] == [2]


def test_stored_rows_of_longer_steps_lie_in_the_windows_that_hold_such_steps() -> None:
    windows = scene.windows()
    windows.add(Deltas(slo=(scene.slo(NOW_S - 20 * DAY_S, 5, 1), scene.slo(NOW_S - 40 * DAY_S, 100, 0))))
    key = EventKey("", "chat", "m", "ttft", scene.hash_of())
    held = {window_s: windows.events.held([key], window_s) for window_s in (3 * DAY_S, 28 * DAY_S)}
    assert held == {3 * DAY_S: Held(0, 0), 28 * DAY_S: Held(5, 1)}


class TestReadFromHistograms:
    """An objective whose events nobody judges at the source is read from histograms at its threshold."""

    def of(self, windows: Windows, source: str = "engine", model: str = "m") -> EventKey:
        return EventKey("", "chat", model, "ttft", scene.hash_of(), source)

    def test_values_at_or_below_the_threshold_are_good(self) -> None:
        windows = scene.windows()
        windows.add(Deltas(latencies=(scene.values(NOW_S, [0.1, 0.5, 0.6, 9.0], source="engine"),)))
        assert windows.events.held([self.of(windows)], 300) == Held(2, 2, 0)

    def test_what_the_buckets_cannot_tell_is_said(self) -> None:
        windows = scene.windows()
        row = scene.values(NOW_S, [0.3, 0.45, 0.7, 0.9], source="engine", layout=Layout(None, (0.4, 0.8)))
        windows.add(Deltas(latencies=(row,)))
        assert windows.events.held([self.of(windows)], 300) == Held(1, 3, 2)

    def test_exact_counts_make_it_needless(self) -> None:
        windows = scene.windows()
        windows.add(Deltas(slo=(scene.slo(NOW_S, 0, 0),)))
        windows.add(Deltas(latencies=(scene.values(NOW_S, [0.1], source="engine"),)))
        assert not windows.events.has(self.of(windows))

    @pytest.mark.parametrize(
        "change",
        [
            "match: {model: other-*}",
            "match: {class: batch}",
            "match: {prompt_bytes: <16k}",
        ],
    )
    def test_what_a_histogram_cannot_know_is_not_read_from_it(self, change: str) -> None:
        text = (
            "service: chat\nclasses: [batch]\nobjectives:\n"
            f"  - {{name: ttft, signal: ttft, percentile: 99, threshold: 500ms, {change}}}\n"
        )
        windows = scene.windows(text)
        windows.add(Deltas(latencies=(scene.values(NOW_S, [0.1], source="engine"),)))
        assert list(windows.events.keys("", "chat", "ttft")) == []

    @pytest.mark.parametrize(
        "row", [scene.values(NOW_S, [0.1], censored=True), scene.values(NOW_S, [0.1], signal="e2e")]
    )
    def test_other_series_tell_nothing(self, row: object) -> None:
        windows = scene.windows()
        windows.add(Deltas(latencies=(row,)))  # type: ignore[arg-type]
        assert list(windows.events.keys("", "chat", "ttft")) == []


def test_coverage_is_that_of_the_service_and_full_for_one_that_need_not_speak() -> None:
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 1800, NOW_S))
    assert windows.coverage(("", "chat"), 3600) == pytest.approx(0.5)
    assert windows.coverage(("prod", "chat"), 3600) == 0.0
    windows.advance(NOW_S + 1800)
    assert windows.coverage(("", "chat"), 3600) == pytest.approx(0.5)
    elastic = scene.windows("elastic: true\n" + scene.TTFT)
    elastic.add(scene.live(NOW_S - 1800, NOW_S))
    elastic.advance(NOW_S + 1800)
    assert elastic.coverage(("", "chat"), 3600) == 1.0


def test_a_service_of_spans_alone_is_known_from_its_first() -> None:
    windows = scene.windows()
    windows.add(Deltas(known=scene.known(NOW_S - 1800, NOW_S - 1790)))
    assert windows.coverage(("", "chat"), 3600) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("own", "heard", "expected"),
    [
        ("", [], [""]),
        ("", ["prod", "test"], ["prod", "test"]),
        ("prod", ["prod", "test"], ["prod"]),
        ("prod", [], ["prod"]),
    ],
)
def test_a_spec_is_judged_where_it_says_or_wherever_its_service_speaks(
    own: str, heard: list[str], expected: list[str]
) -> None:
    windows = scene.windows(f"environment: '{own}'\n" + scene.TTFT)
    rows = tuple(replace(row, environment=name) for name in heard for row in scene.known(NOW_S - 60, NOW_S))
    windows.add(Deltas(known=rows))
    assert windows.environments(windows.plan.specs[0]) == expected


@pytest.mark.parametrize("tick_s", [0, -10, 7, 120])
def test_a_tick_divides_a_minute(tick_s: int) -> None:
    with pytest.raises(ValueError, match="divisor of a minute"):
        plan(objective.parse(scene.TTFT), tick_s=tick_s)


@pytest.mark.parametrize(("tick_s", "told"), [(5, []), (10, ["15s, under two ticks of 10s: give a shorter --tick"])])
def test_a_short_window_of_less_than_two_ticks_is_told(tick_s: int, told: list[str]) -> None:
    found = list(too_short(plan(objective.parse(SHORT), tick_s=tick_s)))
    assert [line.partition(" looks back ")[2].partition(", or ")[0] for line in found] == told


def test_a_plan_holds_every_window_of_every_objective() -> None:
    short = plan(objective.parse(SHORT), tick_s=2)
    assert short.windows_s == (15, 60, 300, 600, 1800, 3600, 7200, 21600, 86400, 259200)
    assert short.horizon_s == 259200
    assert short.service_windows_s("chat") == short.windows_s
    assert short.service_windows_s("other") == STANDARD_WINDOWS_S
    assert short.spec("other") is None


def test_a_thousand_series_stay_within_their_memory() -> None:
    windows = scene.windows()
    random = np.random.default_rng(1)
    for number in range(0, 1000, 50):
        rows = [scene.values(NOW_S, random.lognormal(-1, 0.5, 20), model=f"m{n}") for n in range(number, number + 50)]
        windows.add(Deltas(latencies=tuple(rows)))
    (plane,) = windows.latencies.planes.values()
    assert plane._rolling._rings.nbytes < 80e6
    assert len(windows.latencies.seen()) == 1000


def sheets(rows: Sequence[LatencyRow]) -> list[Sheet]:
    """Rows as a database gives them back: by layout."""
    found = []
    for layout in {row.series.layout for row in rows}:
        mine = [row for row in rows if row.series.layout == layout]
        series = list(dict.fromkeys(row.series for row in mine))
        of = np.array([series.index(row.series) for row in mine])
        starts_s = np.array([row.start_s for row in mine])
        found.append(Sheet(series, [one.id for one in series], of, starts_s, bins.of([row.histogram for row in mine])))
    return found


@given(st.lists(deltas(until_s=4000), max_size=4).map(concat), st.booleans())
@settings(max_examples=60, deadline=None)
def test_stored_histograms_do_what_they_did_when_they_came(rows: Deltas, with_counts: bool) -> None:
    at_s = NOW_S // 3600 * 3600
    rows = _moved(rows, at_s - 3900)
    came, read = scene.windows(SHORT, now_s=at_s), scene.windows(SHORT, now_s=at_s)
    counts = Deltas(slo=rows.slo if with_counts else (), known=rows.known)
    for windows in (came, read):
        windows.add(counts)
    came.add(Deltas(latencies=rows.latencies))
    for sheet in sheets(rows.latencies):
        read.add_sheet(sheet)
    assert everything(read) == everything(came)
