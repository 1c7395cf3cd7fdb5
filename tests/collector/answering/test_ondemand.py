"""One instance's percentiles, read from real databases: as its service's would be, were it the only instance."""

from dataclasses import replace
from typing import Any

import pytest

from collector.answering import ondemand
from collector.answering.ondemand import OfInstance, Window
from collector.judging.percentiles import PercentileRow, percentiles
from collector.storage import commit
from collector.values.deltas import Deltas, LatencyKey, LatencyRow
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S
from tests.collector.storage.test_commit import after

KEY = LatencyKey("", "chat", "m", "ttft", "proxy")


def of_instance(row: LatencyRow, instance: str) -> LatencyRow:
    return replace(row, series=replace(row.series, instance=instance))


MINE = (
    scene.values(NOW_S - 5000, [3.0, 4.0]),
    scene.values(NOW_S - 600, [0.3] * 5),
    scene.values(NOW_S - 100, [0.1, 0.2, 0.0]),
    scene.values(NOW_S - 20, [9.0], censored=True),
    scene.values(NOW_S - 10, [0.15] * 3),
)
OTHERS = (of_instance(scene.values(NOW_S - 100, [70.0] * 9), "i2"), scene.values(NOW_S - 100, [60.0] * 9, model="n"))


def stored(*, step_s: int = TICK_S) -> Any:
    alive = scene.live(NOW_S - 1800, NOW_S)
    senders = (*alive.instances, scene.heard(NOW_S - 100, NOW_S, instance="i2"))
    rows = replace(alive, latencies=(*MINE, *OTHERS), instances=senders)
    return lambda connection: commit.write_deltas(connection, rows, step_s=step_s, at_s=NOW_S)


def asked(instance: str, window_s: int) -> Any:
    whose, window = OfInstance(KEY, instance), Window(window_s, NOW_S, TICK_S)
    return lambda connection: ondemand.percentiles(connection, whose, window)


@pytest.mark.parametrize("window_s", [60, 300, 1800, 7200])
def test_an_instance_has_the_figures_of_a_service_that_is_it_alone(database: str, window_s: int) -> None:
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 1800, NOW_S))
    windows.add(Deltas(latencies=MINE))
    (expected,) = [row for row in percentiles(windows) if row.window_s == max(window_s, 300)]
    found: PercentileRow = after(database, stored(), asked("i1", window_s))
    if window_s >= 300:
        aside = {"coverage": 0.0}
        assert replace(found, **aside) == replace(expected, **aside)  # type: ignore[arg-type]
    else:
        assert (found.count, found.censored, found.p50) == (3, 1, pytest.approx(0.15, rel=0.011))


def test_coverage_is_that_of_the_service_and_at_most_the_instances_age(database: str) -> None:
    old: PercentileRow = after(database, stored(), asked("i1", 3600))
    assert old.coverage == pytest.approx(0.5, abs=0.01)
    young: PercentileRow = after(database, asked("i2", 3600))
    assert young.coverage == pytest.approx(110 / 3600)
    assert young.count == 9


def test_of_an_instance_nobody_heard_of_there_is_nothing(database: str) -> None:
    assert after(database, stored(), asked("i3", 300)) is None
