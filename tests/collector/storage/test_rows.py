"""Values to rows and back: nothing is lost on the way through a database."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Table

from collector import schema
from collector.storage import rows
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import (
    CounterRow,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyKey,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
)
from collector.values.histogram import Layout, from_values, histogram

KEY = SeriesKey(LatencyKey("prod", "chat", "m", "ttft", "proxy"), "i1", Layout(5))
EXPLICIT = SeriesKey(LatencyKey("", "chat", "m", "ttft", "otel"), "i1", Layout(None, (0.1, 0.25, 1.0)), True)
VALUES = st.lists(st.floats(0, 1e4, allow_nan=False), max_size=30)


def stored(table: Table, row: tuple[Any, ...]) -> Any:
    """The row as a database would give it back."""
    names = [column.name for column in table.columns]
    assert len(row) == len(names)
    for column, value in zip(table.columns, row, strict=True):
        assert value is None or isinstance(value, column.type.python_type | int), column
    return SimpleNamespace(**dict(zip(names, row, strict=True)))


@given(values=VALUES, explicit=st.booleans())
def test_histograms_come_back_as_they_were(values: list[float], explicit: bool) -> None:
    key = EXPLICIT if explicit else KEY
    row = LatencyRow(key, 100, from_values(values, key.layout))
    others = [LatencyRow(key, 90, from_values([])), LatencyRow(key, 110, from_values([0.5, 0.5, 7.0], key.layout))]
    for place in range(3):
        together = rows.rollups([*others[:place], row, *others[place:]], step_s=10)
        back = stored(schema.rollup, together[place])
        assert rows.rollup_histogram(back, key.layout) == row.histogram
        assert (back.start_s, back.count) == (100, len(values))
        several = rows.rollup_histograms(together, (key.layout,), np.zeros(3, dtype=np.int64))
        assert several[place] == row.histogram


@pytest.mark.parametrize("counts", [[9], [10], [1, 0, 9], [1, 10, 1], [300, 2**40, 255, 0, 208], [2**62, 1]])
def test_counts_of_any_length_are_written_as_json(counts: list[int]) -> None:
    several = [histogram(KEY.layout, -3, one) for one in ([1], counts, [2, 0, 3])]
    written = rows.rollups([LatencyRow(KEY, 10 * place, one) for place, one in enumerate(several)], step_s=10)
    assert [row[-1] for row in written] == ["[1]", orjson.dumps(counts).decode(), "[2,0,3]"]


def test_no_rows_are_none() -> None:
    assert rows.rollups([], step_s=10) == []
    assert list(rows.rollup_histograms([], (), np.zeros(0, dtype=np.int64))) == []


def test_series_come_back_as_they_were_and_have_one_id_everywhere() -> None:
    for key in (KEY, EXPLICIT):
        assert rows.series_key(stored(schema.series, rows.series(key))) == key
    assert KEY.id == 6100485002621400215
    assert len({key.id for key in (KEY, EXPLICIT)}) == 2


@given(value=st.one_of(st.floats(allow_nan=False, allow_infinity=False), VALUES))
def test_streams_come_back_as_they_were(value: float | list[float]) -> None:
    kept = from_values(value) if isinstance(value, list) else value
    row = StreamRow("ab", 1 << 60, (1 << 60) + 1, kept)
    assert rows.stream_row(stored(schema.stream, rows.stream(row, at_s=1))) == row


def test_alerts_come_back_as_they_were() -> None:
    key = AlertKey("LLMTTFTBudgetBurn", "prod", "chat", "*", "ttft", "fast")
    one = Alert(key, "firing", 5, 4, (("notify", "page"), ("severity", "critical")), (("summary", "é."),))
    back = stored(schema.alert, rows.alert(one))
    assert rows.alert_of(back) == one
    assert (back.severity, back.notify) == ("critical", "page")
    event = stored(schema.alert_event, rows.alert_event(one))
    assert (event.at_s, event.state, event.fired_s) == (5, "firing", 4)
    assert rows.alert_of(event) == one


def test_the_mean_of_a_gauge_is_that_of_its_samples() -> None:
    row = GaugeRow("", "chat", "m", "i1", "queue", "", start_s=10, min=1, max=5, sum=9, samples=3, last=3, last_ns=7)
    back = stored(schema.gauge, rows.gauge(row, step_s=10))
    assert (back.mean, back.min, back.max, back.last, back.samples) == (3, 1, 5, 3, 3)


def test_other_rows_stand_in_their_columns() -> None:
    slo = stored(schema.slo_count, rows.slo_count(SloRow("p", "chat", "m", "ttft", "h", 10, 3, 1), step_s=10))
    assert (slo.step_s, slo.start_s, slo.objective_hash, slo.good, slo.bad) == (10, 10, "h", 3, 1)
    counter = CounterRow("p", "chat", "m", "i1", "proxy", "requests", (("outcome", "ok"),), 10, 4.0)
    back = stored(schema.counter, rows.counter(counter, step_s=10))
    assert (back.name, back.attributes, back.value) == ("requests", '{"outcome":"ok"}', 4.0)
    known = stored(schema.known, rows.known(KnownRow("p", "chat", 10), step_s=10))
    assert (known.environment, known.service, known.start_s) == ("p", "chat", 10)
    instance = stored(schema.instance, rows.instance(InstanceRow("p", "chat", "i1", "proxy", 1, 2, True)))
    assert (instance.first_s, instance.last_s, instance.periodic) == (1, 2, 1)
