"""The documentation as a whole, whatever builds it: every page has its place, every anchor is a heading, and every
command of ours that a page shows has flags that are there. `make docs` builds the site itself, strictly."""

import importlib.util
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.generate_docs import ROOT, flags

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "alerts" / "runbooks").glob("*.md")])


def hook() -> ModuleType:
    """The hook of mkdocs, as it reads it."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOK = hook()
PLACES: dict[str, str] = HOOK.places()


def leaves(nav: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    for one in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from leaves(one)


def test_every_page_has_its_place_in_the_navigation() -> None:
    listed = list(leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = {place for place in PLACES.values() if place.endswith(".md") and not place.startswith("runbooks/LLM")}
    assert sorted(listed) == sorted(pages), "mkdocs.yml names each page once"


def test_links_lead_to_where_pages_are_on_the_site() -> None:
    there = {
        "README.md": "index.md",
        "docs/a.md": "a.md",
        "docs/howto/b.md": "howto/b.md",
        "alerts/r.md": "runbooks/r.md",
    }
    cases = {
        ("README.md", "[a](docs/a.md#x)"): "[a](a.md#x)",
        ("docs/howto/b.md", "[a](../a.md), [r](../../alerts/r.md)"): "[a](../a.md), [r](../runbooks/r.md)",
        ("docs/a.md", "[code](../deploy/x.yaml) and [web](https://example.com/) and [here](#x)"): (
            "code and [web](https://example.com/) and [here](#x)"
        ),
        ("docs/howto/b.md", "[first](../../README.md)"): "[first](../index.md)",
    }
    assert {case: HOOK.led(case[1], case[0], there) for case in cases} == cases


def test_the_runbooks_are_all_listed() -> None:
    listed = HOOK.runbook_list(PLACES)
    assert all(f"({path.name})" in listed for path in (ROOT / "alerts" / "runbooks").glob("*.md"))


def slugs(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and mkdocs both make them of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_anchor_is_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", page.read_text())
    own = [(target, anchor) for target, anchor in links if "://" not in target]
    broken = [f"{t}#{a}" for t, a in own if a not in slugs(page.parent / t if t else page)]
    assert broken == []


def commands(page: Path) -> Iterator[str]:
    """The commands of ours that a page shows in blocks, each without what stands before it."""
    text = page.read_text()
    blocks = re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        if found := re.search(r"(?:^|[ ;/])firsttoken ((?:[a-z-]+ ?)+.*)", line):
            yield re.split(r" [|&>]", found[1])[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_ours_has_flags_that_are_there(page: Path) -> None:
    reference = (ROOT / "docs" / "cli.md").read_text()
    if page.name == "cli.md":
        return
    for command in commands(page):
        words = shlex.split(command, comments=True)
        both = [" ".join(words[:2]), words[0]]
        name = next((name for name in both if f"## firsttoken {name}\n" in reference), None)
        if name is None:
            continue  # the name of the package, in a sentence or a path
        section = reference.split(f"## firsttoken {name}\n")[1].split("\n## ")[0]
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= flags(section), command


def test_a_list_stands_apart_from_what_is_before_it() -> None:
    """GitHub makes a list of lines right after a paragraph; mkdocs does not."""
    joined = []
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        lines = text.splitlines()
        for before, line in itertools.pairwise(lines):
            starts = re.match(r"(- |\d+\. )", line) and not re.match(r"(\s|- |\d+\. |#|\|)", before) and before.strip()
            if starts:
                joined.append(f"{page.relative_to(ROOT)}: {line[:60]}")
    assert joined == []
