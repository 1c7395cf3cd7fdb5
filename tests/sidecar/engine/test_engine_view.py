from sidecar.counting.tally import Distribution, Number
from sidecar.engine.engine_view import EngineView
from slo.signals import HEARTBEAT, REQUEST_MODEL, TTFT
from tests.sidecar.engine_pages import RUNNING, VLLM, engine, histogram, page, ttft


def view() -> EngineView:
    return EngineView(lambda model: f"label of {model}")


def test_what_the_engine_tells_has_our_labels() -> None:
    seen = view()
    for count in (5, 7):
        growth = seen.page(page(ttft(count, 0)), VLLM)
    assert growth.histograms[TTFT, "m"].count == 2
    (point,) = seen.latencies.take(delta=True)
    assert point.attributes == ((REQUEST_MODEL, "label of m"),)


def test_models_under_one_label_add_up() -> None:
    seen = EngineView(lambda _: "other")
    for count in (0, 3):
        seen.page(page(*(ttft(count, 1, labels=f'model_name="{model}"') for model in "ab")), VLLM)
    (point,) = seen.latencies.take(delta=True)
    assert point.buckets.count == 6


def test_there_is_nothing_to_send_before_the_engine_shows_a_histogram() -> None:
    seen = view()
    seen.page(page(RUNNING), VLLM)
    assert seen.interval(1, 2, delta=True, lived_s=100) is None


def test_an_idle_engine_is_still_heard_of() -> None:
    seen = view()
    seen.page(page(ttft(5, 0)), VLLM)
    beats = []
    for lived_s in (100, 110, 120):
        interval = seen.interval(1, 2, delta=True, lived_s=lived_s)
        assert interval is not None
        assert interval.distributions == ()
        beats += interval.counters
    assert beats == [Number(HEARTBEAT, (), beat) for beat in (0, 10, 10)]


def test_cumulative_heartbeats_count_from_when_it_was_first_heard() -> None:
    seen = view()
    seen.page(page(ttft(5, 0)), VLLM)
    beats = [seen.interval(1, 2, delta=False, lived_s=lived_s) for lived_s in (100, 110, 120)]
    assert [None if one is None else one.counters[0].value for one in beats] == [0, 10, 20]


def test_an_interval_has_what_came_in_it() -> None:
    seen = view()
    for count in (5, 7):
        seen.page(page(ttft(count, 0)), VLLM)
    interval = seen.interval(10, 20, delta=True, lived_s=1)
    assert interval is not None
    assert (interval.start_ns, interval.end_ns, interval.delta) == (10, 20, True)
    (point,) = interval.distributions
    assert isinstance(point, Distribution)
    assert point.buckets.count == 2


def test_a_series_without_a_model_waits_until_it_holds_something() -> None:
    labels: dict[str | None, str] = {}
    seen = EngineView(lambda model: labels[model])
    tgi = [histogram("tgi_request_duration", {"0.5": count, "+Inf": count}, labels="") for count in (3, 5)]
    seen.page(page(tgi[0]), engine("tgi"))
    labels[None] = "m"
    seen.page(page(tgi[1]), engine("tgi"))
    (point,) = seen.latencies.take(delta=True)
    assert (point.attributes, point.buckets.count) == (((REQUEST_MODEL, "m"),), 2)
