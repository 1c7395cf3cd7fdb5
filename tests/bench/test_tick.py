"""The measurement of a tick ticks, and counts what it wrote."""

from bench.collector_parts.tick import measure


def test_a_few_series_are_measured() -> None:
    found = measure(20, 7, 1)
    # Ten services of two models each: both, and both together, over seven windows; one objective over eight elsewhere.
    assert found["rows"] == 10 * 3 * 7 + 7
    assert found["tick_ms"] >= found["evaluate_ms"] > 0
    assert found["rss_mb"] > 0


def test_more_windows_are_longer_ones() -> None:
    more = measure(10, 8, 1)
    assert more["rows"] > measure(10, 7, 1)["rows"]
