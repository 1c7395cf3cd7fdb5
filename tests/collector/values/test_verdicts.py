"""Rows of verdicts know whose they are."""

from tests.collector.drift_scene import DRIFT


def test_a_drift_is_of_one_latency() -> None:
    assert DRIFT.latency == ("", "chat", "m", "ttft", "proxy")
