"""What is generated: the committed files, the same bytes for the same input, and nothing for flags that cannot be."""

from pathlib import Path

import pytest
import yaml

import alerts
from alerts.annotations import Links
from alerts.artefacts import Formats, artefacts, needed_scrape_interval_s, runbook
from alerts.crd import Place
from alerts.document import GENERATED
from alerts.errors import SpecLabelError, TargetError
from alerts.grafana import Provisioning
from alerts.routes import Routing
from alerts.rules import Target
from slo.objective import load, parse
from slo.signals import SIGNALS
from slo.trouble import TROUBLES
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
        "chat.slow.tests.yaml",
        "a.b-c.rules.yaml",
        "a.b-c.tests.yaml",
        "a.b-c.slow.tests.yaml",
        "_fleet.rules.yaml",
        "alertmanager.yaml",
        "alertmanager-routes.yaml",
    }
    assert all(made[name].startswith(GENERATED) for name in made if name.endswith(".yaml"))
    linked = {line.split()[-1] for text in made.values() for line in text.splitlines() if "runbook_url:" in line}
    assert linked == {name for name in made if name.startswith("runbooks/")}


def test_runbooks_that_live_elsewhere_are_not_written() -> None:
    made = artefacts((spec(),), Target(links=Links("https://wiki.example/{alertname}")), Routing())
    assert not [name for name in made if name.startswith("runbooks/")]


def test_every_burn_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    known = {signal.alert for signal in SIGNALS.values()} | set(TROUBLES)
    folder = Path(alerts.__file__).parent / "runbooks"
    assert {path.stem for path in folder.glob("*.md")} == known
    for name in known:
        text = runbook(name)
        assert text.startswith(f"# {name}\n")
        assert [section for section in ("## Confirm", "## Decide", "## Silence") if section not in text] == []


def test_every_alert_stands_in_the_docs() -> None:
    page = (ROOT / "docs/alerts.md").read_text()
    known = {signal.alert for signal in SIGNALS.values()} | set(TROUBLES)
    assert {name for name in known if f"`{name}`" not in page} == set()


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
    ("short", "every_s", "needed"),
    [("1m", 60, "15s"), ("4m", 61, "1m"), ("15s", 4, "3s")],
    ids=["D15: one scrape in the window", "a second too long", "three and a half scrapes in the window"],
)
def test_d15_a_window_that_holds_fewer_than_four_scrapes_is_refused(short: str, every_s: int, needed: str) -> None:
    tiers = [{"name": "fast", "budget": "50%", "long": "10m", "short": short}]
    one = spec(alerts={"tiers": tiers})
    with pytest.raises(TargetError, match=f"service chat, objective ttft: .* scrape every {needed}, or give its tiers"):
        artefacts((one,), Target(scrape_interval_s=every_s), Routing())
    assert artefacts((one,), Target(scrape_interval_s=needed_scrape_interval_s(one.objectives[0])), Routing())


@pytest.mark.parametrize("label", ["notify", "burn_tier", "policy_step", "service_name", "instance"])
def test_a_label_that_alerts_have_already_is_refused(label: str) -> None:
    with pytest.raises(SpecLabelError, match=f"service chat, objective ttft: label {label} is one that alerts have"):
        artefacts((spec(labels={label: "x"}),), Target(), Routing())


def test_services_that_are_one_to_kubernetes_are_refused() -> None:
    specs = (*parse(FIVE), *parse(FIVE.replace("chat", "CHAT")))
    with pytest.raises(TargetError, match="--crd: services chat and CHAT are both firsttoken-chat to Kubernetes"):
        artefacts(specs, Target(), Routing(), Formats(Place()))


def test_every_format_is_made_of_the_same_rules_and_gives_the_same_bytes() -> None:
    formats = Formats(Place(), Provisioning("prom"))
    once, again = (artefacts((*parse(FIVE), *parse(ODD)), Target((3, 0)), Routing(), formats) for _ in range(2))
    assert list(once.items()) == list(again.items())
    for name in ("chat", "a.b-c", "_fleet"):
        rules = yaml.safe_load(once[f"{name}.rules.yaml"])
        assert yaml.safe_load(once[f"{name}.prometheusrule.yaml"])["spec"] == rules
        grafana = yaml.safe_load(once[f"{name}.grafana.yaml"])
        alerts = [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]
        assert len([rule for group in grafana["groups"] for rule in group["rules"]]) == len(alerts)


def test_newer_fields_are_written_for_newer_versions_only() -> None:
    old = artefacts((spec(),), Target(), Routing())["chat.rules.yaml"]
    new = artefacts((spec(),), Target((2, 53), query_offset_s=60), Routing())["chat.rules.yaml"]
    assert "query_offset" not in old
    assert new.count("query_offset: 1m") == new.count("limit: ")
