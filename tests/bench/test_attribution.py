"""bench/attribution.py: its incidents are those it says, its matrix counts them, and one is played on a live server."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from injected import matrix
from injected.episode import Outcome
from injected.incidents import KINDS, NO_FAULT, incidents

from collector.judging.cause import Kind
from demo_server.faults import HEALTHY

SCRIPT = Path(__file__).parents[2] / "bench" / "attribution.py"


def bench(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=150)


def outcome(kind: str = "slow", said: str = "decode_slower", *, background: float = 1.0) -> Outcome:
    right = next(one.right for one in KINDS if one.name == kind)
    return Outcome(f"{kind} 0", kind, right, background, 1, said)


def test_every_fault_that_the_demo_server_can_have_is_played_alone_and_beside_a_change_of_the_load() -> None:
    assert HEALTHY.as_json() == NO_FAULT
    faults = {kind.name for kind in KINDS if kind.is_fault}
    assert faults == set(HEALTHY.as_json())
    assert {kind.right for kind in KINDS} <= set(get_args(Kind))
    played = Counter((one.kind.name, one.background != 1) for one in incidents(KINDS, range(10)))
    assert all(played[name, changes] == 10 for name in faults for changes in (False, True))
    assert {one.background for one in incidents(KINDS, range(2))} == {0.6, 1.0, 1.5}


def test_the_same_seeds_give_the_same_incidents_and_others_give_others() -> None:
    assert incidents(KINDS, range(3)) == incidents(KINDS, range(3))
    slow = [one.trouble.fault["slow"] for one in incidents(KINDS[:1], range(10))]
    assert len(set(slow)) > 15


def test_the_matrix_counts_what_was_said_of_what() -> None:
    found = [
        *(outcome() for _ in range(9)),
        outcome(said="unknown"),
        outcome(background=1.5, said="batch"),
        outcome("hang", "engine_hung"),
    ]
    head, rows = matrix.table(found)
    assert head == ["fault", "decode_slower", "engine_hung", "batch", "unknown", "no alert", "right"]
    assert rows == [
        ["slow", "9", "·", "·", "1", "·", "9/10"],
        ["slow, load changes", "·", "·", "1", "·", "·", "0/1"],
        ["hang", "·", "1", "·", "·", "·", "1/1"],
    ]
    assert "| slow | 9 | · | · | 1 | · | 9/10 |" in list(matrix.lines(found, markdown=True))
    assert len({len(line) for line in matrix.lines(found)}) == 1


@pytest.mark.parametrize(
    ("spoilt", "broken"),
    [
        ({}, ""),
        ({"said": "unknown"}, ""),
        ({"said": "queue"}, "a wrong one"),
        ({"said": ""}, "told by an alert"),
        ({"tries": 3}, ""),
    ],
)
def test_promises_are_nine_of_ten_right_and_none_wrong(spoilt: dict[str, object], broken: str) -> None:
    found = [*(outcome() for _ in range(9)), replace(outcome(), **spoilt)]  # type: ignore[arg-type]
    said = [str(verdict) for verdict in matrix.verdicts(found) if not verdict.kept]
    assert bool(said) == bool(broken)
    assert all(broken in line for line in said)
    assert any("played again" in str(verdict) for verdict in matrix.verdicts(found)) == ("tries" in spoilt)


def test_more_than_one_in_ten_unknown_breaks_the_promise() -> None:
    found = [*(outcome() for _ in range(8)), outcome(said="unknown"), outcome(said="unknown")]
    assert [verdict.kept for verdict in matrix.verdicts(found)] == [False, True, True]


def test_one_trouble_of_a_live_service_is_named(tmp_path: Path) -> None:
    written = tmp_path / "outcomes.json"
    ran = bench("--quick", "--kinds", "away", "--stacks", "1", "--json", written, "--check")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (found,) = json.loads(written.read_text())
    assert found["said"] == "unreachable"
    assert found["text"].startswith("the server cannot be reached, ")
    assert "1 of 1 other troubles have their cause right" in ran.stdout


@pytest.mark.parametrize(
    ("flags", "said"), [(("--seeds", "0"), "from 1 to 100"), (("--kinds", "x"), "there is no such one; use slow, hang")]
)
def test_what_cannot_be_is_refused(flags: tuple[str, ...], said: str) -> None:
    ran = bench(*flags)
    assert ran.returncode == 2
    assert said in ran.stderr
