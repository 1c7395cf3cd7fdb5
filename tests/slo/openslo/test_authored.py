"""Objectives as somebody would write them: written and read again, they are the same."""

import json

import pytest

from slo.objective import Objective, parse
from slo.openslo.authored import authored, settings

EVERYTHING = """
service: chat
environment: prod
classes: [interactive]
elastic: true
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - name: small
    signal: ttft
    percentile: 99.5
    threshold: 1.5s
    window: 7d
    match: {model: "llama-*", class: interactive, prompt_bytes: "<16k"}
    owner: llm
    labels: {tier: gold}
    runbook_url: https://runbooks/ttft
  - {name: middle, signal: ttft, percentile: 95, threshold: 2s, match: {prompt_bytes: 16k..64k}}
  - {name: large, signal: ttft, percentile: 95, threshold: 9s, match: {prompt_bytes: ">=64k"}}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms, stall: 7s, min_output_tokens: 8}
  - name: answered
    signal: availability
    target: 99.95%
    patience: 30s
    alerts:
      min_bad_events: 7
      tiers: [{name: fast, budget: 2%, long: 1h}, {name: late, budget: 10%, long: 3d, short: 90m, notify: ticket}]
    policy: [{budget_left: 50%, do: freeze}, {budget_left: 0%, notify: page, do: stop}]
  - {name: kv, signal: kv_occupancy, threshold: 92.5%, target: 99%}
  - {name: queue, signal: queue, threshold: 12, target: 99%}
"""
(SPEC,) = parse(EVERYTHING)


@pytest.mark.parametrize("objective", SPEC.objectives, ids=lambda one: one.name)
def test_an_objective_written_and_read_again_is_the_same(objective: Objective) -> None:
    written = json.loads(json.dumps(authored(objective)))
    again = Objective.model_validate(written)
    assert again == objective
    assert again.hash == objective.hash


def test_what_has_its_default_is_not_written() -> None:
    assert authored(SPEC.objectives[0]) == {
        "name": "ttft",
        "signal": "ttft",
        "percentile": "95%",
        "threshold": "500ms",
        "window": "28d",
    }


def test_the_settings_of_a_service_are_what_it_says_of_itself() -> None:
    assert settings(SPEC) == {"environment": "prod", "classes": ["interactive"], "elastic": True}
    (plain,) = parse("service: x\nobjectives: [{name: a, signal: availability, target: 99%}]\n")
    assert settings(plain) == {}
