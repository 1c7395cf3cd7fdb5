"""The words of events: shared ones, counts and names that can be none, error types fit for a label."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.said import facts
from sidecar.said.facts import ANSWER, NOTHING, REASONING, Usage, count, error_type, event, name

ERRORS: dict[str, tuple[Any, str | None]] = {
    "a type inside": ({"error": {"type": "server_error", "message": "x", "code": 500}}, "server_error"),
    "a code alone": ({"error": {"code": 503}}, "503"),
    "a text with its type beside": ({"error": "Model is overloaded", "error_type": "overloaded"}, "overloaded"),
    "a text alone": ({"error": "gone"}, "error"),
    "the older form": ({"object": "error", "type": "BadRequestError", "message": "x"}, "BadRequestError"),
    "an event of type error": ({"type": "error", "error": {"type": "overloaded_error"}}, "overloaded_error"),
    "an event of type error with a code": ({"type": "error", "code": "rate_limit_exceeded"}, "rate_limit_exceeded"),
    "a type that is no identifier is not repeated": ({"error": {"type": "my prompt: hello", "code": 400}}, "400"),
    "a type of great length is not repeated": ({"error": {"type": "x" * 65}}, "error"),
    "a type that is no text": ({"error": {"type": {"a": 1}}}, "error"),
    "null is no error": ({"error": None, "choices": []}, None),
    "a chunk without error": ({"choices": []}, None),
    "a list": ([1], None),
    "a text": ("error", None),
}


@pytest.mark.parametrize("sentence", ERRORS)
def test_error_type(sentence: str) -> None:
    value, expected = ERRORS[sentence]
    assert error_type(value) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "type", "code", "object", "message", "error_type"]) | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=JSON)
def test_an_error_type_is_always_an_identifier(value: Any) -> None:
    found = error_type(value)
    assert found is None or (len(found) <= 64 and not set(found) & set(' "\n{}'))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (7, 7), (-1, None), (True, None), (1.5, None), ("7", None), (None, None), (1 << 41, None), ([1], None)],
)
def test_count(value: Any, expected: int | None) -> None:
    assert count(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("m", "m"), ("", None), (None, None), (7, None), ("x" * 257, None), (["m"], None)]
)
def test_name(value: Any, expected: str | None) -> None:
    assert name(value) == expected


def test_events_without_facts_of_their_own_are_shared() -> None:
    assert event(answer=True) is ANSWER
    assert event(reasoning=True) is REASONING
    assert event() is NOTHING
    assert event(answer=True, usage=Usage(1, 2)) == facts.Event(answer=True, usage=Usage(1, 2))
    assert event(reasoning=True, answer=True) == facts.Event(reasoning=True, answer=True)
    assert event(done=True) == facts.Event(done=True)
