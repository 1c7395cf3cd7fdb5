"""What several queries share."""

from dashboards.sql.pieces import chart, named
from slo.promql import SERVICE_KEY, SUBJECT_KEY


def test_a_line_is_named_by_columns_with_blanks_between() -> None:
    environment = "CASE environment WHEN '' THEN '' ELSE environment || ' ' END"
    assert named(SERVICE_KEY) == f"{environment} || service"
    assert named(SUBJECT_KEY, "now") == f"{environment} || service || ' ' || model || ' ' || 'now'"
    assert named(("signal",)) == "signal"


def test_a_chart_is_folded_by_time_and_name() -> None:
    text = chart("t", "at_s", metric="'x'", value="MAX(v)", where="1 = 1")
    assert text == (
        "SELECT at_s AS time, 'x' AS metric, CAST(MAX(v) AS DOUBLE PRECISION) AS value\n"
        "FROM t\nWHERE 1 = 1\nGROUP BY 1, 2\nORDER BY 1"
    )
