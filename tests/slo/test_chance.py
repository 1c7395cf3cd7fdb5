"""How often a tier rings for nothing: against a simulation of the very events, and against what must be so."""

import math

import numpy as np
import pytest

from slo.burn import Tier, tiers
from slo.chance import MONTH_S, Traffic, false_alerts
from slo.objective import parse


def tier(name: str, *, target: str = "99%", alerts: str = "{}") -> Tier:
    text = f"service: s\nobjectives: [{{name: o, signal: ttft, target: {target}, threshold: 1s, alerts: {alerts}}}]"
    (found,) = [tier for tier in tiers(parse(text)[0].objectives[0]) if tier.name == name]
    return found


def simulated(of: Tier, traffic: Traffic, *, months: int, seed: int) -> float:
    """Starts a month of the tier over Poisson arrivals, each coming and leaving both windows at its own moment."""
    rng = np.random.default_rng(seed)
    arrivals = rng.poisson(traffic.per_s * MONTH_S * months)
    at = np.sort(rng.uniform(0, MONTH_S * months, arrivals))
    bad = rng.random(arrivals) < traffic.bad_share
    moments = np.concatenate([at, at + of.long_s, at + of.short_s])
    steps = np.repeat([[1, 1], [-1, 0], [0, -1]], arrivals, axis=0)  # what each does to the long window and the short
    order = np.argsort(moments, kind="stable")
    needed, counts, starts, firing = float(of.bad_share_needed), np.zeros((2, 2)), 0, False
    for step, is_bad in zip(steps[order], np.tile(bad, 3)[order], strict=True):
        counts[:, 0] += step
        counts[:, 1] += step * is_bad
        (long_total, long_bad), (short_total, short_bad) = counts
        short_burns = short_bad > needed * short_total
        in_a_row = short_bad == short_total >= of.bad_in_a_row
        beyond_chance = in_a_row or short_bad - float(of.allowed_bad) * short_total > of.chance_events
        if firing:
            firing = long_total > 0 and (short_total == 0 or short_burns)
        elif long_bad >= of.min_bad_events and long_bad > needed * long_total and short_burns and beyond_chance:
            firing, starts = True, starts + 1
    return starts / months


@pytest.mark.parametrize(
    ("name", "target", "alerts", "bad_share", "months"),
    [
        ("fast", "99%", "{min_bad_events: 1}", 0.005, 12),
        ("medium", "99%", "{min_bad_events: 2}", 0.005, 50),
        ("medium", "80%", "{}", 0.15, 15),
    ],
    ids=["one bad event pages a quiet service", "two in six hours", "a fifth may be bad"],
)
def test_it_agrees_with_a_simulation(name: str, target: str, alerts: str, bad_share: float, months: int) -> None:
    of, traffic = tier(name, target=target, alerts=alerts), Traffic(6 / 3600, bad_share)
    expected = false_alerts(of, traffic)
    assert expected * months > 12
    assert simulated(of, traffic, months=months, seed=1) == pytest.approx(expected, rel=0.35)


def test_the_least_number_of_bad_events_is_what_keeps_a_quiet_service_quiet() -> None:
    traffic = Traffic(6 / 3600, 0.005)
    by_minimum = [false_alerts(tier("fast", alerts=f"{{min_bad_events: {m}}}"), traffic) for m in (1, 2, 5)]
    assert by_minimum[0] > 10 * by_minimum[1] > 100 * by_minimum[2]


@pytest.mark.parametrize("name", ["fast", "medium"])
@pytest.mark.parametrize("target", ["61%", "80%", "90%", "95%", "99%", "99.9%"])
@pytest.mark.parametrize("per_hour", [2, 60, 600, 36000, 3.6e6])
def test_default_tiers_page_for_nothing_less_than_once_in_ten_months(name: str, target: str, per_hour: float) -> None:
    of = tier(name, target=target)
    assert false_alerts(of, Traffic(per_hour / 3600, float(of.allowed_bad) / 2)) < 0.1


def test_a_service_that_should_ring_rings_without_end() -> None:
    assert math.isinf(false_alerts(tier("fast"), Traffic(1.0, 0.2)))


def test_a_service_without_a_bad_event_never_rings() -> None:
    assert false_alerts(tier("fast"), Traffic(1.0, 0.0)) == 0
