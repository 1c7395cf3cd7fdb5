"""A Prometheus: whether it scrapes what we export, often enough and once, keeps it long enough, and tells anybody."""

from collections import defaultdict
from collections.abc import Iterator

from alerts.artefacts import SCRAPES_A_WINDOW
from alerts.group import FLOOR, Version
from firsttoken.doctor.facts import Facts, Labels, PrometheusFacts, ScrapeTarget, answering
from firsttoken.doctor.finding import Check, Finding, counted_both_ways
from firsttoken.doctor.page import samples
from firsttoken.doctor.prometheus_facts import seconds
from slo.promql import BURN_RATE, INSTANCE_LABEL, JOB_LABEL, SHORT_WINDOW_LABEL, TIER_LABEL
from slo.quantity import duration_text
from slo.signals import ENVIRONMENT_LABEL, RECEIVER_UP, SERVICE_LABEL
from slo.words import visible


def collector_notifies(facts: Facts) -> bool:
    """Whether a collector tells receivers of alerts itself."""
    return any(True for one in facts.collectors for _ in samples(one.page, RECEIVER_UP))


def has_alerts(prometheus: PrometheusFacts) -> bool:
    """Whether alerts of ours are loaded."""
    return any(rule.is_alert for group in prometheus.own_groups for rule in group.rules)


def _old(facts: Facts) -> Iterator[Finding]:
    """A Prometheus whose release, or whose configuration in force, is an old one."""
    for one in answering(facts.prometheuses):
        if one.is_itself and (_release(one.version) or FLOOR) < FLOOR:
            floor = ".".join(map(str, FLOOR))
            what = f"is Prometheus {visible(one.version)}: the rules need {floor}"
            fix = f"upgrade it to {floor} or newer, or let the collector notify (--alertmanager)"
            yield Finding("prometheus-too-old", "error", what, f"prometheus {one.url}", fix)
        if not one.is_reloaded:
            what = "could not load its configuration when it was last told to: the one before is in force"
            fix = "run promtool check config on its file, and look at its log"
            yield Finding("reload-failed", "error", what, f"prometheus {one.url}", fix)


def _release(version: str) -> Version | None:
    """Major and minor number; None for a version that does not begin with them."""
    numbers = version.split(".")[:2]
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else None


