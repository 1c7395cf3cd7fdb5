"""The engine judges by what slo.yaml says."""

import fnmatch
import re

from hypothesis import given
from hypothesis import strategies as st

from collector.clickhouse import promises
from collector.clickhouse.tables import OBJECTIVE
from slo.objective import parse

SPEC = """\
service: chat
environment: prod
elastic: true
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 7d, match: {model: "a*"}}
  - {name: by-class, signal: ttft, percentile: 95, threshold: 1s, match: {class: interactive}}
  - {name: answered, signal: availability, target: 99.9%}
classes: [interactive]
"""
names = st.text("ab.[]!-^$", max_size=6)


def test_an_objective_is_a_row() -> None:
    first, by_class, answered = (dict(zip(OBJECTIVE.names, row, strict=True)) for row in rows())
    assert {name: first[name] for name in ("service", "objective", "environment", "signal", "written_s")} == {
        "service": "chat", "objective": "ttft", "environment": "prod", "signal": "ttft", "written_s": 7,
    }  # fmt: skip
    assert (first["threshold_s"], first["allowed_bad"], first["window_s"]) == (0.5, 0.05, 7 * 86400)
    assert (first["readable"], first["elastic"]) == (1, 1)
    assert [by_class["readable"], answered["readable"]] == [0, 0]
    assert answered["threshold_s"] == 0


def rows(written_s: int = 7) -> list[tuple[object, ...]]:
    return promises.rows(parse(SPEC), written_s=written_s)


def test_what_was_told_is_not_told_again() -> None:
    assert promises.told(rows(9), rows(7))
    assert not promises.told(rows(9), rows(7)[1:])
    assert not promises.told(rows(9)[1:], rows(7)), "one that is promised no more"
    assert promises.told([], rows(7))


@given(st.text("ab*?[]!-.^$", min_size=1, max_size=6), names)
def test_a_pattern_matches_what_its_glob_matches(glob: str, name: str) -> None:
    try:
        expected = fnmatch.fnmatchcase(name, glob)
        found = re.search(promises.pattern(glob).replace("\\z", "\\Z"), name) is not None
    except re.error:  # a set that is none, as [b-a]: no name is meant by it
        return
    assert found == expected


def test_no_glob_is_every_name() -> None:
    assert promises.pattern(None) == ""
