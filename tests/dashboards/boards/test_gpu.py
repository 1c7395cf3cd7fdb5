"""The GPU dashboard: every figure of the driver's, and dcgm-exporter's where it can be."""

from slo.signals import GPU_METRICS
from tests.dashboards.support import built, figures, query_of


def test_every_metric_of_a_gpu_is_on_it_but_the_size_of_its_memory() -> None:
    text = " ".join(query_of(target) for one in figures(built(name="gpu")) for target in one["targets"])
    assert {m.prometheus for m in GPU_METRICS if m.prometheus not in text} == {"hw_gpu_memory_limit_bytes"}


def test_the_tables_know_no_dcgm() -> None:
    titles = [one["title"] for one in built("sqlite", name="gpu")["panels"]]
    assert "By dcgm-exporter" not in titles
    assert "By dcgm-exporter" in [one["title"] for one in built(name="gpu")["panels"]]


def test_its_percent_and_mebibytes_are_shown_as_shares_and_bytes() -> None:
    shown = {one["title"]: (query_of(one["targets"][0]), one) for one in figures(built(name="gpu"))}
    text, one = shown["Utilization"]
    assert text.endswith("* 0.01")
    assert one["fieldConfig"]["defaults"]["unit"] == "percentunit"
    text, one = shown["Memory in use"]
    assert text.endswith("* 1048576")
    assert one["fieldConfig"]["defaults"]["unit"] == "bytes"
