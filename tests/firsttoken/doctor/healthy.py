"""A healthy stack as the doctor would know it, and the means to spoil one thing in it.

Rules and routes are those that `firsttoken alerts build` makes of the spec; the pages hold the lines that real sidecars
and collectors write. `test_look.py` holds all of it against a real stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from alerts.fleet import fleet_groups
from alerts.group import Alert, Group, Rule
from alerts.routes import Routing, alertmanager
from alerts.rules import Target, service_groups
from firsttoken.doctor.checks.table import findings
from firsttoken.doctor.facts import (
    AlertmanagerFacts,
    CollectorFacts,
    Facts,
    LoadedGroup,
    LoadedRule,
    PrometheusFacts,
    ScrapeTarget,
    ServerFacts,
    SidecarFacts,
)
from firsttoken.doctor.finding import Finding
from firsttoken.doctor.page import read_own
from firsttoken.status_reply import read
from sidecar.engine.metrics_text import Page
from sidecar.polling.backing import Sight
from slo.objective import Spec, parse
from slo.signals import TTFT
from slo.trouble import WATCHDOG

SLO_YAML = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: whole, signal: e2e, percentile: 95, threshold: 30s}
  - {name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 99%}
"""
SPEC = parse(SLO_YAML)[0]
OTHER_SPEC = parse(SLO_YAML.replace("500ms", "400ms"))[0]
NAMES = tuple(objective.name for objective in SPEC.objectives)
NOW_S = 1_796_000_000.0
LONG_AGO_S = NOW_S - 3600
SIDECAR_URL, COLLECTOR_URL = "http://sidecar:9464", "http://collector:4318"
PROMETHEUS_URL, ALERTMANAGER_URL = "http://prometheus:9090", "http://alertmanager:9093"
SERVER_URL = "http://server:8000"
JOB, INSTANCE = "firsttoken", "sidecar:9464"

_RULES: dict[str, tuple[LoadedGroup, ...]] = {}
CONFIG = alertmanager((SPEC,), Routing())

Plant = Callable[[Facts], Facts]
Planted = dict[str, tuple[str, Plant]]
"""Faults by a sentence: the code that must be found, and what makes a healthy stack have it."""


def events_lines(names: Sequence[str] = NAMES) -> str:
    label = 'model_name="m",objective="{}",objective_hash="x",result="good",service_name="chat"'
    return "".join(f"firsttoken_slo_events_total{{{label.format(name)}}} 100.0\n" for name in names)


def sidecar_text(names: Sequence[str] = NAMES) -> str:
    """The page of a sidecar that has lived for ten minutes."""
    return f"""\
firsttoken_heartbeat_total{{model_name="",service_name="chat"}} 600.0
firsttoken_requests_total{{class="",model_name="m",outcome="ok",service_name="chat"}} 100.0
firsttoken_requests_in_flight{{model_name="m",service_name="chat"}} 2.0
gen_ai_server_time_to_first_token_seconds_bucket{{le="0.5",model_name="m",service_name="chat",source=""}} 99.0
gen_ai_server_time_to_first_token_seconds_bucket{{le="160.0",model_name="m",service_name="chat",source=""}} 100.0
gen_ai_server_time_to_first_token_seconds_bucket{{le="+Inf",model_name="m",service_name="chat",source=""}} 100.0
firsttoken_config_last_reload_successful{{model_name="",service_name="chat"}} 1.0
firsttoken_spec_info{{hash="{SPEC.hash}",service_name="chat"}} 1.0
{events_lines(names)}"""


COLLECTOR_TEXT = f"""\
firsttoken_spec_info{{environment="",hash="{SPEC.hash}",service_name="chat"}} 1.0
firsttoken_config_last_reload_successful 1.0
firsttoken_coverage_ratio{{environment="",model_name="*",objective="ttft",service_name="chat",window="5m"}} 1.0
firsttoken_latency_seconds{{model_name="m",quantile="0.5",service_name="chat",signal="ttft",source="proxy"}} 0.1
firsttoken_latency_seconds{{model_name="m",quantile="0.5",service_name="chat",signal="ttft",source="engine"}} 0.1
firsttoken_collector_ticks_total 60.0
firsttoken_collector_lag_seconds 2.5
firsttoken_collector_dropped_total{{reason="span of a sidecar: its metrics count the request"}} 95.0
"""


def status_body(state: str = "ok") -> dict[str, object]:
    rows = [{"service": "chat", "model": "*", "objective": name, "state": "ok"} for name in NAMES]
    rows[0]["state"] = state
    return {"at_s": NOW_S - 3, "objectives": rows}


