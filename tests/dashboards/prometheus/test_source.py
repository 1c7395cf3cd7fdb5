"""Every expression of every dashboard parses, and a real Prometheus gives each panel its figures."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.live import CHOICES, tool
from tests.dashboards.support import Found, everything, figures, many, promql, query_of


def expressions(found: Found) -> Iterator[tuple[str, str]]:
    for one in figures(found):
        yield from ((f"{one['title']} {target['refId']}", query_of(target)) for target in one["targets"])
    marks = found["annotations"]["list"]
    yield from ((one["name"], one["expr"]) for one in marks if "expr" in one)


@pytest.mark.tools
def test_every_expression_parses_whatever_is_chosen(tmp_path: Path) -> None:
    boards = everything(of=many(3)).values()
    asked = [(found, text) for found in boards for _, text in expressions(found)]
    texts = {promql(text, found, chosen) for found, text in asked for chosen in CHOICES.values()}
    rules = [{"record": f"r:{number}", "expr": text} for number, text in enumerate(sorted(texts))]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", "rules.json"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout
    assert len(asked) > 150
