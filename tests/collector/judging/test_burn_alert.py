"""What receivers are told of a burn or a spent budget."""

import pytest

from collector.judging.burn_alert import Figures, burning, exhausted, key
from collector.judging.track import Track
from collector.values.verdicts import BudgetRow
from collector.windowing.events import Held
from slo.burn import tiers
from slo.objective import parse

SPEC = parse("service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 99, threshold: 500ms}\n")[0]
OBJECTIVE = SPEC.objectives[0]
FAST = tiers(OBJECTIVE)[0]


def track(environment: str = "") -> Track:
    return Track(SPEC, OBJECTIVE, environment, "m", ())


def budget(*, remaining: float = 0.5, ends_s: float | None = 7200.0, coverage: float = 1.0) -> BudgetRow:
    return BudgetRow(5, "", "chat", "m", "ttft", 90, 10, 20.0, remaining, ends_s, coverage, "counts")


ENDS = {
    None: "no bad event came in the last hour",
    0.0: "it is spent",
    7200.0: "at the last hour's rate it ends in 2h 0m",
}


@pytest.mark.parametrize("ends_s", ENDS)
def test_a_burn_is_told_with_its_figures(ends_s: float | None) -> None:
    wanted = burning(track("prod"), FAST, "firing", figures=Figures(Held(80, 20), 20.0, budget(ends_s=ends_s)))
    told = dict(wanted.annotations)["description"]
    assert wanted.key == key(track("prod"), FAST)
    assert "chat in prod, model m: 20 of 100 events of the last 1h were bad" in told
    assert "Burn 20.00, alert above 13.44. Budget left: 50.0%" in told
    assert told.endswith(f"{ENDS[ends_s]}.")


def test_a_spent_budget_is_told_once_enough_is_known() -> None:
    spent = exhausted(track(), budget(remaining=-0.5))
    assert spent is not None
    assert dict(spent.labels)["notify"] == "ticket"
    assert exhausted(track(), budget(remaining=-0.5, coverage=0.05)) is None
    assert exhausted(track(), budget()) is None
