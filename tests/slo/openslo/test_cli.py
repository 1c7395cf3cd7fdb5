"""The commands: what is written where, and how they end."""

from pathlib import Path

import pytest

from slo.cli import main
from slo.objective import load
from tests.slo.openslo.test_authored import EVERYTHING, SPEC
from tests.slo.openslo.test_reading import LEFT as OPENSLO_LEFT
from tests.slo.openslo.test_reading import slo
from tests.slo.openslo.test_sloth import SPEC as SLOTH


def file(folder: Path, text: str, name: str = "in.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_everything_carried_over_is_exit_0_and_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", file(tmp_path, SLOTH)]) == 0
    told = capsys.readouterr()
    assert "carried over: chat/first-token: 95% of requests" in told.err
    (spec,) = load([file(tmp_path, told.out, "out.yaml")])
    assert [one.name for one in spec.objectives] == ["answers", "first-token"]


def test_what_is_left_behind_is_exit_1_and_the_rest_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, _ = OPENSLO_LEFT["a ratio computed elsewhere"]
    out = tmp_path / "slo.yaml"
    text = slo() + "---" + raw.replace("name: fast", "name: raw")
    assert main(["import", file(tmp_path, text), "--out", str(out)]) == 1
    told = capsys.readouterr().out
    assert "left behind: chat/raw: its ratio was computed elsewhere" in told
    assert told.endswith(f"{out}\n")
    assert "# left behind: chat/raw" in out.read_text()
    assert [one.name for one in load([out])[0].objectives] == ["fast"]


def test_nothing_carried_over_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, _ = OPENSLO_LEFT["a ratio computed elsewhere"]
    out = tmp_path / "slo.yaml"
    assert main(["import", file(tmp_path, raw), "--out", str(out)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "nothing can be carried over" in told.err
    assert not out.exists()


REFUSED = {
    "no YAML": ("a: [", "in.yaml:1:5: not YAML"),
    "a spec of ours": (EVERYTHING, "in.yaml:2:1: neither OpenSLO v1 nor a spec of Sloth's"),
    "an older OpenSLO": ("apiVersion: openslo/v1alpha\nkind: SLO\n", "in.yaml:1:1: neither OpenSLO v1"),
    "both in one": (slo() + "---" + SLOTH, "in.yaml:2:1: neither OpenSLO v1"),
    "nothing": ("", "in.yaml:1:1: an empty file"),
    "an anchor": ("version: prometheus/v1\nlabels: &a {x: y}\nslos: [*a]\n", "YAML aliases are not read here"),
}


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_cannot_be_used_is_exit_2_with_its_place(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "slo.yaml"
    assert main(["import", file(tmp_path, text), "--out", str(out)]) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["import", "none.yaml"], ["export", "none.yaml", "--format", "openslo"]):
        assert main(command) == 2
        assert "none.yaml:1:1: cannot be read" in capsys.readouterr().err
    (tmp_path / "latin").write_bytes(b"\xff")
    assert main(["import", str(tmp_path / "latin")]) == 2
    assert "not UTF-8 text" in capsys.readouterr().err


def test_a_file_that_is_there_already_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = file(tmp_path, "mine", "slo.yaml")
    assert main(["import", file(tmp_path, SLOTH), "--out", mine]) == 2
    assert "is there already" in capsys.readouterr().err
    assert Path(mine).read_text() == "mine"
    assert main(["import", file(tmp_path, SLOTH), "--out", "/proc/none/slo.yaml"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_export_and_import_give_the_same_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "openslo.yaml"
    assert main(["export", file(tmp_path, EVERYTHING), "--format", "openslo", "--out", str(out)]) == 0
    assert "chat/answered: patience" in capsys.readouterr().out
    assert main(["import", str(out)]) == 0
    assert load([file(tmp_path, capsys.readouterr().out, "again.yaml")]) == (SPEC,)


def test_other_formats_are_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", file(tmp_path, EVERYTHING), "--format", "sloth"])
    assert ended.value.code == 2
    assert "invalid choice: 'sloth'" in capsys.readouterr().err


def test_what_others_wrote_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SLOTH.replace("name: answers", r'name: "\e[31manswers"')
    assert main(["import", file(tmp_path, text)]) == 0
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
