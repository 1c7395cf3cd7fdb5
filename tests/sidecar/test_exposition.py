import math
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from sidecar.exposition import Page
from sidecar.histogram import ClassicHistogram, EdgeBuckets
from sidecar.tally import Number
from slo.signals import HEARTBEAT, IN_FLIGHT, KV_OCCUPANCY, RANK, REQUEST_MODEL, REQUESTS, SOURCE, SPEC_INFO, TPOT, TTFT

M = (REQUEST_MODEL, "m")


def samples(page: Page) -> dict[str, float]:
    """Every sample by its line, as a scraper would parse the page."""
    return {
        " ".join([sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))]): sample.value
        for family in text_string_to_metric_families(page.text().decode())
        for sample in family.samples
    }


def page(environment: str = "") -> Page:
    return Page("chat", environment)


def test_counters_and_gauges_have_the_names_and_labels_of_the_signals() -> None:
    made = page()
    made.numbers(
        [Number(REQUESTS, (M, ("firsttoken.outcome", "ok")), 3), Number(IN_FLIGHT, (M,), 2), Number(HEARTBEAT, (), 9)]
    )
    assert samples(made) == {
        "firsttoken_requests_total class= model_name=m outcome=ok service_name=chat": 3,
        "firsttoken_requests_in_flight model_name=m service_name=chat": 2,
        "firsttoken_heartbeat_total model_name= service_name=chat": 9,
    }


def test_the_environment_is_a_label_where_it_is_set() -> None:
    made = page("prod")
    made.numbers([Number(IN_FLIGHT, (M,), 2)])
    assert list(samples(made)) == ["firsttoken_requests_in_flight environment=prod model_name=m service_name=chat"]


def test_points_of_one_metric_make_one_family() -> None:
    made = page()
    made.numbers(
        [Number(KV_OCCUPANCY, (M,), 0.5), Number(IN_FLIGHT, (M,), 1), Number(KV_OCCUPANCY, (M, (RANK, "1")), 0.25)]
    )
    assert made.text().decode().count("# TYPE firsttoken_kv_cache_occupancy_ratio gauge") == 1
    assert sorted(samples(made).values()) == [0.25, 0.5, 1]


def test_a_threshold_is_an_exact_edge() -> None:
    histogram = ClassicHistogram([0.25, 1.0])
    for value in (0.25, 0.2501):
        histogram.add(value)
    made = page()
    made.histograms([(TTFT, (M,), histogram)])
    base = "gen_ai_server_time_to_first_token_seconds"
    labels = "model_name=m service_name=chat"
    assert samples(made) == {
        f"{base}_bucket le=0.25 {labels}": 1,
        f"{base}_bucket le=1.0 {labels}": 2,
        f"{base}_bucket le=+Inf {labels}": 2,
        f"{base}_count {labels}": 2,
        f"{base}_sum {labels}": 0.5001,
    }


def test_where_an_engine_tells_a_latency_too_its_source_tells_them_apart() -> None:
    ours, theirs = ClassicHistogram([1.0]), EdgeBuckets((0.5,), (2, 1), None)
    made = page()
    made.histograms([(TTFT, (M,), ours), (TTFT, (M, (SOURCE, "engine")), theirs), (TPOT, (M,), ours)])
    found = samples(made)
    base, labels = "gen_ai_server_time_to_first_token_seconds", "model_name=m service_name=chat"
    assert found[f"{base}_bucket le=0.5 {labels} source=engine"] == 2
    assert found[f"{base}_bucket le=+Inf {labels} source=engine"] == 3
    assert f"{base}_sum {labels} source=engine" not in found  # it tells none
    assert found[f"{base}_count {labels} source="] == 0  # which a scraper reads as no label at all
    assert f"gen_ai_server_time_per_output_token_seconds_count {labels}" in found
    assert made.text().decode().count(f"# TYPE {base} histogram") == 1


def test_what_is_not_finite_is_absent() -> None:
    made = page()
    made.numbers([Number(KV_OCCUPANCY, (M,), value) for value in (math.nan, math.inf)])
    assert samples(made) == {}


def test_a_name_cannot_break_the_page() -> None:
    made = Page('a"b\\c\nd', "")
    made.numbers([Number(IN_FLIGHT, ((REQUEST_MODEL, 'x"\\\n}'),), 1)])
    (family,) = text_string_to_metric_families(made.text().decode())
    assert family.samples[0].labels == {"service_name": 'a"b\\c\nd', "model_name": 'x"\\\n}'}


def test_an_info_is_a_gauge_of_one() -> None:
    made = page()
    made.info(SPEC_INFO, "hash", "abc")
    assert samples(made) == {"firsttoken_spec_info hash=abc service_name=chat": 1}


class Reference:
    """The same page through prometheus_client, family by family."""

    def __init__(self) -> None:
        self.families: list[Family] = []

    def collect(self) -> Iterator[Family]:
        yield from self.families

    def text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


names = st.text(max_size=8).filter(lambda text: text.isprintable() or "\n" in text)


@given(names, names, names, st.lists(st.floats(0, 1e12), max_size=6), st.integers(0, 1 << 53), st.floats(-1e9, 1e9))
def test_the_page_is_what_prometheus_client_would_write(
    service: str, environment: str, model: str, values: list[float], count: int, level: float
) -> None:
    histogram = ClassicHistogram([0.25, 1.0, 5000000.0])
    for value in values:
        histogram.add(value)
    made, reference = Page(service, environment), Reference()
    base = {"service_name": service} | ({"environment": environment} if environment else {})
    labels = [*base, "model_name"]

    made.histograms([(TTFT, ((REQUEST_MODEL, model),), histogram)])
    latency = HistogramMetricFamily(TTFT.prometheus, TTFT.description, labels=labels)
    buckets = [(str(floatToGoString(edge)), float(total)) for edge, total in histogram.cumulative()]  # type: ignore[no-untyped-call]
    latency.add_metric([*base.values(), model], buckets, histogram.sum)

    made.numbers([Number(HEARTBEAT, (), count), Number(KV_OCCUPANCY, ((REQUEST_MODEL, model),), level)])
    beats = CounterMetricFamily(HEARTBEAT.prometheus, HEARTBEAT.description, labels=labels)
    beats.add_metric([*base.values(), ""], count)
    kv = GaugeMetricFamily(KV_OCCUPANCY.prometheus, KV_OCCUPANCY.description, labels=[*labels, "rank"])
    kv.add_metric([*base.values(), model, ""], level)

    made.info(SPEC_INFO, "hash", "abc")
    info = GaugeMetricFamily(SPEC_INFO.prometheus, SPEC_INFO.description, labels=[*base, "hash"])
    info.add_metric([*base.values(), "abc"], 1)

    reference.families = [latency, beats, kv, info]
    assert made.text() == reference.text()
