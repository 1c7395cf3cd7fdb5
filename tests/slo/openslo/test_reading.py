"""OpenSLO v1 documents as promises, each kind of them as people write it."""

import pytest

from slo.openslo.carrying import checked, specs
from slo.openslo.promise import Found
from slo.openslo.reading import is_openslo, read
from slo.source import documents

GOOD = 'sum(rate(vllm:time_to_first_token_seconds_bucket{le="0.5"}[5m]))'
TOTAL = "sum(rate(vllm:time_to_first_token_seconds_count[5m]))"
SLO = """
apiVersion: openslo/v1
kind: SLO
metadata: {{name: fast, labels: {{team: llm}}}}
spec:
  service: {service}
  {indicator}
  timeWindow: [{window}]
  budgetingMethod: {method}
  objectives: {objectives}
"""
RATIO = f"""indicator:
    metadata: {{name: i}}
    spec:
      ratioMetric:
        counter: true
        good: {{metricSource: {{type: Prometheus, spec: {{query: '{GOOD}'}}}}}}
        total: {{metricSource: {{type: Prometheus, spec: {{query: '{TOTAL}'}}}}}}"""
ROLLING = "{duration: 28d, isRolling: true}"


def slo(
    *,
    indicator: str = RATIO,
    window: str = ROLLING,
    method: str = "Occurrences",
    objectives: str = "[{target: 0.95}]",
    service: str = "chat",
) -> str:
    return SLO.format(indicator=indicator, window=window, method=method, objectives=objectives, service=service)


def found(text: str) -> Found:
    read_documents = documents(text, "x.yaml")
    assert all(map(is_openslo, read_documents))
    return checked(read(read_documents))


def fields(text: str) -> dict[str, object]:
    (one,) = found(text).promises
    return dict(one.fields)


def why(text: str) -> str:
    (one,) = found(text).left
    return one.why


def test_a_ratio_of_a_latency_is_carried_over_whole() -> None:
    made = found(slo())
    assert (made.left, made.notes, made.promises[0].notes) == ((), (), ())
    assert fields(slo()) == {
        "name": "fast",
        "signal": "ttft",
        "percentile": "95%",
        "threshold": "500ms",
        "window": "28d",
        "owner": "llm",
    }


def test_a_percentage_and_several_objectives() -> None:
    made = found(slo(objectives="[{targetPercent: 99.5}, {displayName: x, target: 0.9}]"))
    assert [(one.name, one.fields["percentile"]) for one in made.promises] == [("fast-1", "99.5%"), ("fast-2", "90%")]


def test_an_indicator_may_stand_in_a_document_of_its_own() -> None:
    sli = RATIO.replace("indicator:\n    metadata: {name: i}\n", "").replace("    spec:", "spec:", 1)
    own = f"apiVersion: openslo/v1\nkind: SLI\nmetadata: {{name: latency}}\n{sli}\n---"
    assert fields(own + slo(indicator="indicatorRef: latency"))["threshold"] == "500ms"
    assert "refers to SLI latency, which is not in the file" in why(slo(indicator="indicatorRef: latency"))


THRESHOLD = """indicator:
    spec: {thresholdMetric: {metricSource: {type: prometheus, spec: {promql: 'max(vllm:kv_cache_usage_perc)'}}}}"""
SLICES = "[{op: lte, value: 0.9, target: 0.99, timeSliceTarget: 0.99, timeSliceWindow: 1m}]"


def test_a_state_by_slices_becomes_one_by_seconds() -> None:
    made = found(slo(indicator=THRESHOLD, method="Timeslices", objectives=SLICES))
    (one,) = made.promises
    assert (one.fields["signal"], one.fields["threshold"], one.fields["target"]) == ("kv_occupancy", "90%", "99%")
    assert one.notes == ("Timeslices: here every second with work is counted, whatever the slice was",)


WINDOWS = {
    "{duration: 4w, isRolling: true}": ("4w", 0),
    "{duration: 12h, isRolling: true}": ("12h", 0),
    "{duration: 1M, isRolling: true}": ("30d", 1),
    "{duration: 1Q, calendar: {startTime: 2026-01-01 00:00:00, timeZone: UTC}}": ("90d", 2),
    "{duration: 7d, isRolling: false}": ("7d", 1),
}


@pytest.mark.parametrize(("window", "own"), WINDOWS.items(), ids=WINDOWS.keys())
def test_windows_roll_here(window: str, own: tuple[str, int]) -> None:
    (one,) = found(slo(window=window)).promises
    assert (one.fields["window"], len(one.notes)) == own


