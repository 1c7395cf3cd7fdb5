"""What is said of a collector."""

import pytest

from firsttoken.status_reply import read
from tests.firsttoken.doctor.healthy import (
    COLLECTOR_TEXT,
    NAMES,
    NOW_S,
    Plant,
    Planted,
    collector,
    healthy,
    of_code,
    page,
    says,
    status_body,
    wrong,
)

UP = 'firsttoken_collector_receiver_up{receiver="alertmanager"} '
MIDDLEWARE = (
    'firsttoken_latency_seconds{model_name="m",quantile="0.5",service_name="chat",signal="ttft",'
    'source="middleware",window="5m"} 1\n'
)
LAG = "firsttoken_collector_lag_seconds 2.5\n"

PLANTED: Planted = {
    "a collector that nobody sends to": (
        "no-telemetry",
        lambda f: collector(f, page=page(COLLECTOR_TEXT.replace(LAG, ""))),
    ),
    "senders that stopped": (
        "collector-lag",
        lambda f: collector(f, page=page(COLLECTOR_TEXT.replace("lag_seconds 2.5", "lag_seconds 400"))),
    ),
    "an Alertmanager that the collector cannot reach": ("receiver-down", lambda f: says(f, collector_says=UP + "0\n")),
    "an objective without traffic": ("objective-idle", lambda f: collector(f, status=read(status_body("no_data")))),
    "a service that nobody promised anything of": ("service-unjudged", lambda f: collector(f, unjudged=("batch",))),
    "a proxy before a middleware": ("double-counting", lambda f: says(f, collector_says=MIDDLEWARE)),
    "a collector of an old release": ("release-differs", lambda f: collector(f, version="0.0.9")),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert of_code(plant(healthy()), code)


def test_an_idle_objective_among_busy_ones_is_told_from_an_idle_service() -> None:
    (one,) = of_code(collector(healthy(), status=read(status_body("no_data"))), "objective-idle")
    assert "chat/ttft" in one.what
    assert "match" in one.fix
    rows = [{"service": "chat", "model": "*", "objective": name, "state": "no_data"} for name in NAMES]
    found = of_code(collector(healthy(), status=read({"at_s": NOW_S, "objectives": rows})), "objective-idle")
    assert len(found) == len(NAMES)
    assert all("requests pass by a sidecar" in one.fix for one in found)


def test_a_model_without_traffic_is_no_idle_objective() -> None:
    body = {"at_s": NOW_S, "objectives": [{"service": "chat", "model": "m", "objective": "ttft", "state": "no_data"}]}
    assert wrong(collector(healthy(), status=read(body))) == set()


def test_an_engine_told_of_beside_a_proxy_counts_once() -> None:
    assert 'source="engine"' in COLLECTOR_TEXT
    assert wrong(healthy()) == set()
