"""What is generated: the committed files, the same bytes for the same input, and nothing for flags that cannot be."""

from pathlib import Path

import pytest

import alerts
from alerts.annotations import Links
from alerts.artefacts import artefacts, runbook
from alerts.document import GENERATED
from alerts.errors import SpecLabelError, TargetError
from alerts.routes import Routing
from alerts.rules import Target
from slo.objective import load, parse
from slo.signals import SIGNALS
from tests.alerts.support import spec
from tests.alerts.test_rules import FIVE, ODD

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "alerts/generated"


def test_the_committed_files_are_those_of_slo_yaml() -> None:
    made = artefacts(load([ROOT / "slo.yaml"]), Target(), Routing())
    committed = {path.relative_to(GOLDEN).as_posix(): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert sorted(committed) == sorted(made)
    for name, text in made.items():
        assert committed[name] == text, f"{name} differs: run make generate"


def test_the_same_input_gives_the_same_bytes() -> None:
    once, again = (artefacts((*parse(FIVE), *parse(ODD)), Target(), Routing()) for _ in range(2))
    assert list(once.items()) == list(again.items())


def test_every_service_has_rules_and_tests_and_every_alert_its_runbook() -> None:
    made = artefacts((*parse(FIVE), *parse(ODD)), Target(), Routing())
    assert {name for name in made if "/" not in name} == {
        "chat.rules.yaml",
        "chat.tests.yaml",
        "a.b-c.rules.yaml",
        "a.b-c.tests.yaml",
        "alertmanager.yaml",
    }
    assert all(made[name].startswith(GENERATED) for name in made if name.endswith(".yaml"))
    linked = {line.split()[-1] for text in made.values() for line in text.splitlines() if "runbook_url:" in line}
    assert linked == {name for name in made if name.startswith("runbooks/")}


def test_runbooks_that_live_elsewhere_are_not_written() -> None:
    made = artefacts((spec(),), Target(links=Links("https://wiki.example/{alertname}")), Routing())
    assert not [name for name in made if name.startswith("runbooks/")]


def test_every_burn_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    known = {signal.alert for signal in SIGNALS.values()} | {
        "LLMBudgetExhausted",
        "LLMEngineStalled",
        "LLMTelemetryAbsent",
    }
    folder = Path(alerts.__file__).parent / "runbooks"
    assert {path.stem for path in folder.glob("*.md")} == known
    for name in known:
        text = runbook(name)
        assert text.startswith(f"# {name}\n")
        assert [section for section in ("## Confirm", "## Decide", "## Silence") if section not in text] == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target((2, 41)), "--prometheus-version 2.41 is too old: 2.42 or newer is needed"),
        (Target((2, 52), query_offset_s=30), "--query-offset needs Prometheus 2.53"),
        (Target(links=Links("https://wiki.example/")), "--runbook-url https://wiki.example/ names no alert"),
    ],
)
def test_a_target_that_cannot_be_met_is_refused(target: Target, message: str) -> None:
    with pytest.raises(TargetError, match=message.replace("?", r"\?")):
        artefacts((spec(),), target, Routing())


@pytest.mark.parametrize(
    ("label", "message"), [("a-b", "label a-b is no label name"), ("notify", "label notify is one that alerts have")]
)
def test_a_label_that_no_alert_can_carry_is_refused(label: str, message: str) -> None:
    with pytest.raises(SpecLabelError, match=f"service chat, objective ttft: {message}"):
        artefacts((spec(labels={label: "x"}),), Target(), Routing())


def test_newer_fields_are_written_for_newer_versions_only() -> None:
    old = artefacts((spec(),), Target(), Routing())["chat.rules.yaml"]
    new = artefacts((spec(),), Target((2, 53), query_offset_s=60), Routing())["chat.rules.yaml"]
    assert "query_offset" not in old
    assert new.count("query_offset: 1m") == new.count("limit: ")
