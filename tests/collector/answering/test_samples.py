"""Lines of the text format, read back by the reference parser: what was found, escaped, and nothing unknown."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.answering.samples import figures
from slo import signals
from tests.collector.answering import test_status as made
from tests.collector.drift_scene import DRIFT


def read(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
    return found


def test_every_figure_is_a_sample_of_its_family() -> None:
    found = read(figures(made.FULL).decode())
    assert {name: len(samples) for name, samples in found.items()} == {
        signals.BURN_RATE.prometheus: 5,
        signals.COVERAGE.prometheus: 5,
        signals.BUDGET_REMAINING.prometheus: 2,
        signals.BUDGET_EXHAUSTED_IN.prometheus: 2,
        signals.LATENCY.prometheus: 5,
        signals.LATENCY_DRIFT.prometheus: 0,
    }
    labels, value = found[signals.LATENCY.prometheus][1]
    assert labels == {
        "service_name": "chat",
        "model_name": "m",
        "environment": "",
        "signal": "ttft",
        "source": "proxy",
        "quantile": "0.9",
        "window": "5m",
    }
    assert value == 0.3


@pytest.mark.parametrize("model", ['a"b', "back\\slash", "two\nlines", "ünïcode", "a,b={}"])
def test_any_name_comes_back_as_it_was(model: str) -> None:
    found = read(figures(made.evaluation(budgets=(made.budget(model),))).decode())
    assert [labels["model_name"] for labels, _ in found[signals.BUDGET_REMAINING.prometheus]] == [model]


def test_a_drift_is_a_sample_by_whom_it_is_seen_and_whose_doing_it_is() -> None:
    found = read(figures(replace(made.evaluation(), drifts=(DRIFT,))).decode())
    assert found[signals.LATENCY_DRIFT.prometheus] == [
        (
            {
                "environment": "",
                "kind": "server",
                "model_name": "m",
                "service_name": "chat",
                "signal": "ttft",
                "source": "proxy",
            },
            0.25,
        )
    ]


def test_an_evaluation_without_rows_has_families_without_samples() -> None:
    assert set(map(len, read(figures(made.evaluation()).decode()).values())) == {0}


def test_an_evaluation_is_written_once() -> None:
    found = made.evaluation(budgets=(made.budget("m"),))
    assert figures(found) is figures(found)
