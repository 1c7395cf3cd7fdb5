"""The pages of docs/attach/: one for each engine that the sidecar knows, with its own maps in them."""

import re

import pytest

from sidecar.engine.engine_requests import TOLD
from sidecar.engine.engines import ENGINES
from slo.signals import SIGNALS
from tests.attach_table import BLOCK, FOLDER, filled, table

PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def test_every_engine_has_its_table_on_one_page_and_it_is_that_of_the_maps() -> None:
    texts = [path.read_text() for path in PAGES]
    assert sorted(found[1] for text in texts for found in BLOCK.finditer(text)) == sorted(ENGINES)
    assert [filled(text) for text in texts] == texts, "run `make generate`"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_says_no_exactly_where_the_maps_have_nothing(engine: str) -> None:
    rows = [line.split(" | ") for line in table(engine).splitlines()[2:]]
    assert [row[0] for row in rows] == [f"| `{signal}`" for signal in SIGNALS]
    told = {row.metric for row in TOLD[engine].histograms}
    has = {name for name, signal in SIGNALS.items() if signal.metric in told}
    has |= {"kv_occupancy"} if ENGINES[engine].kv_occupancy else set()
    has |= {"queue"} if ENGINES[engine].waiting else set()
    assert {row[0].strip("|` ") for row in rows if not row[2].startswith("no: ")} == has


def test_the_first_page_leads_to_all_others() -> None:
    first = (FOLDER / "README.md").read_text()
    assert {path.name for path in PAGES} <= set(re.findall(r"\]\(([a-z-]+\.md)\)", first))
    for path in (path for path in PAGES if path.name not in ("kubernetes.md", "systemd.md")):
        assert "(README.md#the-four-steps-that-all-have-in-common)" in path.read_text(), path.name
