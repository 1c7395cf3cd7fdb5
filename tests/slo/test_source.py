"""YAML with positions: nothing silent, nothing endless."""

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo.source import MAX_FILE_BYTES, SpecError, documents


def fault(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        documents(text, "slo.yaml")
    return str(caught.value)


def test_numbers_are_their_text_as_decimal() -> None:
    (document,) = documents("{a: 99.9, b: 5, c: '7', d: true, e: null, f: 500ms, g: -1}", "slo.yaml")
    assert document.data == {
        "a": Decimal("99.9"), "b": Decimal(5), "c": "7", "d": True, "e": None, "f": "500ms", "g": Decimal(-1),
    }  # fmt: skip


def test_every_key_and_item_has_a_position() -> None:
    (document,) = documents("service: chat\nobjectives:\n  - name: a\n  - {name: b}\n", "slo.yaml")
    assert document.marks[("service",)] == (1, 1)
    assert document.marks[("objectives", 1, "name")] == (4, 6)
    assert str(document.problem(("objectives", 1, "gone", 3), "odd")) == "slo.yaml:4:5: odd"


def test_several_documents_in_one_file() -> None:
    assert [d.data for d in documents("a: 1\n---\n---\nb: 2\n", "x")] == [{"a": Decimal(1)}, {"b": Decimal(2)}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "slo.yaml:2:1: key a stands twice"),
        ("a: &x 1\nb: *x\n", "aliases"),
        ("a:\n  <<: {b: 1}\n", "merge keys"),
        ("a: [1, 2\nb: 3\n", "slo.yaml:2:2: not YAML"),
        ("a: \x01\n", "not YAML"),
        ("? [a, b]\n: 1\n", "a key must be plain text"),
        ("[" * 1000, "nested too deep"),
        ("a: 1\n" * (MAX_FILE_BYTES // 5 + 1), "a spec is a short file"),
        ("[" + "1," * 60_000 + "]", "a spec is a short file"),
    ],
    ids=["repeated key", "alias", "merge key", "unclosed", "control character", "list as key", "deep", "long", "many"],
)
def test_what_yaml_would_accept_or_choke_on_is_refused_in_one_line(text: str, message: str) -> None:
    said = fault(text)
    assert message in said
    assert len(said.splitlines()) == 1


@given(st.text(max_size=200))
def test_any_text_gives_documents_or_problems(text: str) -> None:
    with contextlib.suppress(SpecError):
        documents(text, "slo.yaml")
