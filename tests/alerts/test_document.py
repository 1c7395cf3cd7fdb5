"""Generated YAML: readable, whole when read back, and the same bytes every time."""

import yaml

from alerts.document import GENERATED, document
from tests.alerts.support import spec

HARD = {"b": ["one", "two"], "a": {"expr": "x\nand\n  y", "quote": 'say "no": {{ $labels.x }}', "wide": "w " * 500}}


def test_it_reads_back_as_it_was() -> None:
    assert yaml.safe_load(document(HARD, (spec(),))) == HARD


def test_keys_keep_their_order_and_expressions_their_lines() -> None:
    lines = document(HARD, (spec(),)).splitlines()
    assert lines[1:3] == ["b:", "  - one"]
    assert "  expr: |-" in lines
    assert "      y" in lines


def test_a_value_that_stands_twice_is_written_twice() -> None:
    shared = ["x"]
    assert "&" not in document({"a": shared, "b": shared}, (spec(),))


def test_the_header_forbids_editing_and_names_the_spec() -> None:
    first = document({}, (spec(),)).splitlines()[0]
    assert first.startswith(GENERATED)
    assert f"chat {spec().hash}" in first
    assert document({}, (spec(target="99%"),)).splitlines()[0] != first
