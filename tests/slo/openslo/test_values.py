"""Fields of foreign documents: what is of another kind is absent."""

from decimal import Decimal

from slo.openslo.values import mapping_at, mappings_at, number_at, text_at, texts_of

ITEM: dict[str, object] = {
    "a": {"b": "c"},
    "l": [{"x": "y"}, "z", None],
    "t": "text",
    "n": Decimal("0.5"),
    "o": None,
    "q": "99.9",
}


def test_what_is_there_is_given_and_all_else_is_absent() -> None:
    assert mapping_at(ITEM, "a") == {"b": "c"}
    assert [mapping_at(item, key) for item, key in ((ITEM, "t"), (ITEM, "gone"), ("x", "a"), (None, "a"))] == [{}] * 4
    assert list(mappings_at(ITEM, "l")) == [{"x": "y"}]
    assert list(mappings_at(ITEM, "a")) == list(mappings_at(7, "a")) == []
    assert [text_at(ITEM, key) for key in ("t", "n", "a", "o")] == ["text", "0.5", "", ""]
    assert [number_at(ITEM, key) for key in ("n", "q", "t", "gone")] == [Decimal("0.5"), Decimal("99.9"), None, None]
    assert texts_of(ITEM) == {"t": "text", "n": "0.5", "q": "99.9"}
