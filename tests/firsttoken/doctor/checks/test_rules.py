"""What is said of the rules that a Prometheus runs."""

from dataclasses import replace

import pytest

from firsttoken.doctor.checks.rules import engine_names
from firsttoken.doctor.facts import Facts, LoadedGroup, LoadedRule
from slo.objective import parse
from tests.firsttoken.doctor.healthy import (
    OTHER_SPEC,
    SLO_YAML,
    SPEC,
    Plant,
    Planted,
    healthy,
    of_code,
    prometheus,
    rules_of,
    wrong,
)

MORE = parse(SLO_YAML + "  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms}\n")[0]


def failing(facts: Facts, count: int = 1) -> Facts:
    group = rules_of(SPEC)[1]
    first = replace(group.rules[0], health="err", error="many-to-many matching")
    rules = [first, *(replace(first, name=f"another_{place}") for place in range(1, count))]
    return prometheus(facts, groups=(replace(group, rules=rules), *rules_of(SPEC)[2:], rules_of(SPEC)[0]))


def late(facts: Facts) -> Facts:
    first, *others = rules_of(SPEC)
    return prometheus(facts, groups=(replace(first, took_s=first.interval_s + 1), *others))


def with_rule(facts: Facts, query: str) -> Facts:
    rule = LoadedRule("mine", "KVFull", True, query, {}, "ok", "")
    return prometheus(facts, groups=(*rules_of(SPEC), LoadedGroup("mine", 60.0, 0.1, (rule,))))


PLANTED: Planted = {
    "no rules at all, and nobody else who tells": ("rules-absent", lambda f: prometheus(f, groups=())),
    "a rule that fails": ("rule-failing", failing),
    "a group that takes too long": ("rules-slow", late),
    "an objective that was added after the rules were built": (
        "rules-incomplete",
        lambda f: replace(f, specs=(MORE,)),
    ),
    "an objective that was removed since": ("rules-stale", lambda f: prometheus(f, groups=rules_of(MORE))),
    "a threshold that was changed since": ("rules-stale", lambda f: prometheus(f, groups=rules_of(OTHER_SPEC))),
    "rules for a service that nobody counts": (
        "rules-without-series",
        lambda f: prometheus(f, events=tuple({**one, "service_name": "talk"} for one in f.prometheuses[0].events)),
    ),
    "rules for an objective that nobody counts": (
        "rules-without-series",
        lambda f: prometheus(f, events=f.prometheuses[0].events[1:]),
    ),
    "two folders of the same rules": ("rules-twice", lambda f: prometheus(f, groups=rules_of(SPEC) * 2)),
    "a rule over a metric that vLLM renamed": (
        "rule-series-absent",
        lambda f: with_rule(f, "max(vllm:gpu_cache_usage_perc) > 0.9"),
    ),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert [one for one in of_code(plant(healthy()), code) if one.is_wrong]


def test_rules_of_the_spec_are_whole_and_of_it() -> None:
    assert wrong(healthy()) == set()


def test_what_changed_is_told_in_its_own_words() -> None:
    (finding,) = of_code(prometheus(healthy(), groups=rules_of(OTHER_SPEC)), "rules-stale")
    assert "threshold of ttft is 0.4 there" in finding.what
    (finding,) = of_code(prometheus(healthy(), groups=rules_of(MORE)), "rules-stale")
    assert "tpot is no objective any more" in finding.what


def test_what_is_missing_is_named_up_to_a_number() -> None:
    (finding,) = of_code(replace(healthy(), specs=(MORE,)), "rules-incomplete")
    assert "firsttoken:chat:tpot:" in finding.what
    assert finding.what.endswith(" more")


def test_many_failing_rules_are_a_few_lines() -> None:
    assert len(of_code(failing(healthy(), 30), "rule-failing")) == 5


def test_a_renamed_metric_is_told_its_new_name() -> None:
    (finding,) = of_code(with_rule(healthy(), "vllm:gpu_cache_usage_perc > 1"), "rule-series-absent")
    assert "it is called vllm:kv_cache_usage_perc now" in finding.what
    assert wrong(with_rule(healthy(), "vllm:kv_cache_usage_perc > 1")) == set()
    # Nobody scrapes such an engine here: its rules may be of another cluster.
    assert wrong(with_rule(healthy(), "sglang:token_usage > 1")) == set()


def test_names_are_read_outside_of_quotes() -> None:
    query = "rate(vllm:a_total{le=\"vllm:b\", x=~'sglang:c'}[5m]) / on (model_name) tgi_queue_size and up"
    assert engine_names(query) == {"vllm:a_total", "tgi_queue_size"}
