import pytest

from sidecar.otlp_settings import SettingError, read

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}


def test_nothing_is_exported_without_an_endpoint() -> None:
    settings = read({})
    assert (settings.traces, settings.metrics) == (None, None)
    assert settings.delta
    assert (settings.metric_interval_s, settings.span_delay_s) == (10, 5)


def test_a_base_endpoint_gets_a_path_and_an_own_one_is_taken_as_it_is() -> None:
    settings = read({**BASE, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m:1/own"})
    assert settings.traces is not None
    assert settings.metrics is not None
    assert settings.traces.url == "http://c:4318/v1/traces"
    assert settings.metrics.url == "http://m:1/own"


def test_only_one_lane_can_have_an_endpoint() -> None:
    settings = read({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:1/x"})
    assert settings.traces is not None
    assert settings.metrics is None


def test_a_flag_wins_over_every_endpoint_of_the_environment() -> None:
    settings = read({**BASE, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:1/x"}, endpoint="http://f:9")
    assert settings.traces is not None
    assert settings.traces.url == "http://f:9/v1/traces"


def test_what_the_specification_lets_be_set() -> None:
    settings = read(
        {
            **BASE,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20x, X-A = 1,",
            "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "b=2",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "Cumulative",
            "OTEL_METRIC_EXPORT_INTERVAL": "2000",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_BSP_MAX_QUEUE_SIZE": "100",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "500",
        }
    )
    assert settings.traces is not None
    assert settings.metrics is not None
    assert settings.traces.headers == (("authorization", "Bearer x"), ("x-a", "1"))
    assert settings.metrics.headers == (("b", "2"),)
    assert (settings.traces.timeout_s, settings.traces.gzip, settings.traces.certificate) == (2.5, True, "ca.pem")
    assert not settings.delta
    assert (settings.metric_interval_s, settings.span_delay_s) == (2, 0.2)
    assert (settings.span_queue, settings.span_batch) == (100, 100)


def test_grpc_takes_the_endpoint_without_a_path() -> None:
    settings = read({"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert settings.traces is not None
    assert (settings.traces.protocol, settings.traces.url) == ("grpc", "http://c:4317")


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}], ids=str)
def test_export_can_be_switched_off(off: dict[str, str]) -> None:
    assert read({**BASE, **off}).traces is None


BAD = [
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "c"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://c"},
    {**BASE, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
    {**BASE, "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"},
    {**BASE, "OTEL_EXPORTER_OTLP_HEADERS": "secret"},
    {**BASE, "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
    {"OTEL_METRIC_EXPORT_INTERVAL": "0"},
    {"OTEL_BSP_SCHEDULE_DELAY": "-1"},
    {"OTEL_METRIC_EXPORT_INTERVAL": "0.001"},
    {"OTEL_BSP_MAX_QUEUE_SIZE": "0.5"},
    {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "0.5"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://["},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:port"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:99999"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "c:99999", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    {**BASE, "OTEL_EXPORTER_OTLP_HEADERS": "secret name=1"},
    {**BASE, "OTEL_EXPORTER_OTLP_HEADERS": "x=secret%0d%0ay: 1"},
    {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "sometimes"},
]


@pytest.mark.parametrize("environ", BAD, ids=str)
def test_an_impossible_value_is_said_with_what_would_be_right(environ: dict[str, str]) -> None:
    with pytest.raises(SettingError, match=r"use|write") as error:
        read(environ)
    assert "secret" not in str(error.value)