def loaded(groups: Sequence[Group]) -> tuple[LoadedGroup, ...]:
    """Rule groups as a Prometheus tells of them."""

    def rule_of(group: Group, rule: Rule) -> LoadedRule:
        name = rule.alert if isinstance(rule, Alert) else rule.record
        since_s = LONG_AGO_S if name == WATCHDOG else None
        return LoadedRule(group.name, name, isinstance(rule, Alert), rule.expr, dict(rule.labels), "ok", "", since_s)

    return tuple(
        LoadedGroup(group.name, group.interval_s, 0.01, tuple(rule_of(group, rule) for rule in group.rules))
        for group in groups
    )


def rules_of(spec: Spec) -> tuple[LoadedGroup, ...]:
    """The groups of a spec, made once."""
    if spec.hash not in _RULES:
        _RULES[spec.hash] = _made(spec)
    return _RULES[spec.hash]


def _made(spec: Spec) -> tuple[LoadedGroup, ...]:
    target = Target()
    return loaded((*service_groups(spec, target), *fleet_groups(target.links, dcgm="", query_offset_s=0)))


def events_of(spec: Spec) -> tuple[dict[str, str], ...]:
    at = {"job": JOB, "instance": INSTANCE, "service_name": spec.service}
    return tuple({**at, "objective": one.name, "objective_hash": one.hash} for one in spec.objectives)


def healthy() -> Facts:
    """All of it, with nothing wrong."""
    return Facts(
        NOW_S,
        ours="0.1.0",
        specs=(SPEC,),
        servers=(
            ServerFacts(
                SERVER_URL,
                engine="vllm",
                version="0.33.0",
                sight=Sight("vllm", {(TTFT, "m"): (0.25, 0.5, 0.75)}, occupancy=True, waiting=True, models=("m",)),
                names=frozenset({"vllm:kv_cache_usage_perc"}),
                offset_s=0.2,
            ),
        ),
        sidecars=(SidecarFacts(SIDECAR_URL, page=page(sidecar_text())),),
        collectors=(
            CollectorFacts(
                COLLECTOR_URL,
                page=page(COLLECTOR_TEXT),
                status=read(status_body()),
                version="0.1.0",
                offset_s=-0.3,
            ),
        ),
        prometheuses=(
            PrometheusFacts(
                PROMETHEUS_URL,
                version="2.42.0",
                retention_s=30 * 86400.0,
                loaded_s=LONG_AGO_S,
                targets=(ScrapeTarget(JOB, INSTANCE, f"{SIDECAR_URL}/metrics", "up", "", 15.0),),
                groups=rules_of(SPEC),
                alertmanagers=(f"{ALERTMANAGER_URL}/api/v2/alerts",),
                names=frozenset({"firsttoken_slo_events_total", "vllm:kv_cache_usage_perc"}),
                events=events_of(SPEC),
                in_flight=({"job": JOB, "instance": INSTANCE, "service_name": "chat"},),
                sidecars=frozenset({(JOB, INSTANCE)}),
                offset_s=0.01,
            ),
        ),
        alertmanagers=(
            AlertmanagerFacts(
                ALERTMANAGER_URL,
                config=CONFIG,
                alerts=frozenset({WATCHDOG}),
                since_s=LONG_AGO_S,
                offset_s=0.4,
            ),
        ),
    )


def page(text: str) -> Page:
    return read_own(text.encode())


def server(facts: Facts, **changes: object) -> Facts:
    return replace(facts, servers=(replace(facts.servers[0], **changes),))  # type: ignore[arg-type]


def sidecar(facts: Facts, **changes: object) -> Facts:
    return replace(facts, sidecars=(replace(facts.sidecars[0], **changes),))  # type: ignore[arg-type]


def collector(facts: Facts, **changes: object) -> Facts:
    return replace(facts, collectors=(replace(facts.collectors[0], **changes),))  # type: ignore[arg-type]


def prometheus(facts: Facts, **changes: object) -> Facts:
    return replace(facts, prometheuses=(replace(facts.prometheuses[0], **changes),))  # type: ignore[arg-type]


def receiving(facts: Facts, **changes: object) -> Facts:
    """With another Alertmanager."""
    return replace(facts, alertmanagers=(replace(facts.alertmanagers[0], **changes),))  # type: ignore[arg-type]


def says(facts: Facts, *, sidecar_says: str = "", collector_says: str = "") -> Facts:
    """With further lines on the pages."""
    facts = sidecar(facts, page=page(sidecar_text() + sidecar_says))
    return collector(facts, page=page(COLLECTOR_TEXT + collector_says))


def of_code(facts: Facts, code: str) -> list[Finding]:
    return [finding for finding in findings(facts) if finding.code == code]


def wrong(facts: Facts) -> set[str]:
    """The codes of all that is more than a note."""
    return {finding.code for finding in findings(facts) if finding.is_wrong}
