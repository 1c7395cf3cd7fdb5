"""Percentiles of the engine against those of sorted arrays (what the collector says is compared in `test_mirror`)."""

import math
import random

import numpy as np
import pytest

from collector.clickhouse.engine import Engine, parameters
from collector.clickhouse.percentile_view import SHARES, percentile_view
from collector.clickhouse.tables import ROLLUP
from collector.values.histogram import Layout, from_values
from collector.values.quantile import Censored, buckets, quantiles

AT_S = 1_800_000_000


def test_the_columns_are_those_of_the_table_of_the_collector() -> None:
    question = percentile_view()
    assert all(f"AS {name}" in question for name in (*SHARES, "at_least", "rel_error", "coverage"))


@pytest.mark.clickhouse
@pytest.mark.parametrize("seed", range(3))
def test_layouts_are_mixed_and_waits_have_no_end(clickhouse: Engine, seed: int) -> None:
    dice = random.Random(seed)
    layouts = (Layout(5), Layout(-2), Layout(None, (0.0, 1e-05, 0.1, 0.25, 2.5)))
    ones = [
        from_values([dice.lognormvariate(-1, 1.5) for _ in range(dice.randrange(1, 60))] + [0.0], of) for of in layouts
    ]
    waits = from_values([dice.uniform(1, 9) for _ in range(dice.randrange(4))], Layout(4))
    rows = []
    for one, censored in (*((one, 0) for one in ones), (waits, 1)):
        key = ("", "chat", "m", "ttft", "proxy", one.layout.text, censored, "i", "o", AT_S - 20)
        bins = {one.offset + place: int(count) for place, count in enumerate(one.counts) if count}
        rows.append((*key, one.count, one.sum, one.min, one.max, one.zero_count, bins))
    clickhouse.insert(ROLLUP, rows, token="one")
    question = f"SELECT * FROM percentile{parameters(at_s=AT_S, window_s=300, tick_s=10)}"
    (found,) = clickhouse.ask(question)
    parts = [_whole(one) for one in ones]
    wanted = quantiles(parts, tuple(SHARES.values()), censored=Censored([_whole(waits)] if waits.count else []))
    assert found[7:9] == (sum(one.count for one in ones), waits.count)
    for value, quantile in zip(found[9:15], wanted, strict=True):
        assert (value is None) == (quantile.value is None)
        assert value is None or math.isclose(value, quantile.value or 0.0, rel_tol=1e-12)
    unknown = [one.at_least for one in wanted if one.value is None]
    assert found[15] == (unknown[0] if unknown else None)
    assert np.isclose(found[16], max((one.rel_error for one in wanted if one.value is not None), default=0))


def _whole(one: object) -> object:
    """The buckets as they are: a view knows no extremes."""
    from dataclasses import replace

    return buckets(replace(one, min=None, max=None))  # type: ignore[type-var]
