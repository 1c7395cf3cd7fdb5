"""Fields of any JSON whatever: found, missing, or of another kind."""

import pytest

from firsttoken.json_fields import number_at, object_at, objects_at, text_at, whole_at

ITEM: dict[str, object] = {
    "text": "x", "number": 1.5, "written": "2.5", "switch": True, "object": {"a": 1}, "list": [1, {"a": 1}, None, {}],
}  # fmt: skip


def test_what_is_there_is_given() -> None:
    assert object_at(ITEM, "object") == {"a": 1}
    assert list(objects_at(ITEM, "list")) == [{"a": 1}, {}]
    assert text_at(ITEM, "text") == "x"
    assert [number_at(ITEM, key) for key in ("number", "written")] == [1.5, 2.5]
    assert whole_at(ITEM, "written") == 2


@pytest.mark.parametrize("key", ["none", "switch", "list"])
def test_what_is_missing_or_of_another_kind_is_absent(key: str) -> None:
    assert object_at(ITEM, key) == {}
    assert text_at(ITEM, key) == ""
    assert number_at(ITEM, key) is whole_at(ITEM, key) is None


def test_text_that_is_no_number_is_none() -> None:
    assert number_at(ITEM, "text") is None


@pytest.mark.parametrize("item", [None, 7, "x", [], {"list": {"a": 1}}])
def test_whatever_the_whole_is_nothing_raises(item: object) -> None:
    assert object_at(item, "object") == {}
    assert list(objects_at(item, "list")) == []
