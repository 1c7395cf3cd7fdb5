"""Kinds of value: what editors are told of them is what is read. Faults by key are in test_objective."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from slo.fields import Duration, LabelName, Name, Share

KINDS = {
    "duration": (TypeAdapter(Duration), ["500ms", "1.5s", "28d"], ["500", "1y", "-1s"]),
    "share": (TypeAdapter(Share), ["99.9%", "95", "0.5 %"], ["half", "-1%"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_pattern_for_editors_takes_what_is_read_and_refuses_what_is_not(kind: str) -> None:
    adapter, right, wrong = KINDS[kind]
    pattern = re.compile(adapter.json_schema()["pattern"])
    for text in right:
        adapter.validate_python(text)
        assert pattern.search(text)
    for text in wrong:
        assert not pattern.search(text)
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


@pytest.mark.parametrize("text", ["chat", "a.b-c_d", "5", "x" * 63])
def test_a_name_is_taken_as_it_stands(text: str) -> None:
    assert TypeAdapter(Name).validate_python(text) == text


@pytest.mark.parametrize("text", ["", "-a", "a b", "x" * 64, "é", None, True, ["a"]])
def test_what_is_no_name_is_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="is not a name"):
        TypeAdapter(Name).validate_python(text)


@pytest.mark.parametrize("text", ["9a", "a-b", "a.b", "größe", ""])
def test_what_is_no_label_name_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="is no label name"):
        TypeAdapter(LabelName).validate_python(text)
