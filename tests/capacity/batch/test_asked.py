"""Flags as values."""

import argparse
from pathlib import Path

import pytest

from capacity.batch.asked import Setup, add_to, setup_of
from capacity.batch.knob import Route
from capacity.batch.result import Memory
from capacity.errors import CapacityError

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: slow, signal: e2e, percentile: 90, threshold: 5s}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms}
  - {name: answered, signal: availability, target: 99%}
"""
NEEDED = ("--target", "http://h:1", "--model", "m", "--batch-url", "http://h:1/admin/batch")


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC)
    return str(path)


def asked(slo: str, *argv: str) -> Setup:
    parser = argparse.ArgumentParser()
    add_to(parser, {})
    return setup_of(parser.parse_args(["--slo", slo, *argv]))


def test_steps_are_judged_full_and_waits_open_loop(slo: str) -> None:
    made = asked(slo, *NEEDED, "--rate", "3", "--most-requests", "50")
    assert [goal.name for goal in made.plan.held_goals] == ["tpot"]
    assert made.plan.thresholds_s == (0.05,)
    assert [goal.name for goal in made.plan.open_goals] == ["ttft", "slow"]
    assert (made.plan.wait_s, made.plan.rate_rps) == (0.5, 3.0)
    assert (made.plan.least_requests, made.plan.most_requests) == (50, 50)
    assert made.server.knob == Route("http://h:1/admin/batch")
    assert made.settings["mean_tokens"] == [128.0, 64.0]
    assert made.memory == Memory(None, 16)


def test_the_cache_bounds_the_batch(slo: str) -> None:
    made = asked(slo, *NEEDED, "--kv-tokens", "4000", "--workload", "100:100")
    assert 20 < made.plan.most_batch < 27  # 150 tokens each on average, and room for chance


USAGE = {
    "no target": ((), "--target is missing"),
    "no knob": (NEEDED[:4], "--batch-url is missing"),
    "no batch": ((*NEEDED, "--most-batch", "0"), "--most-batch 0: must be at least 1"),
    "no rate": ((*NEEDED, "--rate", "0"), "--rate 0: must be above 0"),
    "no cache": ((*NEEDED, "--kv-tokens", "50"), "--kv-tokens 50 do not hold one request of --workload 128:64"),
    "no lengths": ((*NEEDED, "--workload", "x:y"), "neither lengths nor a file"),
    "no end": ((*NEEDED, "--most-seconds", "nan"), "--most-seconds nan: must be at least 10"),
    "no bound": ((*NEEDED, "--most-seconds", "inf"), "--most-seconds inf: must be at least 10"),
    "no beginning": ((*NEEDED, "--least-seconds", "nan"), "--least-seconds nan: must be at least 0"),
    "no time": ((*NEEDED, "--least-seconds", "-1"), "--least-seconds -1: must be at least 0"),
}


@pytest.mark.parametrize(("argv", "says"), USAGE.values(), ids=USAGE.keys())
def test_what_cannot_be_asked_is_said(argv: tuple[str, ...], says: str, slo: str) -> None:
    with pytest.raises(CapacityError, match=says):
        asked(slo, *argv)


def test_a_model_is_a_name_that_can_be_sent() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_to(parser, {})
    with pytest.raises(argparse.ArgumentError, match="is no name"):
        parser.parse_args(["--model", "a\nb"])
