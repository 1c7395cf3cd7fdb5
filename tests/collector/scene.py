"""A service on one page: specs, rows and windows for the tests of judgement."""

from collections.abc import Iterable
from dataclasses import replace

from collector.values.deltas import Deltas, GaugeRow, InstanceRow, KnownRow, LatencyKey, LatencyRow, SeriesKey, SloRow
from collector.values.histogram import Layout, from_values
from collector.windowing.windows import Windows, plan
from slo import objective

NOW_S = 1_800_000_000
DAY_S = 86400
TICK_S = 10
OURS = Layout()

TTFT = "service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 99, threshold: 500ms}\n"


def windows(text: str = TTFT, *, now_s: int = NOW_S, tick_s: int = TICK_S) -> Windows:
    """Empty windows of a spec, that end now."""
    return Windows(plan(objective.parse(text), tick_s=tick_s), now_s=now_s)


def hash_of(text: str = TTFT, number: int = 0) -> str:
    return objective.parse(text)[0].objectives[number].hash


def slo(start_s: int, good: int, bad: int, *, model: str = "m", name: str = "ttft", hash_: str | None = None) -> SloRow:
    return SloRow("", "chat", model, name, hash_of() if hash_ is None else hash_, start_s, good, bad)


def values(
    start_s: int,
    found: Iterable[float],
    *,
    model: str = "m",
    signal: str = "ttft",
    source: str = "proxy",
    censored: bool = False,
    layout: Layout = OURS,
) -> LatencyRow:
    series = SeriesKey(LatencyKey("", "chat", model, signal, source), "i1", layout, censored)
    return LatencyRow(series, start_s, from_values(found, layout))


def of_service(row: LatencyRow, service: str) -> LatencyRow:
    """The same values of another service."""
    latency = replace(row.series.latency, service=service)
    return replace(row, series=replace(row.series, latency=latency))


def known(start_s: int, until_s: int, *, step_s: int = TICK_S) -> tuple[KnownRow, ...]:
    return tuple(KnownRow("", "chat", at_s) for at_s in range(start_s, until_s, step_s))


def heard(first_s: int, last_s: int, *, instance: str = "i1", source: str = "proxy") -> InstanceRow:
    return InstanceRow("", "chat", instance, source, first_s, last_s, periodic=True)


def gauge(
    name: str, value: float, *, at_s: int, attribute: str = "", model: str = "", instance: str = "i1"
) -> GaugeRow:
    start_s = at_s - at_s % TICK_S
    return GaugeRow("", "chat", model, instance, name, attribute, start_s, value, value, value, 1, value, at_s * 10**9)


def live(start_s: int, until_s: int) -> Deltas:
    """A service that is heard from, at every tick of a stretch of time."""
    return Deltas(known=known(start_s, until_s), instances=(heard(start_s, until_s),))
