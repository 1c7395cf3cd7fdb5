"""KV pressure, growing queues, drift: put to the real rule engine by promtool."""

from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.group import Alert, Group
from alerts.saturation_alert import saturation_alerts
from alerts.synthetic_load import synthetic_rule
from tests.alerts.support import firing, promtool_test, spec

pytestmark = pytest.mark.tools

GROUP = Group("g", 30, (synthetic_rule(spec()), *saturation_alerts(spec(), Links())))
KV = firing("LLMKVCachePressure", by="instance")
QUEUE = firing("LLMQueueGrowing", by="instance")
DRIFT = firing("LLMLatencyDrift", by="signal, kind")


def of(name: str, instance: str = "a", more: str = "") -> str:
    return f'firsttoken_{name}{{service_name="chat",instance="{instance}"{more}}}'


def occupancy(instance: str = "a", rank: str = "0") -> str:
    return of("kv_cache_occupancy_ratio", instance, f',rank="{rank}"')


PREEMPTIONS, WAITING, ENDED = (of(name) for name in ("engine_preemptions_total", "engine_waiting", "requests_total"))
A, NOBODY = {'{instance="a"}': 1.0}, dict[str, float]()
OLDEST = of("requests_oldest_age_seconds")
PREDICTED = of("time_to_first_token_predicted_seconds")
SYNTHETIC = of("requests_total", more=',class="synthetic"')
FULL = {occupancy(): "0.97x80", PREEMPTIONS: "0+1x80"}

PRESSURE = {
    "full, and sequences are thrown out": ({occupancy(): "0.97x80", PREEMPTIONS: "0+1x80"}, A),
    "full, and nobody is thrown out": ({occupancy(): "1x80", PREEMPTIONS: "7x80"}, NOBODY),
    "thrown out of a cache that has room": ({occupancy(): "0.6x80", PREEMPTIONS: "0+1x80"}, NOBODY),
    "full, and most requests are synthetic": ({**FULL, ENDED: "0+9x80", SYNTHETIC: "0+10x80"}, NOBODY),
    "full, and some requests are synthetic": ({**FULL, ENDED: "0+9x80", SYNTHETIC: "0+8x80"}, A),
    "full for a moment": ({occupancy(): "0.5x70 1x1 0.5x9", PREEMPTIONS: "0+1x80"}, NOBODY),
    "the fullest of two ranks": ({occupancy(): "0.1x80", occupancy(rank="1"): "1x80", PREEMPTIONS: "0+1x80"}, A),
    "one instance's cache and another's preemptions": ({occupancy("b"): "1x80", PREEMPTIONS: "0+1x80"}, NOBODY),
}


@pytest.mark.parametrize("case", PRESSURE)
def test_kv_pressure(tmp_path: Path, case: str) -> None:
    series, expected = PRESSURE[case]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=[("35m", KV, expected)], step="30s")


GROWING = {
    "it grows past what drains in time": ({WAITING: "0+1x80", ENDED: "0+30x80"}, A),
    "it grows and drains in time": ({WAITING: "0+1x80", ENDED: "0+9000x80"}, NOBODY),
    "it is long and shrinks": ({WAITING: "200-1x80", ENDED: "0+30x80"}, NOBODY),
    "it is long and stays": ({WAITING: "200x80", ENDED: "0+30x80"}, NOBODY),
    "it drains in time, and the oldest waits": ({WAITING: "0+1x80", ENDED: "0+9000x80", OLDEST: "9x80"}, A),
    "nobody counts, and the oldest waits": ({WAITING: "0+1x80", OLDEST: "9x80"}, A),
    "nobody counts, and the oldest waits no longer than it may": ({WAITING: "0+1x80", OLDEST: "0.4x80"}, NOBODY),
    "it drains in time, and the next first token is predicted late": (
        {WAITING: "0+1x80", ENDED: "0+9000x80", PREDICTED: "9x80"},
        A,
    ),
    "nobody counts, and the next first token is predicted in time": ({WAITING: "0+1x80", PREDICTED: "0.4x80"}, NOBODY),
    "most of what ends is synthetic": ({WAITING: "0+1x80", ENDED: "0+10x80", SYNTHETIC: "0+11x80"}, NOBODY),
    "nothing ends at all": ({WAITING: "0+1x80", ENDED: "0x80"}, A),
    "four wait": ({WAITING: "0x60 1 2 3 4 4x16", ENDED: "0x80"}, NOBODY),
}


@pytest.mark.parametrize("case", GROWING)
def test_a_growing_queue(tmp_path: Path, case: str) -> None:
    series, expected = GROWING[case]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=[("38m", QUEUE, expected)], step="30s")


def test_without_a_ttft_objective_nothing_says_how_long_a_queue_may_be() -> None:
    other = spec(signal="e2e")
    names = [rule.alert for rule in saturation_alerts(other, Links())]
    assert names == ["LLMKVCachePressure", "LLMLatencyDrift"]


def test_a_shift_of_the_server_is_told_and_one_of_the_mix_is_not(tmp_path: Path) -> None:
    def drift(signal: str, kind: str) -> str:
        more = f',model_name="m1",signal="{signal}",source="proxy",kind="{kind}"'
        return f'firsttoken_latency_drift_ratio{{service_name="chat",instance="collector"{more}}}'

    series = {
        drift("ttft", "server"): "0.3x10 stale",
        drift("tpot", "mix"): "0.5x20",
        drift("e2e", "unknown"): "-0.4x20",
    }
    server = {'{signal="ttft",kind="server"}': 1.0}
    checks = [("4m", DRIFT, server), ("8m", DRIFT, {})]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=checks, step="30s")


def test_all_are_tickets() -> None:
    assert {rule.labels["notify"] for rule in GROUP.rules if isinstance(rule, Alert)} == {"ticket"}
