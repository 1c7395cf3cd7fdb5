"""Makes a site of the documentation: a hook of mkdocs (`mkdocs.yml`), which reads it as a file and not as a package.

Pages that lie outside docs/ (the README, the runbooks) become pages of the site. Links between pages are led to where
each page is there; a link to anything else of the repository, which no site has, becomes its text.
"""  # noqa: INP001

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
RUNBOOKS = "alerts/runbooks"
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "bench.md",
    "tests/engines/README.md": "beside-real-engines.md",
}
"""Pages outside docs/, and where they are on the site."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def places() -> dict[str, str]:
    """Every page and picture by its path in the repository: its path on the site."""
    docs = ROOT / "docs"
    inside = [path.relative_to(docs).as_posix() for path in docs.rglob("*") if path.suffix in (".md", ".png", ".svg")]
    runbooks = [path.name for path in (ROOT / RUNBOOKS).glob("*.md")]
    return {
        **OUTSIDE,
        **{f"docs/{name}": name for name in inside},
        **{f"{RUNBOOKS}/{name}": f"runbooks/{name}" for name in runbooks},
        RUNBOOKS: "runbooks/list.md",
    }


def led(text: str, source: str, there: dict[str, str]) -> str:
    """A page of the repository, `source`, with its links as they are on the site."""

    def link(found: re.Match[str]) -> str:
        picture, words, target, place = found[1], found[2], found[3], found[4] or ""
        if not target or "://" in target:
            return found[0]
        to = there.get(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        if to is None:
            return words
        return f"{picture}[{words}]({posixpath.relpath(to, posixpath.dirname(there[source]) or '.')}{place})"

    return LINK.sub(link, text)


def runbook_list(there: dict[str, str]) -> str:
    """The page that leads to all runbooks."""
    names = sorted(Path(path).stem for path in there if path.startswith(f"{RUNBOOKS}/"))
    return "\n".join(["# Runbooks", "", "One for each alert.", "", *(f"- [{name}]({name}.md)" for name in names), ""])


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """The pages of docs/ and those from outside."""
    from mkdocs.structure.files import File

    there = places()
    for source, place in there.items():
        if not source.startswith("docs/"):
            text = runbook_list(there) if source == RUNBOOKS else (ROOT / source).read_text()
            files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """A page with its links as they are on the site."""
    there = places()
    source = next(path for path, place in there.items() if place == page.file.src_uri)
    return markdown if source == RUNBOOKS else led(markdown, source, there)
