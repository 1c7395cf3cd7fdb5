"""What may be asked, and what is said to who asks for something else."""

from typing import Any

import pytest
from pydantic import ValidationError

from collector.answering.asked import MAX_MOMENTS, BurnAsked, PercentilesAsked, Stretch, cursor
from collector.errors import RefusedError
from collector.values.deltas import LatencyKey

MOMENTS = {
    "1700000000": 1_700_000_000,
    "2026-11-30T08:00:00Z": 1_796_025_600,
    "2026-11-30T09:00:00+01:00": 1_796_025_600,
    "2026-11-30T08:00:00.9Z": 1_796_025_600,
}


@pytest.mark.parametrize(("text", "moment"), MOMENTS.items())
def test_a_moment_is_epoch_seconds_or_rfc_3339(text: str, moment: int) -> None:
    assert BurnAsked.model_validate({"from": text}).from_s == moment


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a day without a zone": ({"from": "2026-11-30T08:00:00"}, "names no zone"),
    "a word": ({"to": "yesterday"}, "is no moment"),
    "another century": ({"to": "2200-01-01T00:00:00Z"}, "beyond what is kept"),
    "a window without a unit": ({"window": "5"}, "is not a duration"),
    "a window of no time": ({"window": "0s"}, "no time at all"),
    "a window of years": ({"window": "500d"}, "too long"),
    "a window of parts of a second": ({"window": "500ms"}, "whole number of seconds"),
    "too many rows": ({"limit": "5001"}, "less than or equal"),
    "no rows": ({"limit": "0"}, "greater than or equal"),
    "a name nobody can have": ({"service": "a\0b"}, "pattern"),
    "a parameter nobody knows": ({"windo": "5m"}, "Extra inputs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_parameter_that_is_wrong_by_itself_is_refused(case: str) -> None:
    given, says = REFUSED[case]
    with pytest.raises(ValidationError, match=says):
        BurnAsked.model_validate(given)


CONTRADICTIONS: dict[str, tuple[dict[str, str], str]] = {
    "the end before the beginning": ({"from": "20", "to": "10"}, "lies after to"),
    "steps without a beginning": ({"to": "20", "step": "1m"}, "no beginning"),
    "too many steps": ({"from": "0", "to": str(MAX_MOMENTS * 60 + 60), "step": "1m"}, "more than"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_parameters_that_contradict_each_other_are_refused(case: str) -> None:
    given, says = CONTRADICTIONS[case]
    with pytest.raises(RefusedError, match=says) as refused:
        BurnAsked.model_validate(given).span(100)
    assert refused.value.status == 400


def test_a_stretch_ends_now_unless_told() -> None:
    assert Stretch.model_validate({"from": 10}).span(99) == (10, 99)
    assert Stretch.model_validate({"to": 50}).span(99) == (0, 50)
    assert Stretch().is_latest


def test_a_cursor_comes_back_as_it_went() -> None:
    key = [1_800_000_000, "", "chat", "gpt·4", "ttft", 300]
    asked = BurnAsked(next=cursor(key))
    assert asked.after([int, str, str, str, str, int]) == key
    assert BurnAsked().after([int]) is None


@pytest.mark.parametrize(
    "text", ["", "x", "e30=", cursor(["1"]), cursor([True]), cursor([1, 2]), cursor([None]), cursor([1.5])]
)
def test_a_cursor_that_nobody_gave_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="not what an answer gave") as refused:
        BurnAsked(next=text).after([int])
    assert refused.value.status == 400


def test_filters_are_those_that_were_given() -> None:
    assert BurnAsked(service="chat", environment="").filters() == {"environment": "", "service": "chat"}
    assert PercentilesAsked(signal="ttft", source="proxy").filters() == {"signal": "ttft", "source": "proxy"}


ONE = {"instance": "i1", "service": "chat", "model": "m", "signal": "ttft", "window": "5m"}


def test_an_instance_is_asked_for_as_of_now() -> None:
    asked = PercentilesAsked.model_validate(ONE).of_instance()
    assert (asked.instance, asked.latency) == ("i1", LatencyKey("", "chat", "m", "ttft", "proxy"))
    for name in ("service", "model", "signal", "window"):
        part = {key: value for key, value in ONE.items() if key != name}
        with pytest.raises(RefusedError, match=f"needs {name} as well"):
            PercentilesAsked.model_validate(part).of_instance()
    with pytest.raises(RefusedError, match="as of now"):
        PercentilesAsked.model_validate(ONE | {"from": "1"}).of_instance()
