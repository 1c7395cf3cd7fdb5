"""Figures in words: tables keyed by what they show."""

import pytest

from collector.values import words
from slo.objective import parse

DURATIONS = {0: "0 s", 59.6: "1 min", 61: "1 min 1 s", 3600: "1 h", 3725: "1 h 2 min", 90000: "1 d 1 h", 864e4: "100 d"}
LATENCIES = {0.0004: "0.40 ms", 0.0123: "12.3 ms", 0.412: "412 ms", 1.239: "1.24 s", 12.34: "12.3 s", 250: "250 s"}
SHARES = {1: "100 %", 0.874: "87 %", 0.034: "3.4 %", 0.0011: "0.11 %", 0: "0 %", -7.62: "-762 %", -0.5: "-50 %"}
BURNS = {0: "0.0×", 0.44: "0.4×", 13.4: "13×", 9.96: "10.0×"}


@pytest.mark.parametrize("seconds", DURATIONS)
def test_durations(seconds: float) -> None:
    assert words.duration(seconds) == DURATIONS[seconds]


@pytest.mark.parametrize("seconds", LATENCIES)
def test_latencies(seconds: float) -> None:
    assert words.latency(seconds) == LATENCIES[seconds]


@pytest.mark.parametrize("fraction", SHARES)
def test_shares(fraction: float) -> None:
    assert words.share(fraction) == SHARES[fraction]


@pytest.mark.parametrize("rate", BURNS)
def test_burns(rate: float) -> None:
    assert words.burn(rate) == BURNS[rate]


def test_what_is_unknown_is_a_dash() -> None:
    known = (words.duration, words.latency, words.share, words.burn, words.count)
    assert [say(None) for say in known] == [words.UNKNOWN] * len(known)


def test_values_speak_their_unit() -> None:
    assert words.value(0.5, "s") == "500 ms"
    assert words.value(0.5, "1") == "50 %"
    assert words.value(1234, "{request}") == "1,234"


PROMISES = {
    "{name: a, signal: ttft, percentile: 95, threshold: 500ms}": (
        "95 % of requests get a first token within 500 ms",
        "over 28 d",
    ),
    "{name: a, signal: tpot, percentile: 99.9, threshold: 0.05s, window: 1d}": (
        "99.9 % of requests get each further token within 50 ms",
        "over 1 d",
    ),
    "{name: a, signal: e2e, percentile: 90, threshold: 30s}": (
        "90 % of requests are answered whole within 30 s",
        "over 28 d",
    ),
    "{name: a, signal: availability, target: 99.9%}": ("99.9 % of requests are answered", "over 28 d"),
    "{name: a, signal: kv_occupancy, threshold: 90%, target: 99%}": (
        "99 % of the time the KV cache is at most 90 % full",
        "over 28 d",
    ),
    "{name: a, signal: queue, threshold: 10, target: 99%}": ("99 % of the time at most 10 requests wait", "over 28 d"),
}


@pytest.mark.parametrize("text", PROMISES)
def test_promises(text: str) -> None:
    objective = parse(f"service: chat\nobjectives: [{text}]")[0].objectives[0]
    assert (words.promise(objective), words.period(objective)) == PROMISES[text]
