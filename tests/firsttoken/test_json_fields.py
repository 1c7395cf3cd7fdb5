"""Fields of any JSON whatever: found, missing, or of another kind."""

import pytest

from firsttoken.json_fields import (
    moment_at,
    number_at,
    number_of,
    object_at,
    object_of,
    objects_at,
    objects_of,
    text_at,
    whole_at,
)

ITEM: dict[str, object] = {
    "text": "x", "number": 1.5, "written": "2.5", "switch": True, "object": {"a": 1}, "list": [1, {"a": 1}, None, {}],
}  # fmt: skip


def test_what_is_there_is_given() -> None:
    assert object_at(ITEM, "object") == {"a": 1}
    assert list(objects_at(ITEM, "list")) == [{"a": 1}, {}]
    assert text_at(ITEM, "text") == "x"
    assert [number_at(ITEM, key) for key in ("number", "written")] == [1.5, 2.5]
    assert whole_at(ITEM, "written") == 2


def test_a_value_that_stands_nowhere_is_read_alike() -> None:
    assert (object_of(ITEM), list(objects_of([ITEM])), number_of("2.5")) == (ITEM, [ITEM], 2.5)
    assert (object_of([ITEM]), list(objects_of(ITEM)), number_of(ITEM)) == ({}, [], None)


@pytest.mark.parametrize("key", ["none", "switch", "list"])
def test_what_is_missing_or_of_another_kind_is_absent(key: str) -> None:
    assert object_at(ITEM, key) == {}
    assert text_at(ITEM, key) == ""
    assert number_at(ITEM, key) is whole_at(ITEM, key) is None


MOMENTS = {
    "2026-11-30T22:54:00Z": 1796079240.0,
    "2026-11-30T22:54:00.378997362Z": 1796079240.378997,
    "2026-11-30T23:54:00+01:00": 1796079240.0,
    "yesterday": None,
    "": None,
}


@pytest.mark.parametrize(("text", "at_s"), MOMENTS.items(), ids=MOMENTS.keys())
def test_a_moment_is_read_as_epoch_seconds(text: str, at_s: float | None) -> None:
    assert moment_at({"at": text}, "at") == at_s


def test_text_that_is_no_number_is_none() -> None:
    assert number_at(ITEM, "text") is None


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", float("-inf"), 10**400])
def test_a_number_that_nobody_can_reckon_with_is_absent(value: object) -> None:
    assert number_at({"at": value}, "at") is whole_at({"at": value}, "at") is None


@pytest.mark.parametrize("item", [None, 7, "x", [], {"list": {"a": 1}}])
def test_whatever_the_whole_is_nothing_raises(item: object) -> None:
    assert object_at(item, "object") == {}
    assert list(objects_at(item, "list")) == []
