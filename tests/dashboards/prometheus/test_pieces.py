"""What several expressions share."""

from dashboards.prometheus.pieces import folded, legend, rate, series
from slo.signals import TICKS


def test_series_without_labels_have_no_braces() -> None:
    assert series(TICKS, {}) == "firsttoken_collector_ticks_total"
    assert series("up", {"job": "x"}) == 'up{job="x"}'


def test_a_rate_is_over_the_interval_that_grafana_reckons_also_of_the_past() -> None:
    assert rate("a") == "rate(a[$__rate_interval])"
    assert rate("a", offset="1d") == "rate(a[$__rate_interval] offset 1d)"


def test_a_fold_and_a_legend_name_their_labels() -> None:
    assert folded("sum", ("a", "b"), "x") == "sum by (a, b) (x)"
    assert legend(("a", "b"), "c") == "{{a}} {{b}} c"
