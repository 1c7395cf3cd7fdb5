"""Clocks that differ."""

import pytest

from firsttoken.status_reply import read
from tests.firsttoken.doctor.healthy import (
    NOW_S,
    Plant,
    Planted,
    collector,
    healthy,
    of_code,
    prometheus,
    receiving,
    server,
    status_body,
    wrong,
)

PLANTED: Planted = {
    "a server a minute behind": ("clock-skew", lambda f: server(f, offset_s=-70.0)),
    "a Prometheus ahead": ("clock-skew", lambda f: prometheus(f, offset_s=8.0)),
    "an Alertmanager ahead": ("clock-skew", lambda f: receiving(f, offset_s=600.0)),
    "a collector ahead": ("clock-skew", lambda f: collector(f, offset_s=30.0)),
    "a collector that judged in the future": (
        "clock-skew",
        lambda f: collector(f, offset_s=None, status=read(status_body() | {"at_s": NOW_S + 40})),
    ),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert len(of_code(plant(healthy()), code)) == 1


def test_how_far_and_which_way_is_told() -> None:
    (finding,) = of_code(server(healthy(), offset_s=-200.0), "clock-skew")
    assert (finding.what, finding.severity) == ("its clock is 3m behind this machine's", "error")
    (finding,) = of_code(server(healthy(), offset_s=8.0), "clock-skew")
    assert (finding.what, finding.severity) == ("its clock is 8s ahead of this machine's", "warning")


@pytest.mark.parametrize("offset_s", [None, 0.0, 4.9, -4.9])
def test_what_a_date_cannot_tell_is_no_skew(offset_s: float | None) -> None:
    assert wrong(server(healthy(), offset_s=offset_s)) == set()
    old = read(status_body() | {"at_s": NOW_S - 4000})  # an evaluation that is old, as readiness tells
    assert wrong(collector(healthy(), offset_s=offset_s, status=old)) == set()
