"""An Alertmanager: whether pages and tickets reach somebody, once an incident, and whether alerts arrive at all."""

from collections.abc import Iterator, Mapping

from firsttoken.doctor.checks.prometheus import collector_notifies, has_alerts
from firsttoken.doctor.facts import AlertmanagerFacts, Facts, LoadedRule, PrometheusFacts, answering
from firsttoken.doctor.finding import Check, Finding, Severity
from firsttoken.doctor.routing import Arrival, arrivals, tells_somebody
from firsttoken.json_fields import Object, objects_at
from slo.promql import LONG_WINDOW_LABEL, OBJECTIVE_LABEL, SHORT_WINDOW_LABEL, TIER_LABEL
from slo.signals import MODEL_LABEL, SERVICE_LABEL, SIGNALS
from slo.trouble import WATCHDOG

_ROUTES = "take the routes, inhibit_rules and receivers of alertmanager.yaml, which firsttoken alerts build writes"
_SEVERITIES: Mapping[str, Severity] = {"page": "error", "ticket": "warning"}
TOO_FINE = frozenset({"alertname", OBJECTIVE_LABEL, TIER_LABEL, MODEL_LABEL, "..."})
"""Labels by which one incident's pages would be told apart."""
SENT_AGAIN_S = 180
"""Three times the minute after which Prometheus sends an alert again: it skips a turn where an evaluation is early."""


def _read(facts: Facts) -> Iterator[tuple[AlertmanagerFacts, Object]]:
    return ((one, one.config) for one in answering(facts.alertmanagers) if one.config is not None)


def _burn(facts: Facts, notify: str) -> Mapping[str, str]:
    """The labels of a burn alert that people are told of in that way, of a service that is known."""
    service = next((spec.service for spec in facts.specs), "chat")
    severity = "critical" if notify == "page" else "warning"
    tier = "fast" if notify == "page" else "slow"
    return {
        "alertname": SIGNALS["ttft"].alert,
        "severity": severity,
        "notify": notify,
        SERVICE_LABEL: service,
        MODEL_LABEL: "*",
        OBJECTIVE_LABEL: "ttft",
        TIER_LABEL: tier,
        LONG_WINDOW_LABEL: "1h",
        SHORT_WINDOW_LABEL: "5m",
    }


def _nobody(facts: Facts) -> Iterator[Finding]:
    for one, config in _read(facts):
        for notify, severity in _SEVERITIES.items():
            reached = arrivals(config, _burn(facts, notify))
            if not any(tells_somebody(config, arrival.receiver) for arrival in reached):
                names = ", ".join(arrival.receiver for arrival in reached) or "no receiver"
                what = f"a {notify} of ours goes to {names}, which tells nobody"
                yield Finding(f"{notify}-reaches-nobody", severity, what, f"alertmanager {one.url}", _ROUTES)


def _scattered(facts: Facts) -> Iterator[Finding]:
    for one, config in _read(facts):
        for arrival in arrivals(config, _burn(facts, "page")):
            if tells_somebody(config, arrival.receiver) and (fine := _too_fine(arrival)):
                what = f"pages are grouped by {', '.join(fine)} too: one incident rings once for each"
                fix = f"group_by: [environment, {SERVICE_LABEL}] on the route to {arrival.receiver}"
                yield Finding("page-grouping", "warning", what, f"alertmanager {one.url}", fix)


def _too_fine(arrival: Arrival) -> list[str]:
    return sorted(TOO_FINE & set(arrival.group_by or ()))


def _uninhibited(facts: Facts) -> Iterator[Finding]:
    for one, config in _read(facts):
        written = " ".join(str(rule) for rule in objects_at(config, "inhibit_rules"))
        told = any(tells_somebody(config, arrival.receiver) for arrival in arrivals(config, _burn(facts, "page")))
        if told and not ("notify" in written and SERVICE_LABEL in written):
            what = "has no inhibition of ours: a page does not hold back the tickets of the same incident"
            yield Finding("inhibition-absent", "warning", what, f"alertmanager {one.url}", _ROUTES)


def _unheard(facts: Facts) -> Iterator[Finding]:
    """The watchdog fires always: where Prometheus fires it and Alertmanager does not hold it, nothing else arrives."""
    fires = [prometheus for prometheus in facts.prometheuses if _watchdog(prometheus) is not None]
    for one, config in _read(facts):
        where = f"alertmanager {one.url}"
        if any(_should_hold(one, prometheus, facts.now_s) for prometheus in fires) and WATCHDOG not in one.alerts:
            what = f"does not hold {WATCHDOG}, which Prometheus always fires: no alert arrives here"
            fix = "see alerting.alertmanagers of prometheus.yml, and Prometheus's log"
            yield Finding("alerts-not-arriving", "error", what, where, fix)
        reached = arrivals(config, {"alertname": WATCHDOG, "severity": "info", "notify": "none"})
        if fires and not any(tells_somebody(config, arrival.receiver) for arrival in reached):
            what = f"tells nobody of {WATCHDOG}: if alerting dies, nobody hears of that"
            fix = "firsttoken alerts build --watchdog-webhook URL, of a service that misses it (a dead man's switch)"
            yield Finding("watchdog-unheard", "note", what, where, fix)


def _watchdog(prometheus: PrometheusFacts) -> LoadedRule | None:
    rules = (rule for group in prometheus.own_groups for rule in group.rules)
    return next((rule for rule in rules if rule.name == WATCHDOG), None)


def _should_hold(one: AlertmanagerFacts, prometheus: PrometheusFacts, now_s: float) -> bool:
    """Whether both have been what they are for long enough: an alert that goes on is sent again once a minute."""
    watchdog = _watchdog(prometheus)
    moments = (one.since_s, prometheus.loaded_s, watchdog.since_s if watchdog is not None else None)
    return all(moment_s is not None and now_s - moment_s >= SENT_AGAIN_S for moment_s in moments)


def _unasked(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.alertmanagers):
        if one.config is None:
            what = "does not show its configuration: who is told could not be looked at"
            yield Finding("routes-unread", "note", what, f"alertmanager {one.url}", "ask its own API, /api/v2/status")
    yield from _another(facts)


def _another(facts: Facts) -> Iterator[Finding]:
    """An Alertmanager at an address that no Prometheus tells; where a collector notifies, that may be as it should."""
    if facts.alertmanagers and facts.prometheuses and not collector_notifies(facts):
        told = {url.partition("/api/")[0] for one in facts.prometheuses for url in one.alertmanagers}
        for one in answering(facts.alertmanagers):
            if told and one.url not in told and any(map(has_alerts, facts.prometheuses)):
                what = "is not the Alertmanager that Prometheus tells by that address"
                fix = f"if it is not the same one behind another name, look at {', '.join(sorted(told))}"
                yield Finding("another-alertmanager", "note", what, f"alertmanager {one.url}", fix)


CHECKS = (
    Check(("page-reaches-nobody", "ticket-reaches-nobody"), "pages and tickets that reach nobody", _nobody),
    Check(("page-grouping",), "pages grouped so that one incident rings several times", _scattered),
    Check(("inhibition-absent",), "an Alertmanager without our inhibition", _uninhibited),
    Check(("alerts-not-arriving", "watchdog-unheard"), "the sign of life, on its way and at its end", _unheard),
    Check(("routes-unread", "another-alertmanager"), "an Alertmanager that cannot be read, or is another", _unasked),
)
