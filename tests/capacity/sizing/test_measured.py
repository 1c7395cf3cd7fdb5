"""What is known of a replica, from certify's own JSON or by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from capacity.errors import WorkloadError
from capacity.sizing.measured import Alone, assumed, measured, refuse_for_less
from slo.objective import Spec
from tests.capacity.certify.test_result import BRACKET, CROWD, result
from tests.capacity.sizing.test_replica import OBJECTIVES

SETTINGS = {"model": "m", "mean_tokens": [40.0, 32.0]}
SUMMARY = {"ttft": {"p50": 0.03}, "tpot": {"p50": 0.02}, "e2e": {"p50": 0.9}}


def certified(folder: Path, **changes: Any) -> str:
    """The file that certify writes."""
    found = result(*BRACKET)
    found.account.alone.facts = {"summary": SUMMARY}
    path = folder / "certify.json"
    path.write_text(json.dumps({**found.as_json(SETTINGS), **changes}))
    return str(path)


def test_a_certificate_says_how_a_request_fares(tmp_path: Path) -> None:
    path = certified(tmp_path)
    found = measured(path)
    assert (found.certified_rps, found.refuted_rps, found.binding) == (5, 8, "tpot")
    assert found.alone == Alone(0.03, 0.02, 0.9)
    assert found.stay_s == pytest.approx(CROWD["by_little"] / 5)
    assert (found.model, found.mean_tokens, found.source) == ("m", (40, 32), path)
    assert measured(f"chat={path}") == assumed(found, OBJECTIVES) == found


WITHIN_1S = {"name": "ttft", "signal": "ttft", "percentile": "0.95", "threshold": "1"}
LAST_SPEC = Spec(service="chat", objectives=OBJECTIVES)


def test_one_certified_for_less_than_is_promised_today_is_refused(tmp_path: Path) -> None:
    tpot = {"name": "tpot", "signal": "tpot", "percentile": "0.99", "threshold": "0.050"}
    looser = measured(certified(tmp_path, settings=SETTINGS | {"objectives": [WITHIN_1S, tpot], "spec": "x"}))
    with pytest.raises(
        WorkloadError, match=r"certified for other promises: ttft was 95% within 1s and is .* certify again"
    ):
        refuse_for_less(looser, LAST_SPEC)
    refuse_for_less(measured(certified(tmp_path)), LAST_SPEC)  # one that does not say
    refuse_for_less(measured("2.5"), LAST_SPEC)


def test_the_result_of_a_sizing_is_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="is no result of capacity certify"):
        measured(certified(tmp_path, replay_replicas=4))


def test_the_usual_file_is_taken_where_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkloadError, match=r"--capacity is missing, and there is no capacity-certify\.json"):
        measured(None)
    stored = json.loads(Path(certified(tmp_path)).read_text())
    assert measured(None, stored).source == "the database's last certificate"
    assert measured(None, stored).certified_rps == 5
    Path(certified(tmp_path)).rename("capacity-certify.json")
    assert measured(None, stored).source == "capacity-certify.json"
    assert measured(None).certified_rps == 5


def test_a_rate_by_hand_leaves_half_of_each_objective_for_waiting() -> None:
    found = assumed(measured("2.5"), OBJECTIVES)
    assert (found.certified_rps, found.refuted_rps, found.stay_s) == (2.5, None, None)
    assert found.alone == Alone(0.25, 0.025, None)


def test_what_an_older_result_does_not_say_is_taken_from_the_objectives(tmp_path: Path) -> None:
    found = assumed(measured(certified(tmp_path, heard={}, peak_concurrency={}, settings={})), OBJECTIVES)
    assert (found.alone, found.stay_s, found.mean_tokens) == (Alone(0.25, 0.025, None), None, None)


REFUSED = {
    "no rate": ("0", "one replica takes more than 0 requests/s"),
    "no number": ("nan", "one replica takes more than 0 requests/s"),
    "no file": ("none.json", "none.json cannot be read: No such file"),
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_capacity_is_refused(text: str, says: str) -> None:
    with pytest.raises(WorkloadError, match=says.replace(".", r"\.")):
        measured(text)


def test_a_file_without_a_certified_rate_sizes_nothing(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="too tight; nothing can be sized"):
        measured(certified(tmp_path, certified_rps=None, says="too tight"))
    other = tmp_path / "other.json"
    for text in ("[]", "{", "{}", "[" * 100_000):
        other.write_text(text)
        with pytest.raises(WorkloadError, match="is no result of capacity certify"):
            measured(str(other))


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), 10**400, True, "4", [4]])
def test_what_is_no_rate_is_no_certificate(rate: object, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="nothing can be sized"):
        measured(certified(tmp_path, certified_rps=rate))


@pytest.mark.parametrize("tokens", [[0, 1], [-3, 5], [float("nan"), 5], [float("inf"), 5], [5], "5", ["5", 5]])
def test_what_are_no_lengths_are_unknown(tokens: object, tmp_path: Path) -> None:
    assert measured(certified(tmp_path, settings={"mean_tokens": tokens})).mean_tokens is None
