"""Counters of trouble on the pages of sidecars and collectors: what each means, and what to do.

They count since a process started, so one alone may speak of an hour long past. Where the page was read twice, what has
grown between the two is wrong now, and what has not is only a note.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from firsttoken.doctor.address import plain_text
from firsttoken.doctor.facts import CollectorFacts, Facts, SidecarFacts
from firsttoken.doctor.finding import Check, Finding, Severity
from firsttoken.doctor.page import by_label
from sidecar.engine.metrics_text import Page
from slo import signals
from slo.signals import LABELS, Metric

_REASON, _DIALECT = LABELS[signals.REASON], LABELS[signals.DIALECT]
RECEIVER = "receiver"
BY_DESIGN = (
    "span of a sidecar",
    "span of a request that a histogram counts",
    "histogram of requests that were counted by their spans",
    "cumulative point already counted",
    "delta point of an interval already counted",
    "first point of a cumulative stream",
)
"""How the reasons begin for which a collector leaves out what it has, or will get, in another way."""
FUTURE = "in the future"
"""In the reason for which a collector drops what a sender with a wrong clock sends."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A counter that should stand still: `label` tells its kinds apart, of which some are `usual`."""

    metric: Metric
    code: str
    severity: Severity
    what: str
    fix: str
    label: str = ""
    usual: tuple[str, ...] = ()


EXPORTS_GO = (
    "see that OTEL_EXPORTER_OTLP_ENDPOINT leads to a collector that is up and takes its token "
    "(OTEL_EXPORTER_OTLP_HEADERS); the sidecar's log says what it was answered"
)
SIDECAR = (
    Trouble(
        signals.EXPORT_FAILED,
        "export-delayed",
        "warning",
        "exports were not taken, and are kept and tried again",
        EXPORTS_GO,
        _REASON,
    ),
    Trouble(
        signals.EXPORT_DROPPED,
        "export-failing",
        "error",
        "spans and data points were given up before they reached a collector",
        EXPORTS_GO,
        _REASON,
    ),
    Trouble(
        signals.TELEMETRY_FAULTS,
        "telemetry-faults",
        "warning",
        "faults of the telemetry itself",
        "read the sidecar's log, which names each kind once, and report it",
        _REASON,
    ),
    Trouble(
        signals.SCRAPES_FAILED,
        "engine-unread",
        "warning",
        "polls of the engine's metrics gave no usable answer",
        "name the page of its metrics: --scrape URL; some engines show them only with a flag (--metrics, "
        "--enable-metrics)",
        _REASON,
    ),
    Trouble(
        signals.UNPARSED,
        "answers-unread",
        "warning",
        "events of answers were passed on unread",
        "see whether the server speaks a dialect of docs/sidecar.md; tokens in such events are not counted",
        _DIALECT,
    ),
    Trouble(
        signals.WORKER_DEATHS,
        "workers-dying",
        "error",
        "worker processes ended unasked",
        "look for the reason in the sidecar's log, and for the kernel's out-of-memory killer in dmesg",
    ),
)
COLLECTOR = (
    Trouble(
        signals.INTAKE_DROPPED,
        "collector-drops",
        "error",
        "spans and data points were not counted",
        "do what the reason says; docs/intake.md has them all",
        _REASON,
        BY_DESIGN,
    ),
    Trouble(
        signals.INTAKE_REFUSED,
        "collector-refuses",
        "error",
        "bodies were answered with an error, by status",
        "401: give the senders the token (OTEL_EXPORTER_OTLP_HEADERS); 413: smaller batches; 503: look at the database",
        _REASON,
    ),
    Trouble(
        signals.COMMIT_FAILURES,
        "database-failing",
        "error",
        "write transactions failed and were undone",
        "look at the collector's log and at the database: its disk, its connections, its rights",
    ),
    Trouble(
        signals.TICK_FAILURES,
        "evaluation-failing",
        "error",
        "evaluations failed",
        "look at the collector's log",
    ),
    Trouble(
        signals.TICK_UNSAVED,
        "evaluation-failing",
        "error",
        "evaluations were not taken by the database",
        "look at the collector's log and at the database",
    ),
    Trouble(
        signals.NOTIFY_FAILURES,
        "notify-failing",
        "error",
        "deliveries were not taken by a receiver",
        "see that the receiver is up and that its address and credentials are right",
        RECEIVER,
    ),
)


def is_troubled(page: Page) -> bool:
    """Whether any of the counters has ever counted something unusual."""
    return any(count > 0 for trouble in (*SIDECAR, *COLLECTOR) for count in _counts(page, trouble).values())


def _counts(page: Page, trouble: Trouble) -> dict[str, float]:
    """By kind, without the usual ones."""
    found = by_label(page, trouble.metric, trouble.label)
    return {kind: count for kind, count in found.items() if not kind.startswith(trouble.usual)}


def _of(where: str, one: SidecarFacts | CollectorFacts, troubles: tuple[Trouble, ...]) -> Iterator[Finding]:
    for trouble in troubles:
        before = _counts(one.page, trouble)
        now = before if one.later is None else _counts(one.later, trouble)
        for kind, count in sorted(now.items()):
            if count > 0:
                yield _finding(trouble, kind, where, count=count, grown=_grown(one, kind, before, count))


def _grown(one: SidecarFacts | CollectorFacts, kind: str, before: dict[str, float], count: float) -> float | None:
    """How much a counter grew between two looks; None where there was one look."""
    return None if one.later is None else count - before.get(kind, 0.0)


def _finding(trouble: Trouble, kind: str, where: str, *, count: float, grown: float | None) -> Finding:
    told = f" ({plain_text(kind)})" if kind else ""
    lately = "" if grown is None else f", {grown:g} of them just now" if grown > 0 else ", none of them just now"
    code = "clock-skew" if FUTURE in kind else trouble.code
    severity: Severity = "note" if grown == 0 else trouble.severity
    return Finding(code, severity, f"{count:g} {trouble.what}{told}{lately}", where, trouble.fix)


def _sidecars(facts: Facts) -> Iterator[Finding]:
    for one in facts.sidecars:
        yield from _of(f"sidecar {one.url}", one, SIDECAR)


def _collectors(facts: Facts) -> Iterator[Finding]:
    for one in facts.collectors:
        yield from _of(f"collector {one.url}", one, COLLECTOR)


CHECKS = (
    Check(
        tuple(dict.fromkeys(trouble.code for trouble in SIDECAR)),
        "a sidecar gives up data, cannot read its engine, or loses workers",
        _sidecars,
    ),
    Check(
        (*dict.fromkeys(trouble.code for trouble in COLLECTOR), "clock-skew"),
        "a collector drops or refuses data, or cannot write, evaluate or notify",
        _collectors,
    ),
)
