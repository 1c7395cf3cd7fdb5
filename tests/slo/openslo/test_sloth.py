"""Sloth's specs as promises."""

import pytest

from slo.openslo.carrying import checked, specs
from slo.openslo.promise import Found
from slo.openslo.sloth import is_sloth, read
from slo.source import documents

SPEC = """
version: prometheus/v1
service: chat
labels: {owner: llm, cluster: west}
slos:
  - name: answers
    objective: 99.9
    description: people get answers
    labels: {tier: gold}
    sli:
      events:
        error_query: sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))
        total_query: sum(rate(http_requests_total[{{.window}}]))
    alerting:
      name: ChatDown
      annotations: {runbook: "https://runbooks/chat"}
      page_alert: {labels: {severity: critical}}
      ticket_alert: {disable: true}
  - name: first-token
    objective: 95
    sli:
      events:
        error_query: |
          sum(rate(vllm:time_to_first_token_seconds_count[{{.window}}]))
          - sum(rate(vllm:time_to_first_token_seconds_bucket{le="0.5"}[{{.window}}]))
        total_query: sum(rate(vllm:time_to_first_token_seconds_count[{{.window}}]))
"""
RESOURCE = """
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: chat, namespace: llm}
spec:
  service: chat
  slos:
    - name: answers
      objective: 99
      sli: {events: {errorQuery: 'rate(x_errors_total[{{.window}}])', totalQuery: 'rate(x_total[{{.window}}])'}}
      alerting: {pageAlert: {disable: true}}
"""


def found(text: str) -> Found:
    read_documents = documents(text, "x.yaml")
    assert all(map(is_sloth, read_documents))
    return checked(read(read_documents))


def test_events_are_availability_and_latency() -> None:
    made = found(SPEC)
    assert made.left == ()
    assert made.notes == ("Sloth's period is taken as 30d, its default",)
    (spec,) = specs(made)
    answers, first = spec.objectives
    assert (answers.signal, str(answers.goal), answers.window) == ("availability", "0.999", 30 * 86400)
    assert (first.signal, str(first.goal), float(first.threshold or 0)) == ("ttft", "0.95", 0.5)
    assert (answers.owner, answers.labels) == ("llm", {"cluster": "west", "tier": "gold"})
    assert answers.runbook_url == "https://runbooks/chat"


def test_what_its_alerts_were_is_said() -> None:
    notes = found(SPEC).promises[0].notes
    assert any("labels of its page alert" in note for note in notes)
    assert any("its ticket alert was switched off" in note for note in notes)


def test_its_kubernetes_resource_is_the_same() -> None:
    (one,) = found(RESOURCE).promises
    assert (one.fields["signal"], one.fields["target"]) == ("availability", "99%")
    assert any("its page alert was switched off" in note for note in one.notes)


LEFT = {
    "raw": ("sli: {raw: {error_ratio_query: x}}", "its SLI is raw"),
    "a plugin": ("sli: {plugin: {id: x}}", "its SLI is plugin"),
    "nothing": ("sli: {}", "its SLI is nothing"),
    "half of it": ("sli: {events: {error_query: x}}", "has no error_query and total_query"),
}


@pytest.mark.parametrize(("sli", "why"), LEFT.values(), ids=LEFT.keys())
def test_what_stays_behind_is_told_why(sli: str, why: str) -> None:
    made = found(f"version: prometheus/v1\nservice: chat\nslos: [{{name: a, objective: 99, {sli}}}]\n")
    assert [one.why.startswith(why) for one in made.left] == [True]
    no_objective = found("version: prometheus/v1\nservice: chat\nslos: [{name: a, sli: {}}]\n")
    assert [one.why for one in no_objective.left] == ["has no objective, a percentage"]
    (nameless,) = found("version: prometheus/v1\nslos: [{name: a, objective: 9}]\n").left
    assert nameless.why == "names no service"
    (empty,) = found("version: prometheus/v1\nservice: chat\n").left
    assert empty.why == "has no slos"


def test_what_is_no_spec_of_its_is_known() -> None:
    assert not any(map(is_sloth, documents("version: prometheus/v2\n---\n- a\n", "x")))
