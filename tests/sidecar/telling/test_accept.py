"""What scrapers send, and who gets OpenMetrics for it."""

import pytest

from sidecar.telling.accept import wants_openmetrics

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROTOBUF_FIRST = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
TEXT_ONLY = "text/plain;version=0.0.4;q=1,*/*;q=0.1"

ACCEPTS = {
    PROMETHEUS_2_42: True,
    PROMETHEUS_3: True,
    PROTOBUF_FIRST: True,
    TEXT_ONLY: False,
    "application/openmetrics-text": True,
    "Application/OpenMetrics-Text; Version=1.0.0": True,
    'application/openmetrics-text; version="1.0.0"': True,
    "application/openmetrics-text, text/plain": True,
    "application/openmetrics-text;q=0.5, text/plain;q=0.4, */*": True,
    "application/openmetrics-text;q=0.5, */*;q=0.9": False,
    "application/openmetrics-text;q=0.3, text/plain;q=0.4": False,
    "application/openmetrics-text;q=0.3, text/*;q=0.4": False,
    "application/openmetrics-text;q=0": False,
    "application/openmetrics-text;version=0.0.1": False,
    "application/openmetrics-text;version=2.0.0, text/plain;q=0.1": False,
    "application/openmetrics-text;q=nonsense": False,
    "application/openmetrics-text;q=nan": False,
    "*/*": False,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": False,
    ";;q,,=": False,
    "": False,
}


@pytest.mark.parametrize("accept", ACCEPTS)
def test_openmetrics_is_for_who_asks_for_it(accept: str) -> None:
    assert wants_openmetrics(((b"Host", b"h"), (b"Accept", accept.encode()))) is ACCEPTS[accept]


def test_who_says_nothing_gets_the_text() -> None:
    assert not wants_openmetrics(((b"host", b"h"),))


def test_a_list_may_come_in_several_fields() -> None:
    fields = ((b"accept", b"text/plain;q=0.5"), (b"Accept", b"application/openmetrics-text"))
    assert wants_openmetrics(fields)
