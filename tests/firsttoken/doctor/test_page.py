"""The pages of our own, read by our own metrics."""

from firsttoken.doctor.facts import Reach
from firsttoken.doctor.page import (
    by_label,
    objectives,
    reaches,
    read_own,
    samples,
    sees_requests,
    services,
    spec_hashes,
    value,
)
from slo.signals import EXPORT_DROPPED, HEARTBEAT, SLO_EVENTS
from tests.firsttoken.doctor.healthy import NAMES, SPEC, page, sidecar_text


def test_a_value_is_the_sum_of_its_samples_and_none_without_any() -> None:
    one = page('firsttoken_heartbeat_total{service_name="a"} 3\nfirsttoken_heartbeat_total{service_name="b"} 4\n')
    assert value(one, HEARTBEAT) == 7
    assert value(one, HEARTBEAT, service_name="b") == 4
    assert value(one, HEARTBEAT, service_name="c") is None
    assert value(one, SLO_EVENTS) is None
    assert [sample.value for sample in samples(one, HEARTBEAT, service_name="a")] == [3]


def test_a_counter_is_told_by_a_label() -> None:
    line = 'firsttoken_export_dropped_total{{reason="{}",signal="{}"}} {}\n'
    one = page(line.format("a", "x", 1) + line.format("a", "y", 2) + line.format("b", "x", 4))
    assert by_label(one, EXPORT_DROPPED, "reason") == {"a": 3, "b": 4}


def test_who_is_spoken_of_and_by_which_spec() -> None:
    one = page(sidecar_text() + 'firsttoken_heartbeat_total{environment="prod",service_name="b"} 1\n')
    assert services(one) == {("", "chat"), ("prod", "b")}
    assert spec_hashes(one) == {"chat": SPEC.hash}
    assert objectives(one) == {("chat", name) for name in NAMES}
    assert sees_requests(one)
    assert not sees_requests(page("firsttoken_heartbeat_total 1\n"))


def test_how_far_histograms_reach_is_read_of_what_the_sidecar_measured_itself() -> None:
    name = "gen_ai_server_request_duration_seconds_bucket"
    line = name + '{{le="{}",model_name="m",service_name="chat",source="{}"}} {}\n'
    own = line.format("1.0", "", 5) + line.format("160.0", "", 7) + line.format("+Inf", "", 9)
    engine = line.format("60.0", "engine", 0) + line.format("+Inf", "engine", 9)
    assert list(reaches(page(own + engine))) == [Reach("e2e", "m", 160.0, 9, 2)]
    assert list(reaches(page(""))) == []


def test_what_is_not_ours_is_left_out() -> None:
    assert read_own(b"vllm:num_requests_running 4\nup 1\n").samples == {}