def _unscraped(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        if not one.events and not one.sidecars:
            yield Finding(
                "not-scraped",
                "error",
                "has no series of a sidecar: dashboards are empty, and rules can never fire",
                f"prometheus {one.url}",
                "scrape the admin address of each sidecar (--admin, port 9464), see docs/sidecar.md",
            )


def _down(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        for target in one.targets:
            if (target.job, target.instance) in one.sidecars | one.collectors and target.health == "down":
                what = f"cannot scrape {target.instance} of job {target.job} any more: {target.error}"
                fix = "see that it is up, that the address is right, and that its token stands in the scrape config"
                yield Finding("target-down", "error", what, f"prometheus {one.url}", fix)


def _slow(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        shortest = _shortest_windows_s(one)
        of_instance = {_instance(labels): labels.get(SERVICE_LABEL, "") for labels in one.events}
        for target in one.targets:
            service = of_instance.get((target.job, target.instance), "")
            needed_s = shortest.get(service, 0.0) / SCRAPES_A_WINDOW
            if service and needed_s and (target.interval_s or 0) > needed_s:
                yield _too_slow(one, target, service, needed_s)


def _too_slow(one: PrometheusFacts, target: ScrapeTarget, service: str, needed_s: float) -> Finding:
    what = (
        f"scrapes {target.instance} every {duration_text(target.interval_s or 0)}: the shortest window of service "
        f"{service} holds fewer than {SCRAPES_A_WINDOW} scrapes, so its fastest alert may never fire"
    )
    fix = f"scrape_interval: {duration_text(max(needed_s, 1))} for job {target.job}"
    return Finding("scrape-too-slow", "error", what, f"prometheus {one.url}", fix)


def _shortest_windows_s(one: PrometheusFacts) -> dict[str, float]:
    """By service, the shortest window of the burn alerts that are loaded."""
    found: dict[str, float] = {}
    for group in one.own_groups:
        for rule in group.rules:
            window_s = seconds(rule.labels.get(SHORT_WINDOW_LABEL, ""))
            if TIER_LABEL in rule.labels and window_s:
                service = rule.labels.get(SERVICE_LABEL, "")
                found[service] = min(window_s, found.get(service, window_s))
    return found


def _instance(labels: Labels) -> tuple[str, str]:
    return labels.get(JOB_LABEL, ""), labels.get(INSTANCE_LABEL, "")


def _twice(facts: Facts) -> Iterator[Finding]:
    """One sidecar under two jobs, or a sidecar that only scrapes beside one that requests pass by."""
    for one in answering(facts.prometheuses):
        where = f"prometheus {one.url}"
        jobs: defaultdict[str, set[str]] = defaultdict(set)
        for target in one.targets:
            if (target.job, target.instance) in one.sidecars:
                jobs[target.url].add(target.job)
        for url, names in sorted(jobs.items()):
            if len(names) > 1:
                what = f"scrapes {url} by the jobs {' and '.join(sorted(names))}: all its requests count twice"
                yield Finding("double-counting", "error", what, where, "leave it in one of the jobs")
        for service in sorted(_both_ways(one)):
            yield counted_both_ways(service, where)


def _both_ways(one: PrometheusFacts) -> set[str]:
    passed = {_instance(labels) for labels in one.in_flight}
    counted: defaultdict[tuple[str, str], set[bool]] = defaultdict(set)
    for labels in one.events:
        subject = labels.get(ENVIRONMENT_LABEL, ""), labels.get(SERVICE_LABEL, "")
        counted[subject].add(_instance(labels) in passed)
    return {service for (_, service), ways in counted.items() if len(ways) > 1}


def _telling(facts: Facts) -> Iterator[Finding]:
    """Exactly one of the two tells people."""
    for one in answering(facts.prometheuses):
        where = f"prometheus {one.url}"
        tells, collector = has_alerts(one) and bool(one.alertmanagers), collector_notifies(facts)
        if tells and collector:
            what = "tells an Alertmanager of our alerts, and so does the collector: each incident rings twice"
            fix = "start the collector without --alertmanager and --webhook, or take the alerts out of Prometheus"
            yield Finding("two-notifiers", "error", what, where, fix)
        elif one.is_itself and has_alerts(one) and not one.alertmanagers and not collector:
            what = "evaluates our alerts and knows no Alertmanager: nobody is told"
            fix = "alerting: {alertmanagers: [{static_configs: [{targets: ['HOST:9093']}]}]} in prometheus.yml"
            yield Finding("no-alertmanager", "error", what, where, fix)
        if has_alerts(one) and one.dropped_alertmanagers and not one.alertmanagers:
            what = "discovers Alertmanagers and drops them all by relabelling"
            yield Finding(
                "alertmanager-dropped", "error", what, where, "mend alert_relabel_configs of its alertmanagers"
            )


def _forgetful(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        names = {rule.name for group in one.own_groups for rule in group.rules}
        windows_s = [seconds(name.removeprefix(BURN_RATE)) for name in names if name.startswith(BURN_RATE)]
        longest_s = max((window_s for window_s in windows_s if window_s), default=0.0)
        if one.retention_s is not None and one.retention_s < longest_s:
            kept, window = duration_text(one.retention_s), duration_text(longest_s)
            what = f"keeps {kept}, and the longest window is {window}: budgets are reckoned over {kept} at most"
            fix = f"--storage.tsdb.retention.time={window} or more; records are small"
            yield Finding("retention-short", "warning", what, f"prometheus {one.url}", fix)


CHECKS = (
    Check(("prometheus-too-old", "reload-failed"), "a Prometheus that is too old, or kept an old configuration", _old),
    Check(("not-scraped",), "a datasource without our metrics", _unscraped),
    Check(("target-down",), "sidecars and collectors that can no longer be scraped", _down),
    Check(("scrape-too-slow",), "scrape intervals against the shortest windows", _slow),
    Check(("double-counting",), "one server's requests counted by two series", _twice),
    Check(
        ("two-notifiers", "no-alertmanager", "alertmanager-dropped"),
        "nobody, or two, who tell people of alerts",
        _telling,
    ),
    Check(("retention-short",), "a retention shorter than the longest window", _forgetful),
)
