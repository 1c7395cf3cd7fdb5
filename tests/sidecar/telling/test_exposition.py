import math
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar, Sample, Timestamp
from prometheus_client.utils import floatToGoString

from sidecar.counting.exemplar import Trace
from sidecar.counting.histogram import ClassicHistogram, EdgeBuckets
from sidecar.counting.tally import Number
from sidecar.telling.exposition import Exposition
from slo.signals import HEARTBEAT, IN_FLIGHT, KV_OCCUPANCY, RANK, REQUEST_MODEL, REQUESTS, SOURCE, SPEC_INFO, TPOT, TTFT

M = (REQUEST_MODEL, "m")


def line(sample: Sample) -> str:
    return " ".join([sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))])


def samples(page: Exposition) -> dict[str, float]:
    """Every sample by its line, as a scraper would parse the page."""
    families = text_string_to_metric_families(page.text().decode())
    return {line(sample): sample.value for family in families for sample in family.samples}


def openmetrics_families(page: Exposition) -> list[Family]:
    text = page.text(openmetrics=True).decode()
    return list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def page(environment: str = "") -> Exposition:
    return Exposition("chat", environment)


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
    made = Exposition('a"b\\c\nd', "")
    made.numbers([Number(IN_FLIGHT, ((REQUEST_MODEL, 'x"\\\n}'),), 1)])
    (family,) = text_string_to_metric_families(made.text().decode())
    assert family.samples[0].labels == {"service_name": 'a"b\\c\nd', "model_name": 'x"\\\n}'}


def test_an_info_is_a_gauge_of_one() -> None:
    made = page()
    made.info(SPEC_INFO, "hash", "abc")
    assert samples(made) == {"firsttoken_spec_info hash=abc service_name=chat": 1}


TRACE = Trace(bytes(range(16)), b"\x00spanid\xff", 1_700_000_000_250_000_000)


def test_openmetrics_is_read_by_its_parser_with_the_same_samples_and_what_a_bucket_points_at() -> None:
    ours, theirs = ClassicHistogram([0.25, 1.0]), EdgeBuckets((0.5,), (2, 1), None)
    for value, trace in ((0.1, TRACE), (0.2, None), (7.0, TRACE)):
        ours.add(value, trace)
    made = page("prod")
    made.histograms([(TTFT, (M,), ours), (TTFT, (M, (SOURCE, "engine")), theirs)])
    made.numbers([Number(REQUESTS, (M, ("firsttoken.outcome", "ok")), 3), Number(IN_FLIGHT, (M,), 2)])
    made.info(SPEC_INFO, "hash", "abc")
    families = openmetrics_families(made)
    kinds = {family.name: family.type for family in families}
    assert kinds["firsttoken_requests"] == "counter"
    found = [sample for family in families for sample in family.samples]
    assert {line(sample): sample.value for sample in found} == {
        name: value for name, value in samples(made).items() if "_count" not in name or "engine" not in name
    }  # a count without a sum is none of OpenMetrics
    pointing = {sample.labels["le"]: sample.exemplar for sample in found if sample.exemplar is not None}
    assert {edge: one.value for edge, one in pointing.items()} == {"0.25": 0.1, "+Inf": 7.0}
    assert pointing["0.25"].labels == {"trace_id": "000102030405060708090a0b0c0d0e0f", "span_id": "007370616e6964ff"}
    assert str(pointing["0.25"].timestamp) == "1700000000.250000000"


def test_the_text_format_knows_no_exemplars() -> None:
    histogram, made = ClassicHistogram([0.25]), page()
    histogram.add(0.1, TRACE)
    made.histograms([(TTFT, (M,), histogram)])
    text = made.text()
    assert b"trace_id" not in text
    assert b"EOF" not in text
    histogram.add(0.1, TRACE._replace(trace_id=bytes(16)))
    assert b'trace_id="0001' in made.text(openmetrics=True)  # what was added is kept as it was


class Reference:
    """The same page through prometheus_client, family by family."""

    def __init__(self) -> None:
        self.families: list[Family] = []

    def collect(self) -> Iterator[Family]:
        yield from self.families

    def text(self, *, openmetrics: bool) -> bytes:
        registry = CollectorRegistry()
        registry.register(self)
        write = generate_openmetrics if openmetrics else generate_latest
        return bytes(write(registry))


names = st.text(max_size=8).filter(lambda text: text.isprintable() or "\n" in text)


traces = st.builds(
    Trace, st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8), st.integers(0, (1 << 63) - 1)
)


Bucket = tuple[str, float] | tuple[str, float, Exemplar]


def told(histogram: ClassicHistogram) -> list[Bucket]:
    """Its buckets in prometheus_client's words, with what they point at."""
    found: list[Bucket] = []
    for place, (edge, total) in enumerate(histogram.cumulative()):
        bucket = str(floatToGoString(edge)), float(total)  # type: ignore[no-untyped-call]
        if place in histogram.exemplars:
            value, trace = histogram.exemplars[place]
            ids = {"trace_id": trace.trace_id.hex(), "span_id": trace.span_id.hex()}
            at = Timestamp(*divmod(trace.at_unix_ns, 10**9))
            found.append((*bucket, Exemplar(ids, value, at)))
        else:
            found.append(bucket)
    return found


@given(
    names,
    names,
    names,
    st.lists(st.tuples(st.floats(0, 1e12), st.none() | traces), max_size=6),
    st.integers(0, 1 << 53),
    st.floats(-1e9, 1e9),
)
def test_the_page_is_what_prometheus_client_would_write(
    service: str, environment: str, model: str, values: list[tuple[float, Trace | None]], count: int, level: float
) -> None:
    histogram = ClassicHistogram([0.25, 1.0, 5000000.0])
    for value, trace in values:
        histogram.add(value, trace)
    made, reference = Exposition(service, environment), Reference()
    base = {"service_name": service} | ({"environment": environment} if environment else {})
    labels = [*base, "model_name"]

    made.histograms([(TTFT, ((REQUEST_MODEL, model),), histogram)])
    latency = HistogramMetricFamily(TTFT.prometheus, TTFT.description, labels=labels)
    latency.add_metric([*base.values(), model], told(histogram), histogram.sum)

    made.numbers([Number(HEARTBEAT, (), count), Number(KV_OCCUPANCY, ((REQUEST_MODEL, model),), level)])
    beats = CounterMetricFamily(HEARTBEAT.prometheus, HEARTBEAT.description, labels=labels)
    beats.add_metric([*base.values(), ""], count)
    kv = GaugeMetricFamily(KV_OCCUPANCY.prometheus, KV_OCCUPANCY.description, labels=[*labels, "rank"])
    kv.add_metric([*base.values(), model, ""], level)

    made.info(SPEC_INFO, "hash", "abc")
    info = GaugeMetricFamily(SPEC_INFO.prometheus, SPEC_INFO.description, labels=[*base, "hash"])
    info.add_metric([*base.values(), "abc"], 1)

    reference.families = [latency, beats, kv, info]
    assert made.text(openmetrics=True) == reference.text(openmetrics=True)
    assert made.text() == reference.text(openmetrics=False)
