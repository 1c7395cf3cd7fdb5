"""The tools run over a folder, and what is said when one is missing."""

import re
from pathlib import Path

import pytest

from alerts import check
from alerts.artefacts import artefacts
from alerts.errors import AlertsError, ToolMissingError
from alerts.routes import Routing
from slo.objective import parse
from tests.alerts.support import TARGET, spec, tool
from tests.alerts.test_rules import FIVE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in artefacts((spec(),), TARGET, Routing()).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_tool_has_its_command(folder: Path) -> None:
    rules, tests, routes = (str(folder / name) for name in ("chat.rules.yaml", "chat.tests.yaml", "alertmanager.yaml"))
    found = check.commands(folder)
    assert found[:3] == (
        ("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(folder / "_fleet.rules.yaml"), rules),
        ("promtool", "test", "rules", tests),
        ("amtool", "check-config", routes),
    )
    assert {command[:4] for command in found[3:]} == {("amtool", "config", "routes", "test")}
    assert {command[5] for command in found[3:]} == {
        f"--verify.receivers=firsttoken-{name}" for name in ("page", "ticket", "nobody")
    }


def test_routes_that_cannot_be_read_are_an_error(folder: Path) -> None:
    (folder / "alertmanager-routes.yaml").write_text("- {labels: {a: b}}\n")
    with pytest.raises(AlertsError, match="is no list of labels and receivers"):
        check.commands(folder)


def test_a_folder_without_rules_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AlertsError, match=r"holds no \*.rules.yaml: run firsttoken alerts build"):
        check.commands(tmp_path)


def test_what_is_no_folder_is_not_called_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, why in ((file, "Not a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(AlertsError, match=f"{path.name}: {why}: give a folder"):
            check.commands(path)


def test_missing_tools_are_named_with_the_package_that_brings_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ToolMissingError, match="amtool and promtool not found on PATH: install prometheus-alertm"):
        list(check.run(folder))


@pytest.mark.tools
def test_what_was_generated_is_fine(folder: Path) -> None:
    tool("promtool"), tool("amtool")
    found = [finding.is_fine for finding in check.run(folder)]
    assert found == [True] * len(check.commands(folder))


SHORT = "alerts: {tiers: [{name: fast, budget: 5%, long: 3m, short: 1m}]}"


@pytest.mark.tools
def test_two_services_of_five_objectives_each_pass_every_tool(tmp_path: Path) -> None:
    # promtool walks through minutes here instead of hours: the windows are short, the rules are as many.
    five = re.sub(r"(, window: \w+)?(, match: {.*})?}$", rf", window: 1h\2, {SHORT}}}", FIVE, flags=re.MULTILINE)
    specs = (*parse(five), *parse(five.replace("chat", "search")))
    assert [len(one.objectives) for one in specs] == [5, 5]
    made = artefacts(specs, TARGET, Routing())
    assert made == artefacts(specs, TARGET, Routing())
    for name, text in made.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = list(check.run(tmp_path))
    assert [finding.said for finding in found if not finding.is_fine] == []
    assert {" ".join(command[:3]) for command in check.commands(tmp_path)} == {
        "promtool check rules", "promtool test rules", f"amtool check-config {tmp_path}/alertmanager.yaml",
        "amtool config routes",
    }  # fmt: skip


@pytest.mark.tools
def test_what_is_broken_is_told(folder: Path) -> None:
    tool("promtool"), tool("amtool")
    rules, routes = folder / "chat.rules.yaml", folder / "alertmanager.yaml"
    rules.write_text(rules.read_text().replace("sum by", "sum bye", 1))
    routes.write_text(routes.read_text().replace("receiver: firsttoken-page", "receiver: nobody-we-know", 1))
    found = list(check.run(folder))
    assert not any(finding.is_fine for finding in found)
    assert "bye" in found[0].said
    assert "nobody-we-know" in found[2].said
