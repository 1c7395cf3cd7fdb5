"""What the docs say is so: generated pages, flags, links, examples and dependencies."""

import re
import tomllib
from pathlib import Path

import pytest

from slo.objective import parse
from tests.collector_limits import LIMITS, NO_LIMITS
from tests.generate_docs import COMMANDS, ROOT, flags, help_text, limits_page, signals_page, sql_page

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "alerts/runbooks").glob("*.md")])


def ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_generated_pages_are_those_of_the_code() -> None:
    assert (ROOT / "docs/limits.md").read_text() == limits_page()
    assert (ROOT / "docs/signals.md").read_text() == signals_page()
    assert (ROOT / "docs/sql.md").read_text() == sql_page()


def test_every_limit_of_the_collector_stands_in_the_docs() -> None:
    named = {
        path.stem: set(re.findall(r"^(MAX_[A-Z_]+) = ", path.read_text(), re.MULTILINE))
        for path in (ROOT / "collector").rglob("*.py")
    }
    missing = {room: names - LIMITS.get(room, {}).keys() - NO_LIMITS.get(room, set()) for room, names in named.items()}
    assert {room: names for room, names in missing.items() if names} == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_stands_in_the_docs(command: str) -> None:
    page = (ROOT / "docs/cli.md").read_text()
    section = page.split(f"## firsttoken {command}\n")[1].split("\n## ")[0]
    assert flags(help_text(command)) == flags(section)


def test_every_command_of_the_program_has_its_section() -> None:
    (group,) = re.findall(r"\{([a-z,-]+)\}", help_text(""))[:1] or [",".join(c.split()[0] for c in COMMANDS)]
    assert set(group.split(",")) <= {command.split()[0] for command in COMMANDS}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    broken = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_spec_shown_is_a_spec(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        if block.startswith("service:"):
            assert parse(block)


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


def dependencies() -> set[str]:
    found = project()
    extras = found["optional-dependencies"]
    assert isinstance(extras, dict)
    listed = [*found["dependencies"], *(d for extra in extras.values() for d in extra)]  # type: ignore[misc]
    names = {re.split(r"[\[<>=~ ]", d)[0].lower().replace("_", "-") for d in listed}
    return names - {"firsttoken"}


def test_every_dependency_is_justified_and_pinned() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text().lower()
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    assert sorted(d for d in dependencies() if d not in contributing) == []
    assert sorted(d for d in dependencies() if d not in pinned) == []


def test_the_readme_names_the_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text())):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_flag_the_readme_names_is_a_flag_of_ours() -> None:
    foreign = {"--enable-metrics", "--metrics", "--middleware"}  # of SGLang, llama.cpp and vLLM
    assert flags((ROOT / "README.md").read_text()) - foreign <= flags((ROOT / "docs/cli.md").read_text())
