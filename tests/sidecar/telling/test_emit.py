import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sidecar import limits
from sidecar.counting.tally import Interval, Number
from sidecar.otlp_settings import read
from sidecar.telling import otlp_wire
from sidecar.telling.emit import Emitter, Outbox, Parcel, resource_attributes
from slo.signals import EXPORT_DROPPED, EXPORT_FAILED, REQUESTS
from tests.sidecar.receiver import attributes, eventually, receiving

RESOURCE = otlp_wire.resource([("service.name", "chat")])


@contextlib.contextmanager
def emitting(url: str, *, close_s: float = 5.0, **environ: str) -> Iterator[Emitter]:
    emitter = Emitter(read({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environ}), resource=RESOURCE, version="1")
    emitter.start()
    try:
        yield emitter
    finally:
        emitter.close(close_s)


def drops(emitter: Emitter) -> dict[tuple[str, str], int]:
    """Items given up, by lane and reason."""
    return {
        (lane, reason): count for (metric, lane, reason), count in emitter.counts().items() if metric is EXPORT_DROPPED
    }


def span(name: str) -> bytes:
    return otlp_wire.block(2, otlp_wire.text(5, name))


def interval(count: int) -> Interval:
    return Interval(1, 2, delta=True, counters=(Number(REQUESTS, (), count),))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_FIRST_S", 0.05)
    monkeypatch.setattr(limits, "RETRY_LONGEST_S", 0.1)


def test_spans_and_metrics_arrive_with_their_resource() -> None:
    with receiving() as receiver, emitting(receiver.url) as emitter:
        emitter.offer_span(span("a"))
        emitter.offer_interval(interval(3))
        emitter.flush_spans()
        eventually(lambda: len(receiver.accepted) == 2)
        assert [found.name for found in receiver.spans()] == ["a"]
        assert receiver.metrics()[0].sum.data_points[0].as_int == 3
        assert receiver.resource() == {"service.name": "chat"}
        assert drops(emitter) == {}


def test_an_endpoint_that_is_down_costs_no_time_and_later_gets_everything_once() -> None:
    with socket.socket() as reserve:
        reserve.bind(("127.0.0.1", 0))
        port = reserve.getsockname()[1]
    with emitting(f"http://127.0.0.1:{port}") as emitter:
        began_s = time.monotonic()
        for number in range(1000):
            emitter.offer_span(span(str(number)))
        for number in range(5):
            emitter.offer_interval(interval(number))
        emitter.flush_spans()
        assert time.monotonic() - began_s < 1
        time.sleep(0.3)
        with receiving(port) as receiver:
            eventually(lambda: len(receiver.spans()) == 1000 and len(receiver.metrics()) == 5)
            assert [found.name for found in receiver.spans()] == [str(number) for number in range(1000)]
            assert drops(emitter) == {}


def test_a_second_sending_is_the_same_bytes() -> None:
    with receiving() as receiver, emitting(receiver.url) as emitter:
        receiver.statuses = [503, 429, 502]
        emitter.offer_interval(interval(1))
        eventually(lambda: len(receiver.bodies) == 1)
        emitter.offer_interval(interval(2))
        eventually(lambda: len(receiver.accepted) == 2)
        first = receiver.bodies[0][1]
        assert [body for _, body in receiver.bodies[:4]] == [first] * 4
        failed = {(EXPORT_FAILED, "metrics", f"http_{status}"): 1 for status in (503, 429, 502)}
        assert emitter.counts() == failed
        assert receiver.accepted[0][1] == first


