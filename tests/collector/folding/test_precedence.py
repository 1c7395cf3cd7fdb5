"""A request that comes as a span and in a histogram counts once, whoever comes first, and after a restart."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.decoding.otlp import decode_metrics, decode_traces
from collector.folding.precedence import Precedence
from collector.folding.rollup import HISTOGRAM_IN_SPANS, SPAN_IN_HISTOGRAM, Intake, fold
from collector.values.deltas import Deltas, StreamRow
from collector.values.measurement import Resource, Tally
from slo import signals
from tests.collector import messages
from tests.collector.messages import CUMULATIVE, FOREIGN, NS, T0, Value
from tests.collector.stores import NOW_S, Clock, store

INTAKE = Intake(now_s=T0 + 1000, tick_s=10, oldest_s=T0 - 3600, since_s=T0 - 3000)
WHO = Resource("", "chat", "i9", "otel")
TTFT = signals.TTFT.name


class Memory(dict[str, StreamRow]):
    """What a store would remember between bodies."""

    def take(self, rows: Deltas) -> Deltas:
        self.update({row.stream: row for row in rows.streams})
        return rows

    def spans(self, *ends_s: float, model: str = "m", signal: str = signals.LATENCY_TTFT) -> Deltas:
        found: dict[str, Value] = {signal: 0.25} | ({signals.REQUEST_MODEL: model} if model else {})
        sent = messages.traces(*(messages.span(found, start_s=end_s - 1, end_s=end_s) for end_s in ends_s))
        return self.take(fold(decode_traces(sent.SerializeToString(), json=False), intake=INTAKE, streams=self))

    def histogram(
        self,
        start_s: float,
        end_s: float,
        *,
        values: int = 4,
        model: str = "m",
        cumulative: bool = False,
        resource: dict[str, Value] = FOREIGN,
    ) -> Deltas:
        found: dict[str, Value] = {signals.REQUEST_MODEL: model} if model else {}
        point = messages.exponential_point([0.25] * values, start_s=start_s, at_s=end_s, attributes=found)
        temporality = CUMULATIVE if cumulative else messages.DELTA
        sent = messages.metrics(messages.exponential(TTFT, point, temporality=temporality), resource=resource)
        return self.take(fold(decode_metrics(sent.SerializeToString(), json=False), intake=INTAKE, streams=self))


def count(*several: Deltas) -> int:
    return sum(row.histogram.count for rows in several for row in rows.latencies)


def test_where_histograms_come_first_spans_never_count() -> None:
    memory = Memory()
    assert count(memory.histogram(T0, T0 + 60)) == 4
    late = memory.spans(T0 + 30, T0 + 70)
    assert (count(late), late.ignored) == (0, (Tally(SPAN_IN_HISTOGRAM, 2),))
    assert (late.known, late.instances) == ((), ())
    assert count(memory.histogram(T0 + 60, T0 + 120)) == 4


def test_spans_keep_what_they_have_told_and_histograms_go_on_behind_it() -> None:
    memory = Memory()
    assert count(memory.spans(T0 + 10, T0 + 50)) == 2
    first = memory.histogram(T0, T0 + 60)
    assert (count(first), first.ignored) == (0, (Tally(HISTOGRAM_IN_SPANS, 1),))
    assert count(memory.spans(T0 + 55)) == 1, "it ended before the moment"
    assert count(memory.spans(T0 + 61)) == 0
    assert count(memory.histogram(T0 + 60, T0 + 120)) == 4


def test_spans_that_ran_ahead_push_the_moment_to_their_last() -> None:
    memory = Memory()
    memory.spans(T0 + 50, T0 + 65)
    memory.histogram(T0, T0 + 60)
    assert count(memory.spans(T0 + 64)) == 1
    assert count(memory.histogram(T0 + 60, T0 + 120)) == 0, "the moment cuts it"
    assert count(memory.spans(T0 + 66)) == 0
    assert count(memory.histogram(T0 + 120, T0 + 180)) == 4


def test_spans_of_long_ago_cost_the_first_histogram_nothing() -> None:
    memory = Memory()
    memory.spans(T0 - 500)
    assert count(memory.histogram(T0, T0 + 60)) == 4
    assert count(memory.spans(T0 - 400)) == 0


def test_a_cumulative_histogram_counts_from_the_moment_on() -> None:
    memory = Memory()
    memory.spans(T0 + 10, T0 + 50)
    assert count(memory.histogram(T0, T0 + 60, values=2, cumulative=True)) == 0
    assert count(memory.histogram(T0, T0 + 120, values=5, cumulative=True)) == 3


@pytest.mark.parametrize("start_s", [0, T0])
def test_several_points_of_one_export_meet_one_fate(start_s: float) -> None:
    memory = Memory()
    memory.spans(T0 + 50)
    found: dict[str, Value] = dict(messages.MODEL)
    points = [
        messages.exponential_point([0.25], start_s=start_s, at_s=T0 + 60, attributes=found | {"error.type": kind})
        for kind in ("", "timeout")
    ]
    sent = messages.metrics(messages.exponential(TTFT, *points), resource=FOREIGN).SerializeToString()
    rows = memory.take(fold(decode_metrics(sent, json=False), intake=INTAKE, streams=memory))
    assert rows.ignored == (Tally(HISTOGRAM_IN_SPANS, 2),)
    assert count(memory.histogram(0, T0 + 120)) == 4


def test_a_model_that_is_not_named_may_be_any() -> None:
    named, unnamed = Memory(), Memory()
    named.histogram(T0, T0 + 60)
    assert count(named.spans(T0 + 70, model="")) == 0
    assert count(named.spans(T0 + 70, model="other one")) == 1
    unnamed.histogram(T0, T0 + 60, model="")
    assert count(unnamed.spans(T0 + 70)) == 0
    spans_first = Memory()
    spans_first.spans(T0 + 50, model="")
    assert count(spans_first.histogram(T0, T0 + 60)) == 0


def test_each_latency_is_ruled_by_its_own_histogram() -> None:
    memory = Memory()
    memory.histogram(T0, T0 + 60)
    assert count(memory.spans(T0 + 70, signal=signals.LATENCY_E2E)) == 1
    assert count(memory.spans(T0 + 70, signal=signals.LATENCY_QUEUE)) == 1


def test_a_sidecar_and_a_tracer_are_two_sources() -> None:
    memory = Memory()
    assert count(memory.histogram(T0, T0 + 60, resource=messages.SIDECAR)) == 4
    assert count(memory.spans(T0 + 30)) == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=30), st.integers(1, 7))
def test_no_request_counts_twice_in_whatever_order_things_come(sent: list[tuple[bool, int]], per_s: int) -> None:
    """A request ends every `per_s` seconds of eight minutes; each is in the spans and in the histogram of its minute,
    of which each may come at any time, once."""
    memory, counted = Memory(), np.zeros(480, dtype=int)
    for is_span, minute in dict.fromkeys(sent):
        ends_s = [minute * 60 + at_s for at_s in range(per_s, 61, per_s)]
        if is_span:
            rows = memory.spans(*(T0 + end_s for end_s in ends_s))
            moment_ns = Precedence(memory.get, lambda _: None).spans_end_ns(WHO, "m", "ttft")
            taken = [end_s for end_s in ends_s if moment_ns is None or (T0 + end_s) * NS <= moment_ns]
            assert count(rows) == len(taken)
        else:
            rows = memory.histogram(T0 + minute * 60, T0 + (minute + 1) * 60, values=len(ends_s))
            taken = ends_s if count(rows) else []
        for end_s in taken:
            counted[end_s - 1] += 1
    assert counted.max() <= 1


def test_the_moment_outlives_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        histogram = messages.exponential_point([0.25] * 4, start_s=NOW_S - 60, at_s=NOW_S - 5)
        metrics = messages.metrics(messages.exponential(TTFT, histogram), resource=FOREIGN)
        found: dict[str, Value] = {signals.LATENCY_TTFT: 0.25, signals.REQUEST_MODEL: "m"}
        spans = messages.traces(messages.span(found, start_s=NOW_S - 9, end_s=NOW_S - 8))
        async with store(f"{tmp_path}/a.db", clock=clock) as one:
            await one.count(b"1", decode_metrics(metrics.SerializeToString(), json=False))
        async with store(f"{tmp_path}/a.db", clock=clock) as again:
            await again.count(b"2", decode_traces(spans.SerializeToString(), json=False))
            assert again.tallies.dropped == {SPAN_IN_HISTOGRAM: 1}

    asyncio.run(story())
