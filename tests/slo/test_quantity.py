"""Quantities as people write them, read exactly."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo import quantity
from slo.quantity import QuantityError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", "0.5"),
        ("1.5s", "1.5"),
        ("5m", "300"),
        ("1h", "3600"),
        ("28d", "2419200"),
        ("2w", "1209600"),
        (" 1s ", "1"),
    ],
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: str) -> None:
    assert quantity.duration_s(text) == Decimal(seconds)


@pytest.mark.parametrize("text", ["500", "0s", "-1s", "1 s", "s", "", "1e3s", "1m30s", "1y", "١s", None, "1ms\n2"])
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(QuantityError, match="duration"):
        quantity.duration_s(text)


def test_a_duration_fits_where_nanoseconds_are_counted_in_64_bits() -> None:
    assert quantity.duration_s("10000d") * 10**9 < 2**63
    with pytest.raises(QuantityError, match="10001d is too long: a duration is at most 10000d"):
        quantity.duration_s("10001d")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ([Decimal(1)], "a list"),
        ({"a": 1}, "a mapping"),
        (Decimal("1.50"), "1.50"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 57 + "..."),
    ],
)
def test_a_wrong_value_is_shown_as_yaml_has_it_and_on_one_line(value: object, text: str) -> None:
    assert quantity.shown(value) == text


def test_a_window_is_whole_seconds() -> None:
    assert quantity.whole_seconds("90s") == 90
    with pytest.raises(QuantityError, match="whole number of seconds"):
        quantity.whole_seconds("1500ms")


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("95", "0.95"),
        ("99.9%", "0.999"),
        ("0.5 %", "0.005"),
        ("100", "1"),
        ("0", "0"),
        ("1%", "0.01"),
        ("1.5", "0.015"),
    ],
)
def test_a_share_is_always_in_percent(text: str, fraction: str) -> None:
    assert quantity.share(text) == Decimal(fraction)


@pytest.mark.parametrize("text", ["0.999", "1", "1.0", "0.02"])
def test_a_number_that_may_be_a_fraction_needs_its_sign(text: str) -> None:
    with pytest.raises(QuantityError, match="may be a fraction or a percentage"):
        quantity.share(text)


@pytest.mark.parametrize("text", ["ninety", "-1%", "", "1e2", "50%%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="percentage"):
        quantity.share(text)


@pytest.mark.parametrize(
    ("text", "size"), [("16k", 16384), ("1.5m", 1572864), ("100", 100), ("2KB", 2048), ("1g", 1 << 30)]
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert quantity.size_bytes(text) == size


@pytest.mark.parametrize("text", ["big", "-1k", "1t", ""])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="size"):
        quantity.size_bytes(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "-0", "x", "", "1e9", "9" * 16, "٣"])
def test_a_number_is_finite_and_not_negative(text: str) -> None:
    with pytest.raises(QuantityError, match="number"):
        quantity.number(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.0009999999999999432", "0.0009999999999999432"),
        ("13.440", "13.44"),
        ("1E+3", "1000"),
        ("0", "0"),
        ("120", "120"),
    ],
)
def test_plain_text_has_no_exponent_and_no_trailing_zero(value: str, text: str) -> None:
    assert quantity.plain(Decimal(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300, "5m"),
        (3600, "1h"),
        (86400, "1d"),
        (2419200, "28d"),
        (15, "15s"),
        (90, "90s"),
        (0.5, "500ms"),
        (1.5, "1.5s"),
    ],
)
def test_a_window_has_one_label_everywhere(seconds: float, text: str) -> None:
    assert quantity.duration_text(seconds) == text


@given(st.integers(min_value=1, max_value=10**10))
def test_the_label_of_a_duration_reads_back(milliseconds: int) -> None:
    seconds = Decimal(milliseconds) / 1000
    assert quantity.duration_s(quantity.duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1s"),
        (119.4, "119s"),
        (120, "2m"),
        (Decimal("5387.2"), "90m"),
        (7199, "2h 0m"),
        (172_799, "2d 0h"),
        (190_000, "2d 4h"),
    ],
)
def test_a_duration_is_rounded_for_people(seconds: Decimal | float, text: str) -> None:
    assert quantity.about_text(seconds) == text


def test_a_percentage_is_written_without_noise() -> None:
    assert quantity.percent_text(Decimal("0.999")) == "99.9%"


@pytest.mark.parametrize(("text", "rate"), [("600/h", "0.1666666667"), ("10/m", "0.1666666667"), (" 2.5 / s", "2.5")])
def test_a_rate_is_read_with_its_unit_of_time(text: str, rate: str) -> None:
    assert round(quantity.per_second(text), 10) == Decimal(rate)


def test_a_small_number_is_read_as_it_was_written() -> None:
    small = Decimal("0.00000001")
    assert "E" in str(small)
    assert quantity.number(small) == small
    with pytest.raises(QuantityError, match=r"write 0\.000001% or 0\.00000001%"):
        quantity.share(small)


@pytest.mark.parametrize("text", ["600", "600/", "/h", "600/w", "0/h", "-1/s", "", "1000001/s", "9" * 400 + "/h"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="rate"):
        quantity.per_second(text)
