"""The latency dashboard."""

import pytest

from tests.dashboards.support import built, figures, panel, query_of

FOUND = built(name="latency")


def test_it_has_every_latency_against_its_promise_and_in_full() -> None:
    for title in ("Time to first token", "Time per output token", "Request duration"):
        assert panel(FOUND, title)["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] == "dashed"
        assert panel(FOUND, f"Distribution: {title.lower()}")["type"] == "heatmap"
        assert len(panel(FOUND, f"{title}, both views")["targets"]) == 2
        assert "instance" in panel(FOUND, f"{title}: p95 by instance")["targets"][0]["expr"]


def test_the_engines_own_is_never_added_to_the_sidecars() -> None:
    for one in figures(FOUND):
        for target in one["targets"]:
            text = query_of(target)
            if "gen_ai_server" in text:
                assert ('source="engine"' in text) != ('source!="engine"' in text), one["title"]


@pytest.mark.parametrize("title", ["Time to first token", "Distribution: request duration"])
def test_requests_with_a_trace_are_shown(title: str) -> None:
    assert sum(target.get("exemplar", False) for target in panel(FOUND, title)["targets"]) == 1


def test_marks_tell_what_may_have_changed_it() -> None:
    assert [marks["name"] for marks in FOUND["annotations"]["list"]] == [
        "Firing alerts", "Drift", "Starts", "Deploys told to Grafana",
    ]  # fmt: skip
