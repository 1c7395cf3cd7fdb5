"""Every dashboard there is: the committed files, and what all of them have in common."""

from pathlib import Path

import pytest

from dashboards.boards.catalogue import PLANS
from dashboards.boards.plan import Given
from dashboards.cli import dashboards
from dashboards.model import DATASOURCES
from slo.objective import load
from tests.dashboards.support import Found, everything, figures, many, panels

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "dashboards" / "generated"


@pytest.mark.parametrize("datasource", DATASOURCES)
def test_the_committed_dashboards_are_what_the_command_writes(datasource: str) -> None:
    texts = dashboards(Given(load([ROOT / "slo.yaml"])), DATASOURCES[datasource], scrape_interval_s=60)
    committed = {path.name: path.read_text() for path in (GENERATED / datasource).iterdir()}
    assert committed == texts, "run `make generate`"


def test_no_uid_and_no_title_is_there_twice() -> None:
    found = [one for name in DATASOURCES for one in everything(name).values()]
    assert len(found) == len(DATASOURCES) * len(PLANS)
    assert len({one["uid"] for one in found}) == len({one["title"] for one in found}) == len(found)


def asked(found: Found) -> int:
    return sum(target["refId"] != "limit" for one in figures(found) for target in one["targets"])


@pytest.mark.parametrize("datasource", DATASOURCES)
def test_none_grows_in_panels_or_queries_with_its_services(datasource: str) -> None:
    few, lots = everything(datasource, many(1)), everything(datasource, many(10))
    for name, one in few.items():
        assert [panel["title"] for panel in panels(one)] == [panel["title"] for panel in panels(lots[name])]
        assert asked(one) == asked(lots[name])


def test_a_dashboard_over_tables_leaves_out_what_they_do_not_keep_and_nothing_else() -> None:
    of = {name: everything(name) for name in DATASOURCES}
    titles = {
        datasource: {name: {one["title"] for one in figures(found)} for name, found in boards.items()}
        for datasource, boards in of.items()
    }
    assert titles["postgres"] == titles["sqlite"]
    for name, shown in titles["prometheus"].items():
        missing, more = shown - titles["sqlite"][name], titles["sqlite"][name] - shown
        if name == "latency":
            assert missing == {title for title in shown if title.endswith("p95 by instance")}
        elif name not in ("gpu", "telemetry-health"):
            assert (missing, more) == (set(), set()), name
        assert not more or name == "telemetry-health"
