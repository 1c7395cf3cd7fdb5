"""The one command: its list, its hand-overs, and what it says of what is not installed."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from firsttoken.__main__ import SUBCOMMANDS, main

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from firsttoken.__main__ import main
sys.exit(main({argv!r}))
"""


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120)


def without(names: set[str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command where some libraries are not installed."""
    return run("-c", WITHOUT.format(names=names, argv=list(argv)))


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_subcommand_on_a_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    for subcommand in SUBCOMMANDS.values():
        assert [line for line in lines if line.startswith(f"  {subcommand.name} ") and subcommand.about in line]
    assert max(map(len, lines)) <= 100


def test_the_subcommands_are_those_of_the_documented_interface() -> None:
    named = {
        "demo",
        "sidecar",
        "collector",
        "slo",
        "alerts",
        "dashboards",
        "demo-server",
        "capacity",
        "status",
        "doctor",
    }
    assert set(SUBCOMMANDS) == named | {"slo replay"}


def test_a_second_word_may_belong_to_another_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slo", "replay", "none.yaml", "--database", "none.db"]) == 2
    assert capsys.readouterr().err.startswith("firsttoken slo replay: none.yaml")
    done = without({"sqlalchemy"}, "slo", "replay", "slo.yaml")
    assert (done.returncode, done.stderr) == (2, LACKS_COLLECTOR)


LACKS_COLLECTOR = "firsttoken slo replay: needs the extra: pip install 'firsttoken[collector]'\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"firsttoken {version('firsttoken')}\n"


def test_an_unknown_subcommand_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deom"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("firsttoken: there is no 'deom': use one of demo,")
    assert len(err.splitlines()) == 1


def test_a_subcommand_gets_the_rest_and_gives_its_exit_code(tmp_path: Path) -> None:
    spec = tmp_path / "slo.yaml"
    spec.write_text("service: x\nobjectives: [{name: a, signal: availability, target: 100%}]\n")
    assert main(["slo", "check", str(spec)]) == 2


def test_both_spellings_of_the_command_run() -> None:
    assert run("-m", "firsttoken", "--version").stdout == f"firsttoken {version('firsttoken')}\n"
    script = Path(sys.executable).with_name("firsttoken")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=120)
    assert done.stdout == f"firsttoken {version('firsttoken')}\n"


def test_the_demo_server_is_run_and_not_imported() -> None:
    done = run("-m", "firsttoken", "demo-server", "--help")
    assert done.returncode == 0
    assert "--kv-blocks" in done.stdout


NOT_INSTALLED = {
    "sidecar": ({"httptools"}, "sidecar"),
    "collector": ({"sqlalchemy"}, "collector"),
    "capacity": ({"orjson"}, "capacity"),
    "doctor": ({"orjson"}, "sidecar"),
    "dashboards": ({"grafanalib"}, "dashboards"),
    "demo": ({"torch"}, "demo"),
    "demo-server": ({"torch"}, "demo"),
}


@pytest.mark.parametrize(("name", "lacks"), NOT_INSTALLED.items(), ids=NOT_INSTALLED.keys())
def test_an_extra_that_is_not_installed_is_named(name: str, lacks: tuple[set[str], str]) -> None:
    libraries, extra = lacks
    done = without(libraries, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"firsttoken {name}: needs the extra: pip install 'firsttoken[{extra}]'\n"


def test_a_base_install_runs_what_needs_no_extra() -> None:
    extras = {"torch", "numpy", "orjson", "httptools", "uvloop", "fastapi", "sqlalchemy", "httpx", "opentelemetry"}
    assert without(extras, "--help").returncode == 0
    assert without(extras, "status", "http://127.0.0.1:1").returncode == 2
    assert without(extras, "slo", "schema").returncode == 0


def test_a_fault_of_our_own_is_not_taken_for_a_missing_extra() -> None:
    done = without({"slo"}, "slo", "schema")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_a_disk_that_is_full_is_one_line_and_exit_2() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "firsttoken", "slo", "schema"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr == "firsttoken slo: the output cannot be written: No space left on device\n"


def test_a_reader_that_has_had_enough_is_no_fault() -> None:
    """As in `firsttoken slo schema | head -1`."""
    command = [sys.executable, "-m", "firsttoken", "slo", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
