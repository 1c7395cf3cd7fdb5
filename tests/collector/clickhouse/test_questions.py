"""A window in the engine's words holds what one of the collector holds."""

import pytest

from collector.clickhouse import questions
from collector.clickhouse.engine import Engine
from collector.clickhouse.tables import SLO_COUNT
from collector.windowing.rolling import step_of

AT_S = 1_800_000_007


@pytest.mark.clickhouse
@pytest.mark.parametrize("window_s", [60, 300, 3600, 3660, 21600, 86400, 259200, 604800])
@pytest.mark.parametrize("tick_s", [2, 10, 60])
def test_the_steps_of_a_window_are_those_that_begin_within(clickhouse: Engine, window_s: int, tick_s: int) -> None:
    edge_s = AT_S - AT_S % tick_s - window_s
    step_s = step_of(window_s, tick_s)
    starts_s = {edge_s + by for by in (-step_s, -2, 0, 2, step_s - 2, step_s, step_s + 2)} | {AT_S - 7, AT_S + 60}
    rows = [("", "chat", "m", "ttft", "h", "o", start_s, 1, 0) for start_s in sorted(starts_s)]
    clickhouse.insert(SLO_COUNT, rows, token="one")
    question = f"SELECT DISTINCT start_s FROM slo_count WHERE {questions.held(questions.WINDOW)}"
    found = {start_s for (start_s,) in clickhouse.ask(question, at_s=AT_S, window_s=window_s, tick_s=tick_s)}
    assert found == {one for one in starts_s if one - one % step_s > edge_s and one <= AT_S}


def test_a_view_is_made_anew_everywhere() -> None:
    found = questions.view("budget", "SELECT 1", "One.", cluster=" ON CLUSTER `c`")
    assert found == "CREATE OR REPLACE VIEW `budget` ON CLUSTER `c` AS\n-- One.\nSELECT 1"
