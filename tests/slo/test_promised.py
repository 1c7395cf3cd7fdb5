"""What a result was found for, against a spec of today."""

import json

import pytest

from slo.objective import Spec, parse
from slo.promised import Changed, Promised, as_kept, changed, promised

TTFT = "{{name: ttft, signal: ttft, percentile: {}, threshold: {}}}"
TPOT = "{name: tpot, signal: tpot, percentile: 99, threshold: 50ms}"


def spec(*objectives: str) -> Spec:
    (one,) = parse("service: chat\nclasses: [batch]\nobjectives:\n" + "".join(f"  - {text}\n" for text in objectives))
    return one


BEFORE = spec(TTFT.format(95, "500ms"), TPOT)


def found_for(of: Spec, **more: object) -> Promised:
    settings = {"spec": of.hash, "model": "m", "class": "synthetic", "objectives": [as_kept(o) for o in of.objectives]}
    made = promised(json.loads(json.dumps({"settings": settings | more})))
    assert made is not None
    return made


CHANGED = {
    "nothing has": (BEFORE, Changed()),
    "only what no load is held against": (
        spec(TTFT.format(95, "0.5s"), TPOT, "{name: answered, signal: availability, target: 99.9%}"),
        Changed(),
    ),
    "only names and periods": (spec(TTFT.format(95, "500ms").replace("name: ttft", "name: first"), TPOT), Changed()),
    "a threshold is tighter": (
        spec(TTFT.format(95, "300ms"), TPOT),
        Changed(more=("ttft was 95% within 500ms and is 95% within 300ms now",)),
    ),
    "a percentile is higher": (
        spec(TTFT.format(99, "500ms"), TPOT),
        Changed(more=("ttft was 95% within 500ms and is 99% within 500ms now",)),
    ),
    "a threshold is looser": (
        spec(TTFT.format(95, "1s"), TPOT),
        Changed(less=("ttft was 95% within 500ms and is 95% within 1s now",)),
    ),
    "higher and looser is more": (
        spec(TTFT.format(99, "1s"), TPOT),
        Changed(more=("ttft was 95% within 500ms and is 99% within 1s now",)),
    ),
    "one is new": (
        spec(TTFT.format(95, "500ms"), TPOT, "{name: whole, signal: e2e, percentile: 95, threshold: 30s}"),
        Changed(more=("whole (95% within 30s) was not looked at",)),
    ),
    "one is gone": (
        spec(TPOT),
        Changed(less=("ttft was 95% within 500ms and is promised no more",)),
    ),
    "new ones of other requests are nothing to it": (
        spec(
            *(TTFT.format(95, "500ms"), TPOT),
            "{name: a, signal: ttft, percentile: 95, threshold: 9ms, match: {model: other}}",
            "{name: b, signal: ttft, percentile: 95, threshold: 9ms, match: {class: batch}}",
            '{name: c, signal: ttft, percentile: 95, threshold: 9ms, match: {prompt_bytes: "<16k"}}',
        ),
        Changed(),
    ),
    "answers are judged from another length on": (
        spec(TTFT.format(95, "500ms"), TPOT.replace("50ms", "50ms, min_output_tokens: 9")),
        Changed(
            more=("tpot (99% within 50ms) was not looked at",),
            less=("tpot was 99% within 50ms and is promised no more",),
        ),
    ),
}


@pytest.mark.parametrize(("now", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_what_has_changed(now: Spec, expected: Changed) -> None:
    assert changed(found_for(BEFORE), now) == expected


def test_the_spec_itself_is_not_compared_with_itself() -> None:
    assert changed(found_for(BEFORE, objectives=[]), BEFORE) == Changed()
    assert changed(None, BEFORE) == Changed()


def test_all_that_has_changed_is_one_line() -> None:
    assert changed(found_for(BEFORE), spec(TTFT.format(99, "500ms"))).text == (
        "ttft was 95% within 500ms and is 99% within 500ms now; tpot was 99% within 50ms and is promised no more"
    )
    assert Changed().text == ""


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"settings": 3},
        {"settings": {"objectives": None}},
        {"settings": {"objectives": [3]}},
        {"settings": {"objectives": [{"signal": "ttft"}]}},
        {"settings": {"objectives": [{"signal": "ttft", "name": "a", "percentile": "x", "threshold": "1"}]}},
    ],
)
def test_a_result_that_does_not_say_is_not_held_against_anything(said: object) -> None:
    assert promised(said) is None
