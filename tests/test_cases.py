"""The cases of `cases.txt`: that each has its test."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
PACKAGES = ("slo", "alerts", "collector")
ID = re.compile(r"(?:(?<=::test_)|(?<=\[))([C-G]\d\d)(?=[_: \]])", re.IGNORECASE)
HINT = re.compile(r"(?i)(?:test_|\")[C-G]\d\d[_:]")  # what a file with such tests has in it


@cache
def listed() -> tuple[str, ...]:
    lines = (DATA / "cases.txt").read_text().splitlines()
    return tuple(line.split()[0] for line in lines if line and not line.startswith("#"))


def in_names(names: str) -> set[str]:
    """The ids in the names of tests, as pytest lists them."""
    return {found.upper() for found in ID.findall(names)}


def test_ids_are_found_in_names() -> None:
    names = [
        "t.py::test_d10_a",
        "t.py::T::test_e01_b[x]",
        "t.py::test_x[G08: an hour]",
        "t.py::test_big_d99_x",
        "[E2E]",
    ]
    assert in_names("\n".join(names)) == {"D10", "E01", "G08"}


def test_each_case_has_a_test_with_its_id_in_its_name() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / "tests" / package).rglob("test_*.py"))]
    hopeful = [str(path) for path in files if HINT.search(path.read_text())]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *hopeful]
    names = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert in_names(names) == set(listed())
    assert len(listed()) == len(set(listed()))


REPORTED = ROOT.parent / "shared" / "cases" / "cases.yaml"

if REPORTED.is_file():  # the collection that the list was made from, where it lies beside the project

    def test_the_lists_hold_every_case_of_the_collection_that_concerns_these_packages() -> None:
        reported = {case["id"] for case in yaml.safe_load(REPORTED.read_text())}
        ours = {name for name in reported if name[0] in "DEG"}
        elsewhere = {line.split()[0] for line in (DATA / "sidecar" / "cases.txt").read_text().splitlines() if line}
        assert ours - elsewhere <= set(listed()) <= reported
