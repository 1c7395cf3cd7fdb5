"""What flags ask of a certification, and what of an earlier one may be gone on with."""

import argparse
import hashlib
import json
from pathlib import Path

import pytest

from capacity.certify.asked import asked, resumed
from capacity.certify.cli import add_to
from capacity.errors import CapacityError, WorkloadError
from capacity.reports import Reports
from slo.signals import SYNTHETIC_CLASS
from tests.capacity.certify.test_cli import SPEC
from tests.capacity.stored.test_recorded import a_day
from tests.collector.storage.test_commit import after

PLAIN = ("--target", "http://h", "--model", "m", "--workload", "20-60:8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec in the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slo.yaml").write_text(SPEC)


def flags(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_to(parser, {})
    return parser.parse_args(argv)


def test_flags_become_a_setting_and_the_settings_that_repeat_it() -> None:
    found = asked(flags(*PLAIN, "--peak", "3.5", "--minutes", "10", "--seed", "4"), {})
    assert found.setting.target.url == "http://h:80"
    assert [one.name for one in found.setting.promises.judged] == ["ttft", "answered"]
    assert (found.peak_rps, found.rigour.most_seconds, found.path) == (3.5, 600, Path("capacity-certify.json"))
    assert (found.reports, found.database, found.varies) == (Reports(None, None), None, False)
    assert found.most_s == 600
    named = ("service", "model", "workload", "mean_tokens", "seed", "class", "workload_note")
    assert [found.settings[name] for name in named] == ["chat", "m", "20-60:8", [40, 8], 4, SYNTHETIC_CLASS, ""]


def test_what_a_run_must_last_is_less_than_it_may_for_by_chance_it_ends_sooner() -> None:
    brief, whole = (asked(flags(*PLAIN, "--minutes", text), {}).rigour for text in ("2", "15"))
    assert brief.least_seconds == pytest.approx(0.8 * brief.most_run_seconds)
    assert whole.least_seconds == 30


def test_sensitivity_takes_a_quarter_longer() -> None:
    found = asked(flags(*PLAIN, "--minutes", "10", "--sensitivity", "--note", "vLLM 9, 1 GPU"), {})
    assert found.varies
    assert 600 < found.most_s <= 750
    assert found.settings["note"] == "vLLM 9, 1 GPU"


def test_a_trace_is_named_with_its_digest() -> None:
    Path("trace.csv").write_text("in_tok,out_tok\n10,5\n20,\n")
    found = asked(flags(*PLAIN[:4], "--workload", "trace.csv"), {})
    digest = hashlib.sha256(Path("trace.csv").read_bytes()).hexdigest()
    assert found.settings["workload_sha256"] == digest
    assert found.settings["workload_note"] == "50% of its requests have no tokens in or out, and none of these is sent"


def test_a_recorded_workload_brings_its_lengths_and_its_peak() -> None:
    after("firsttoken.db", a_day)
    argv = ("--target", "http://h", "--model", "m", "--workload", "recorded", "--database", "firsttoken.db")
    found = asked(flags(*argv), {})
    assert found.setting.workload.lengths.mean == pytest.approx((600, 100), rel=0.05)
    assert found.peak_rps == pytest.approx(4.0, rel=0.1)
    assert "no single request is recorded" in str(found.settings["workload_note"])
    by_hand = asked(flags(*argv, "--peak", "9"), {})
    assert by_hand.peak_rps == 9
    with pytest.raises(WorkloadError, match="no tokens of service chat, model other: state --workload IN:OUT"):
        asked(flags(*argv[:2], "--model", "other", *argv[4:]), {})
    peak_alone = asked(flags(*PLAIN, "--peak", "recorded", "--database", "firsttoken.db"), {})
    assert peak_alone.peak_rps == found.peak_rps


REFUSED = {
    "recorded by nobody": ((*PLAIN[:4], "--workload", "recorded"), "--workload recorded: by whom?"),
    "a peak recorded by nobody": ((*PLAIN, "--peak", "recorded"), "--peak recorded: by whom?"),
    "a peak below nothing": ((*PLAIN, "--peak", "-3"), "--peak -3 is no rate"),
    "a peak that is no number": ((*PLAIN, "--peak", "nan"), "--peak nan is no rate"),
    "a peak that is none": ((*PLAIN, "--peak", "much"), "--peak much is no rate"),
    "no page's place": ((*PLAIN, "--html", "no/such"), "--html no/such cannot be written"),
    "no database": ((*PLAIN, "--database", "none.db"), "none.db cannot be used"),
}


@pytest.mark.parametrize(("argv", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_asked_is_said(argv: tuple[str, ...], says: str) -> None:
    with pytest.raises(CapacityError, match=says.replace("?", r"\?")):
        asked(flags(*argv), {})


def test_only_the_same_settings_are_gone_on_with() -> None:
    path = Path("r.json")
    heard = {"calm_s": 1.0, "alone": {"ask": {}, "bad": [], "looks": [], "facts": {}}, "ceiling": None, "runs": []}
    path.write_text(json.dumps({"settings": {"seed": 1, "tokens": {"fixed": 5, "each": 2}}, "heard": heard}))
    account, tokens = resumed(path, {"seed": 1})
    assert account.calm_s == 1
    assert tokens is not None
    assert tokens.words(25) == 10
    with pytest.raises(WorkloadError, match="was made with seed 1, not 2: begin anew"):
        resumed(path, {"seed": 2})
    for text in ("{}", '{"settings": {}}', '{"settings": {"tokens": {"x": 1}}, "heard": {}}', '{"settings": 3}'):
        path.write_text(text)
        with pytest.raises(WorkloadError, match="holds no result to go on with"):
            resumed(path, {})
    path.write_text('{"settings": {"tokens": {"fixed": 0, "each": 0}}, "heard": {}}')
    with pytest.raises(WorkloadError, match="says that a word makes 0 tokens: begin anew"):
        resumed(path, {})
