"""The result in words and as JSON."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from capacity.certify.account import Account
from capacity.certify.evidence import Evidence, evidence
from capacity.certify.judge import Rigour
from capacity.certify.result import Result
from capacity.certify.search import Outcome, Probe, State
from capacity.certify.trial import AskRun, Ceiling, Goal, Seen
from slo.capacity_result import CapacityResult, read_results
from slo.objective import parse

GOALS = (Goal("ttft", 0.05), Goal("tpot", 0.05))
GOOD, BAD = np.zeros(400, dtype=np.int8), np.ones(400, dtype=np.int8)
CROWD = {"mean": 4.0, "p95": 7.0, "by_little": 4.1, "residual": 0.025}


def found(*bad: np.ndarray) -> tuple[Evidence, ...]:  # type: ignore[type-arg]
    return tuple(evidence([series]) for series in bad)


def probe(rate_rps: float, state: State, *, run: int, needs: float = 0.0) -> Probe:
    return Probe(rate_rps, state, "why", found(GOOD, BAD if state == "refuted" else GOOD), (run,), needs)


def result(*probes: Probe, peak_rps: float | None = None, why_not: str = "", **needs: float) -> Result:
    heard = Account(ceiling=Ceiling(10, 0.1, 8))
    for one in probes:
        heard.hear(AskRun(one.runs[0], one.rate_rps, "empty", 400), Seen((GOOD, GOOD), 40.0, 4.0))
        heard.over({"concurrency": CROWD})
    outcome = Outcome(GOALS, found(GOOD, GOOD), heard.ceiling, probes, why_not, **needs)
    return Result(outcome, heard, GOALS, Rigour(), peak_rps)


BRACKET = (
    probe(5, "certified", run=1),
    probe(8, "refuted", run=2),
    probe(6, "unresolved", run=3, needs=12_345),
)


def test_a_bracket_in_one_sentence() -> None:
    assert result(*BRACKET).sentence() == (
        "5 requests/s certified, 8 refuted by tpot, between unresolved (about 12,000 requests at 6/s would tell)"
    )
    assert result(BRACKET[0]).sentence() == "5 requests/s certified, above it unresolved"


def test_none_certified_says_why_and_what_would_tell() -> None:
    said = result(why_not="too tight", needs=999.0)
    assert (said.verdict, said.sentence()) == (
        "not_certifiable",
        "not certifiable: too tight; about 1,000 requests would tell",
    )
    assert result(why_not="x", needs=float("inf")).as_json({})["needs_requests"] is None


def test_a_run_that_was_too_short_says_which_flags_would_do() -> None:
    rigour = Rigour(most_requests=2000, most_run_seconds=60, most_seconds=600)
    said = replace(result(why_not="x", needs=1200.0, needs_at_rps=5.0), rigour=rigour)
    assert said.sentence() == "not certifiable: x; about 1,200 requests at 5/s would tell: --minutes 25"
    assert said.flags_to_tell(100.0, 5.0) == "--minutes 13"  # more than it had, though an estimate says it was enough
    assert said.flags_to_tell(9000.0, 5.0) == "--minutes 188 --most-requests 5000"
    assert said.flags_to_tell(float("inf"), 5.0) == said.flags_to_tell(100.0, 0.0) == ""


def test_json_holds_the_bracket_its_evidence_and_everything_heard() -> None:
    made = json.loads(json.dumps(result(*BRACKET, peak_rps=4.0).as_json({"seed": 3})))
    assert (made["verdict"], made["certified_rps"], made["refuted_rps"], made["binding"]) == ("certified", 5, 8, "tpot")
    assert made["headroom"] == pytest.approx(0.2)
    assert made["peak_concurrency"] == CROWD
    assert made["settings"] == {"seed": 3}
    assert [one["state"] for one in made["probes"]] == ["certified", "refuted", "unresolved"]
    first = made["probes"][0]
    assert first["objectives"][0]["interval"][0] == 0
    assert first["runs"][0]["facts"]["concurrency"] == CROWD
    assert len(made["heard"]["runs"]) == 3


def test_dashboards_draw_what_the_file_of_certify_says(tmp_path: Path) -> None:
    path = tmp_path / "certify.json"
    path.write_text(json.dumps(result(*BRACKET).as_json({})))
    specs = parse("service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}\n")
    assert read_results([str(path)], specs) == (
        CapacityResult("chat", certified_rps=Decimal(5), refuted_rps=Decimal(8)),
    )


def test_an_interrupted_search_has_no_verdict_yet() -> None:
    said = Result(None, Account(), GOALS, Rigour(), None)
    assert said.verdict == "interrupted"
    assert said.binding is None
    assert said.as_json({})["certified_rps"] is None
