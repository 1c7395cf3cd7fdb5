"""What stands on the terminal, and what a program gets."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from firsttoken.doctor.checks.table import findings
from firsttoken.doctor.facts import Facts, SidecarFacts
from firsttoken.doctor.report import mapping, seen, shown
from tests.firsttoken.doctor.checks.test_stream import LATE, stream
from tests.firsttoken.doctor.healthy import healthy, prometheus, server


def text(facts: Facts, *, notes: bool = False, columns: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=400, soft_wrap=True).print(shown(facts, findings(facts), notes=notes, columns=columns))
    return out.getvalue()


HEALTHY = """\
server       http://server:8000  vllm 0.33.0, tells ttft, kv_occupancy, queue
sidecar      http://sidecar:9464  chat, sees requests, spec {hash}
collector    http://collector:4318  release 0.1.0, chat {hash}
prometheus   http://prometheus:9090  2.42.0, 1 sidecar, {rules} rules of ours
alertmanager http://alertmanager:9093  1 alert
spec         chat  4 objectives, {hash}

nothing wrong: {checks} checks of 6 things looked at; 1 note more with --notes
"""


def test_a_healthy_stack_is_a_few_lines() -> None:
    facts = healthy()
    rules = sum(len(group.rules) for group in facts.prometheuses[0].groups)
    told = mapping(facts, findings(facts))
    assert text(facts) == HEALTHY.format(hash=facts.specs[0].hash, rules=rules, checks=told["checks"])
    assert "note: watchdog-unheard" in text(facts, notes=True)


FAULTY = """\

error: no-alertmanager
  prometheus http://prometheus:9090
  evaluates our alerts and knows no Alertmanager: nobody is told
  fix  alerting: {alertmanagers: [{static_configs: [{targets: ['HOST:9093']}]}]}
       in prometheus.yml

"""


def test_a_finding_says_what_where_and_how_to_mend_it() -> None:
    told = text(prometheus(healthy(), alertmanagers=()))
    assert FAULTY in told
    assert told.splitlines()[-1].startswith("1 thing wrong: ")


@pytest.mark.parametrize("columns", [40, 80, 110])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    facts = stream(prometheus(healthy(), alertmanagers=(), groups=()), bursts=LATE)
    lines = text(facts, notes=True, columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) > 15


def test_a_narrow_terminal_and_a_wide_one_have_their_limits() -> None:
    assert text(healthy(), columns=5) == text(healthy(), columns=40)
    assert text(healthy(), columns=500) == text(healthy(), columns=110)


def test_what_others_say_steers_no_terminal() -> None:
    told = text(server(healthy(), version="\x1b[31m1"))
    assert "\x1b" not in told
    assert "\\x1b[31m1" in told


def test_where_nothing_answers_no_count_of_checks_is_told() -> None:
    away = Facts(0.0, sidecars=(SidecarFacts("http://gone", "does not answer"),))
    assert text(away).splitlines()[-1] == "1 thing wrong: nothing to check"


def test_a_program_gets_all_of_it() -> None:
    facts = replace(prometheus(healthy(), alertmanagers=()), unread={"http://far:9464": "does not answer"})
    told = json.loads(json.dumps(mapping(facts, findings(facts))))
    assert told["is_fine"] is False
    assert {one["code"] for one in told["findings"]} == {"no-alertmanager", "watchdog-unheard"}
    assert told["not_looked_at"] == {"http://far:9464": "does not answer"}
    assert [one["kind"] for one in told["looked_at"]] == [one.kind for one in seen(facts)]
    assert "not looked at http://far:9464: does not answer" in text(facts)