def test_without_a_window_it_is_ours() -> None:
    text = slo().replace(f"  timeWindow: [{ROLLING}]\n", "")
    assert "window" not in fields(text)
    assert specs(found(text))[0].objectives[0].window == 28 * 86400


def indicator(metric: str) -> str:
    return f"indicator: {{spec: {metric}}}"


LEFT = {
    "a ratio computed elsewhere": (slo(indicator=indicator("{ratioMetric: {rawType: success, raw: {}}}")), "elsewhere"),
    "another database": (slo().replace("type: Prometheus", "type: Datadog"), "is read from Datadog"),
    "requests by slices of time": (slo(method="Timeslices"), "budgets by Timeslices"),
    "no target": (slo(objectives="[{displayName: x}]"), "has neither target nor targetPercent"),
    "a composite": (slo(objectives="[{target: 0.9, indicatorRef: x}]"), "composed of several indicators"),
    "no indicator": (slo(indicator=indicator("{description: x}")), "neither a ratio nor a threshold"),
    "a threshold without a value": (slo(indicator=THRESHOLD), "has no value"),
    "a window that is none": (slo(window="{duration: soon}"), "has a time window of soon"),
    "a query that is none": (slo().replace("query", "question"), "has an indicator without a query"),
    "a service without a name": (slo(service='""'), "names no service"),
    "a service whose name is none": (slo(service="a/b"), "is no name here"),
    "an export that somebody has spoilt": (
        slo().replace("labels: {team: llm}", "annotations: {firsttoken/objective: '{half'}"),
        "that is no JSON object",
    ),
    "a target of all": (slo(objectives="[{target: 1.0}]"), "leaves no error budget"),
}


@pytest.mark.parametrize(("text", "reason"), LEFT.values(), ids=LEFT.keys())
def test_what_stays_behind_is_told_why(text: str, reason: str) -> None:
    assert reason in why(text)


def test_other_kinds_are_said_and_cost_nothing() -> None:
    policy = "apiVersion: openslo/v1\nkind: AlertPolicy\nmetadata: {name: p}\nspec: {}\n---"
    made = found(policy + slo() + "  alertPolicies: [{alertPolicyRef: p}]\n")
    assert made.notes == ("AlertPolicy: burn alerts follow from the targets here, see firsttoken slo check",)
    assert made.promises[0].notes == ("its alert policies are not carried over: burn alerts follow from the target",)


ODD = """
apiVersion: openslo/v1
kind: SLO
metadata: [a]
spec: {service: chat, objectives: [{target: yes}, 5], indicator: [x]}
---
apiVersion: openslo/v1
kind: SLO
spec:
  {service: chat, timeWindow: {a: b}, indicator: {spec: {ratioMetric: {good: x, total: 7}}}, objectives: [{target: 1}]}
---
apiVersion: openslo/v1
kind: Wish
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: x, annotations: {firsttoken/objective: '{"name": 5, "signal": "zz", "bogus": 1}'}}
spec: {service: chat, objectives: [{target: 0.9}]}
---
apiVersion: openslo/v1
kind: Service
metadata: {name: chat, annotations: {firsttoken/service: '{"bogus": 1, "elastic": true}'}}
"""


def test_whatever_the_documents_are_nothing_raises_and_each_is_told_of() -> None:
    made = found(ODD)
    assert [(one.name, one.why.partition(":")[0]) for one in made.left] == [
        ("unnamed", "has neither target nor targetPercent"),
        ("unnamed", "has an indicator without a query"),
        ("5", "signal"),
    ]
    assert made.notes == ("Wish: no kind of OpenSLO v1, passed over",)
    assert made.settings == {"chat": {"elastic": True}}


EMPTY = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: hollow}
spec: {service: chat}
"""


def test_a_promise_without_objectives_is_left_behind_and_not_forgotten() -> None:
    made = found(f"{slo()}\n---{EMPTY}")
    assert [one.name for one in made.promises] == ["fast"]
    assert [(one.name, one.why) for one in made.left] == [("hollow", "has no objectives")]


def test_an_annotation_without_end_is_none() -> None:
    text = slo().replace("labels: {team: llm}", f"annotations: {{firsttoken/objective: '{'[' * 10_000}'}}")
    assert "that is no JSON object" in why(text)


def test_a_window_that_is_longer_than_any_number_is_told() -> None:
    assert "has a time window of 9" in why(slo(window=f"{{duration: {'9' * 5000}Y}}"))


def test_what_is_no_openslo_v1_is_known() -> None:
    assert not any(map(is_openslo, documents("apiVersion: openslo/v2alpha1\n---\nservice: x\n---\n- a\n", "x")))
