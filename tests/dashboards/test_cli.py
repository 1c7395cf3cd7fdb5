"""`firsttoken dashboards build`: what it writes and says, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dashboards.cli import main
from tests.dashboards.support import CHAT


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    path = tmp_path / "slo.yaml"
    path.write_text(CHAT)
    return path


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLO", "OUT", "DATASOURCE", "SCRAPE_INTERVAL", "CAPACITY"):
        monkeypatch.delenv(f"FIRSTTOKEN_{name}", raising=False)


def build(*flags: str | Path) -> int:
    try:
        return main(["build", *map(str, flags)])
    except SystemExit as usage:
        return int(usage.code or 0)


NAMES = ("capacity", "gpu", "incidents", "kv-cache", "latency", "slo-overview", "telemetry-health")


SUFFIXES = {"prometheus": "", "postgres": "-postgres", "sqlite": "-sqlite"}


@pytest.mark.parametrize(("datasource", "suffix"), SUFFIXES.items())
def test_it_writes_every_dashboard_and_names_it(
    tmp_path: Path, slo: Path, capsys: pytest.CaptureFixture[str], datasource: str, suffix: str
) -> None:
    out = tmp_path / "new" / "folder"
    files = {f"{name}{suffix}.json" for name in NAMES}
    assert build("--slo", slo, "--out", out, "--datasource", datasource) == 0
    assert set(capsys.readouterr().out.splitlines()) == {f"{out / file}" for file in files}
    assert {path.name for path in out.iterdir()} == files
    assert json.loads((out / f"slo-overview{suffix}.json").read_text())["title"].startswith("SLO overview")
    assert (out / f"latency{suffix}.json").stat().st_mode & 0o777 == 0o644


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path, slo: Path) -> None:
    for name in ("a", "b"):
        assert build("--slo", slo, "--out", tmp_path / name) == 0
    for name in NAMES:
        one, two = (tmp_path / folder / f"{name}.json" for folder in ("a", "b"))
        assert one.read_bytes() == two.read_bytes(), name


def test_specs_may_lie_in_several_files_and_in_a_folder(tmp_path: Path, slo: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "b.yaml").write_text(CHAT.replace("service: chat", "service: batch"))
    assert build("--slo", slo, "--slo", folder, "--out", tmp_path) == 0
    text = (tmp_path / "slo-overview.json").read_text()
    assert "| chat | ttft |" in text
    assert "| batch | ttft |" in text


def test_the_default_spec_lies_in_the_working_folder(
    tmp_path: Path, slo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(slo.parent)
    assert build("--out", tmp_path) == 0


def test_the_environment_stands_in_for_flags_and_a_flag_wins(
    tmp_path: Path, slo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTTOKEN_SLO", str(slo))
    monkeypatch.setenv("FIRSTTOKEN_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("FIRSTTOKEN_DATASOURCE", "sqlite")
    monkeypatch.setenv("FIRSTTOKEN_SCRAPE_INTERVAL", "5s")
    assert build() == 0
    assert '"interval": "5s"' in (tmp_path / "out" / "slo-overview-sqlite.json").read_text()
    assert build("--datasource", "prometheus") == 0
    assert (tmp_path / "out" / "slo-overview.json").exists()


def test_a_second_build_replaces_the_first(tmp_path: Path, slo: Path) -> None:
    assert build("--slo", slo, "--out", tmp_path) == 0
    slo.write_text(CHAT.replace("500ms", "700ms"))
    assert build("--slo", slo, "--out", tmp_path) == 0
    assert "700ms" in (tmp_path / "slo-overview.json").read_text()


REFUSED = {
    "an unknown key, with its place": (["--slo", "{bad}", "--out", "{out}"], "bad.yaml:2:1: "),
    "a spec that is not there": (["--slo", "{dir}/none.yaml", "--out", "{out}"], "none.yaml:1:1: cannot be read"),
    "a folder that cannot be made": (
        ["--slo", "{slo}", "--out", "{slo}/x"],
        "slo.yaml/x/slo-overview.json: Not a directory: give",
    ),
    "a datasource that is none": (["--slo", "{slo}", "--out", "{out}", "--datasource", "influx"], "use prometheus, "),
    "an interval that is none": (
        ["--slo", "{slo}", "--out", "{out}", "--scrape-interval", "5"],
        "--scrape-interval: 5",
    ),
    "a capacity of nobody": (
        ["--slo", "{slo}", "--out", "{out}", "--capacity", "other={slo}"],
        "no service other in slo.yaml: use chat",
    ),
    "no place to write to": (["--slo", "{slo}"], "--out"),
    "an empty place to write to": (["--slo", "{slo}", "--out", ""], "--out names no folder: write --out grafana/"),
    "a flag that is none": (["--slo", "{slo}", "--out", "{out}", "--color", "red"], "--color"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_it_refuses_with_one_clear_line_and_writes_nothing(
    tmp_path: Path, slo: Path, capsys: pytest.CaptureFixture[str], refused: str
) -> None:
    (tmp_path / "bad.yaml").write_text("service: chat\nobjektives: []\nobjectives: [{name: a, signal: ttft}]\n")
    flags, said = REFUSED[refused]
    places = {"slo": slo, "out": tmp_path / "out", "dir": tmp_path, "bad": tmp_path / "bad.yaml"}
    assert build(*(flag.format(**places) for flag in flags)) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
    assert all(line.startswith("firsttoken dashboards") for line in printed.err.splitlines())
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_named_and_nothing_else_is_left(
    tmp_path: Path, slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slo-overview.json").mkdir()
    assert build("--slo", slo, "--out", tmp_path) == 2
    assert "slo-overview.json: Is a directory" in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_written_to_is_named(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build("--slo", slo, "--out", "/proc/self") == 2
    assert "firsttoken dashboards: /proc/self" in capsys.readouterr().err


def test_it_runs_as_a_module_and_tells_its_version(tmp_path: Path, slo: Path) -> None:
    command = [sys.executable, "-m", "dashboards"]
    done = subprocess.run([*command, "build", "--slo", slo, "--out", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    told = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert told.stdout.startswith("firsttoken ")


def test_capacity_is_drawn_where_it_is_known(tmp_path: Path, slo: Path) -> None:
    (tmp_path / "certified.json").write_text('{"certified_rps": 12.5, "refuted_rps": 15}')
    assert build("--slo", slo, "--out", tmp_path / "a", "--capacity", tmp_path / "certified.json") == 0
    text = (tmp_path / "a" / "capacity.json").read_text()
    assert "certified 12.5/s" in text
    assert '"title": "Headroom"' in text


def test_check_says_which_file_is_fine_and_what_is_broken_in_the_others(
    tmp_path: Path, slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("--slo", slo, "--out", tmp_path / "out") == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert (len(said.out.splitlines()), said.err) == (7, "")
    latency = tmp_path / "out" / "latency.json"
    latency.write_text(latency.read_text().replace('"$__rate_interval', '"1m').replace("[$__rate_interval]", "[1m]"))
    assert main(["check", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    assert f"FAILED: {latency}" in said.out
    assert "broken: rates are taken over the interval that Grafana reckons" in said.err


def test_check_refuses_a_folder_without_dashboards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "holds no dashboards" in capsys.readouterr().err


def test_sql_dashboards_without_the_tables_library_say_what_to_install(
    tmp_path: Path, slo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    for name in [name for name in sys.modules if name.startswith(("dashboards.sql.", "collector.schema"))]:
        monkeypatch.delitem(sys.modules, name)
    assert build("--slo", slo, "--out", tmp_path, "--datasource", "sqlite") == 2
    assert "needs sqlalchemy: pip install 'firsttoken[collector]'" in capsys.readouterr().err
    assert build("--slo", slo, "--out", tmp_path) == 0