def test_what_is_refused_for_good_is_dropped_and_counted_and_stops_nothing() -> None:
    with receiving() as receiver, emitting(receiver.url) as emitter:
        receiver.statuses = [400]
        emitter.offer_span(span("bad"))
        emitter.flush_spans()
        eventually(lambda: drops(emitter) == {("traces", "http_400"): 1})
        emitter.offer_span(span("good"))
        emitter.flush_spans()
        eventually(lambda: [found.name for found in receiver.spans()] == ["good"])


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    with receiving() as receiver:
        settings = read({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_MAX_QUEUE_SIZE": "10"})
        emitter = Emitter(settings, resource=RESOURCE, version="1")
        assert [emitter.offer_span(span("a")) for _ in range(15)] == [True] * 10 + [False] * 5
        assert drops(emitter) == {("traces", "queue_full"): 5}
        emitter.start()
        emitter.close(5)
        assert len(receiver.spans()) == 10


def test_intervals_that_nobody_encodes_are_bounded() -> None:
    emitter = Emitter(read({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}), resource=RESOURCE, version="1")
    for number in range(limits.INTERVAL_QUEUE + 3):
        emitter.offer_interval(interval(number))
    assert drops(emitter) == {("metrics", "queue_full"): 3}


def test_an_outbox_gives_up_its_oldest_when_full() -> None:
    outbox = Outbox(100)
    assert outbox.put(Parcel(b"x" * 60, 3)) == 0
    assert outbox.put(Parcel(b"y" * 60, 5)) == 3
    assert outbox.items == 5
    assert outbox.put(Parcel(b"z" * 1000, 7)) == 5  # one alone stays, however large
    assert outbox.take() == Parcel(b"z" * 1000, 7)
    assert outbox.first() is None
    assert outbox.items == 0


def test_a_full_batch_does_not_wait_for_its_time() -> None:
    with receiving() as receiver, emitting(receiver.url, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10") as emitter:
        for number in range(25):
            emitter.offer_span(span(str(number)))
        eventually(lambda: len(receiver.spans()) >= 10)


def test_case_e12_the_last_telemetry_is_sent_at_the_end() -> None:
    with receiving() as receiver:
        with emitting(receiver.url) as emitter:
            for name in ("a", "b", "c"):
                emitter.offer_span(span(name))
            emitter.offer_interval(interval(3))
        assert [found.name for found in receiver.spans()] == ["a", "b", "c"]
        assert len(receiver.metrics()) == 1


@pytest.mark.parametrize("case", ["refuses", "accepts and never answers"])
def test_case_e12_an_endpoint_that_fails_does_not_hold_up_the_end(case: str, caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.ExitStack() as stack:
        port = 1
        if case != "refuses":
            deaf = stack.enter_context(socket.socket())
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            port = deaf.getsockname()[1]
        began_s = time.monotonic()
        with emitting(f"http://127.0.0.1:{port}", close_s=0.5) as emitter:
            emitter.offer_span(span("a"))
            emitter.flush_spans()
        assert time.monotonic() - began_s < 5
        lost = [record.message for record in caplog.records if "could not be exported" in record.message]
        assert lost == ["shutdown: 1 items of traces could not be exported"]


def test_a_batch_that_cannot_be_encoded_ends_no_lane(caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as receiver, emitting(receiver.url) as emitter:
        emitter.offer_interval(Interval(-1, -1, delta=True, counters=(Number(REQUESTS, (), 1),)))
        eventually(lambda: drops(emitter) == {("metrics", "encoding"): 1})
        emitter.offer_interval(interval(1))
        eventually(lambda: len(receiver.metrics()) == 1)
    assert "could not be encoded" in caplog.text


def test_a_batch_that_cannot_be_encoded_takes_none_of_its_neighbours_with_it() -> None:
    with receiving() as receiver:
        emitter = Emitter(read({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}), resource=RESOURCE, version="1")
        emitter.offer_interval(interval(1))
        emitter.offer_interval(Interval(-1, -1, delta=True, counters=(Number(REQUESTS, (), 1),)))
        emitter.offer_interval(interval(2))
        emitter.start()
        eventually(lambda: len(receiver.metrics()) == 2)
        emitter.close(5)
        assert drops(emitter) == {("metrics", "encoding"): 1}


def test_what_never_left_its_queue_is_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with emitting(f"http://127.0.0.1:{deaf.getsockname()[1]}", close_s=0.3) as emitter:
            emitter.offer_span(span("a"))
            emitter.flush_spans()
            deaf.accept()[0].close()
            emitter.offer_span(span("b"))
    lost = [record.message for record in caplog.records if "could not be exported" in record.message]
    assert lost == ["shutdown: 2 items of traces could not be exported"]


def test_an_endpoint_that_goes_on_refusing_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as receiver, emitting(receiver.url) as emitter:
        receiver.statuses = [500] * 3
        for number in range(3):
            emitter.offer_span(span(str(number)))
            emitter.flush_spans()
            eventually(lambda number=number: drops(emitter) == {("traces", "http_500"): number + 1})  # type: ignore[misc]
    assert caplog.text.count("refuses traces (http_500)") == 1


def test_a_sender_that_cannot_be_made_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with emitting(
        "https://127.0.0.1:1", OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_CERTIFICATE="/nowhere/ca.pem"
    ) as emitter:
        eventually(lambda: "cannot be exported: FileNotFoundError" in caplog.text)
        emitter.offer_span(span("a"))


def test_what_the_engine_says_goes_in_the_same_body_under_its_own_resource() -> None:
    of_engine = otlp_wire.resource([("service.name", "engine")])
    with receiving() as receiver:
        settings = read({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
        emitter = Emitter(settings, resource=RESOURCE, engine_resource=of_engine, version="1")
        emitter.start()
        emitter.offer_interval(replace(interval(3), engine=interval(5)))
        emitter.offer_interval(interval(7))
        emitter.close(5.0)
        assert len(receiver.accepted) == 2
        sent = [
            (attributes(one.resource.attributes)["service.name"], point.as_int)
            for one in receiver.resource_metrics()
            for scope in one.scope_metrics
            for metric in scope.metrics
            for point in metric.sum.data_points
        ]
    assert sent == [("chat", 3), ("engine", 5), ("chat", 7)]


def test_nothing_starts_without_an_endpoint() -> None:
    emitter = Emitter(read({}), resource=RESOURCE, version="1")
    emitter.start()
    assert not emitter.wants_spans
    assert not emitter.wants_metrics
    emitter.close(0.1)


def test_the_resource_is_ours_over_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,service.name=theirs,team=a%20b")
    found = resource_attributes({"service.name": "ours"}, version="1")
    assert found["service.version"] == "1"
    assert found["service.name"] == "ours"
    assert found["deployment.environment.name"] == "prod"
    assert found["team"] == "a b"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=theirs")
    assert resource_attributes({}, version="1")["service.version"] == "theirs"
