"""The units: systemd's own verifier, how much they leave open, and variables that are flags of ours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboards.live import tool
from tests.deploy.manifests import DEPLOY
from tests.generate_docs import ROOT, flags

FOLDER = DEPLOY / "systemd"
PROGRAM = "/opt/firsttoken/bin/firsttoken"
UNITS = {"firsttoken-collector.service": "collector", "firsttoken-sidecar@.service": "sidecar"}
MOST_EXPOSED = 1.5
"""Of 10, by `systemd-analyze security`: what is left open is the network, and the devices of NVIDIA's."""


def analyze(*arguments: str, cwd: Path) -> str:
    """What systemd-analyze says; nothing of the machine's own is asked."""
    done = subprocess.run([tool("systemd-analyze"), *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units with a program in them that is there."""
    folder = tmp_path_factory.mktemp("units")
    for name in UNITS:
        told = (FOLDER / name).read_text().replace(PROGRAM, sys.executable)
        (folder / name.replace("@", "@chat")).write_text(told)
    return folder


@pytest.mark.tools
def test_systemd_finds_nothing_to_say(units: Path) -> None:
    assert analyze("verify", "--man=no", *(f"./{path.name}" for path in units.iterdir()), cwd=units) == ""


@pytest.mark.tools
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_leaves_little_open(units: Path, name: str) -> None:
    threshold = str(int(MOST_EXPOSED * 10))
    told = ("security", "--offline=true", "--no-pager", f"--threshold={threshold}")
    analyze(*told, f"./{name.replace('@', '@chat')}", cwd=units)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_a_command_of_ours(name: str) -> None:
    text = (FOLDER / name).read_text()
    (told,) = re.findall(rf"^ExecStart={PROGRAM} (\S+)(.*)$", text, re.MULTILINE)
    assert told[0] == UNITS[name]
    assert flags(told[1]) <= flags((ROOT / "docs" / "cli.md").read_text().split(f"## firsttoken {told[0]}\n")[1])


def test_every_variable_is_a_flags_twin() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for path, command in ((FOLDER / "chat.env", "sidecar"), (FOLDER / "collector.env", "collector")):
        section = page.split(f"## firsttoken {command}\n")[1].split("\n## ")[0]
        for name in re.findall(r"FIRSTTOKEN_([A-Z_]+)", path.read_text()):
            assert f"--{name.lower().replace('_', '-')}" in flags(section), name
