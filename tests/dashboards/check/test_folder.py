"""The files of a folder, and what two of them must not share."""

import json
from pathlib import Path

import pytest

from dashboards.check.folder import checked
from dashboards.errors import UsageError
from tests.dashboards.support import built


def put(folder: Path, name: str, content: object) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def test_dashboards_in_folders_below_are_judged_too(tmp_path: Path) -> None:
    put(tmp_path, "a/overview.json", built())
    (finding,) = checked(tmp_path)
    assert (finding.path.name, finding.faults) == ("overview.json", ())


def test_a_broken_rule_is_told_with_its_first_places(tmp_path: Path) -> None:
    put(tmp_path, "a.json", {**built(), "schemaVersion": 12, "panels": []})
    (finding,) = checked(tmp_path)
    assert finding.faults[0] == "broken: the schema is one that no old migration touches: schemaVersion 12"


def test_one_uid_or_title_twice_breaks_both_of_its_files(tmp_path: Path) -> None:
    """F06: one clash stops Grafana from provisioning the whole folder."""
    put(tmp_path, "a.json", built())
    put(tmp_path, "b.json", {**built(), "uid": "firsttoken-other"})
    put(tmp_path, "c.json", built(name="latency"))
    findings = {finding.path.name: finding.faults for finding in checked(tmp_path)}
    assert findings["a.json"] == findings["b.json"] == ("broken: no other has its title: SLO overview",)
    assert findings["c.json"] == ()


def test_what_is_no_dashboard_is_said_so(tmp_path: Path) -> None:
    put(tmp_path, "list.json", [1])
    (finding,) = checked(tmp_path)
    assert finding.faults == ("no dashboard: an object with panels is one",)


def test_what_is_no_folder_is_not_called_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, why in ((file, "Not a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(UsageError, match=f"{path.name}: {why}: give a folder"):
            checked(path)


def test_a_folder_without_dashboards_or_with_other_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no dashboards"):
        checked(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UsageError, match=r"a\.json: no JSON"):
        checked(tmp_path)


def test_brackets_without_end_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match=r"deep\.json: no JSON"):
        checked(tmp_path)
