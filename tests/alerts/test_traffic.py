"""Samples of a counter in promtool's notation."""

from alerts.traffic import drawn, missing


def test_a_counter_is_drawn_segment_by_segment() -> None:
    assert drawn([(3, 5), (2, 0), (1, 7)]) == "0 5+5x2 15+0x1 22+7x0"
    assert drawn([(0, 5)]) == "0"


def test_moments_without_a_sample_are_counted() -> None:
    assert missing(4) == "_x4"
    assert missing(0) == ""
