"""The ticket on a latency that became longer than it used to be (DESIGN 4.6): rows of open drifts in, alerts out.

One alert a service, model and signal: where several eyes saw the drift, the best of them speaks (the sidecar's own
before what an engine says of itself). A shift that another mix of prompts explains is nobody's to mend, and a latency
that became shorter is no trouble; both stand in the table all the same. An alert waits until a whole window behind the
beginning of the drift has been looked at: before that nobody can tell whose doing it is.
"""

from collections.abc import Iterable, Iterator

from collector.judging.trouble_alert import spec_of
from collector.values import alerting, words
from collector.values.alerting import AlertKey, Wanted
from collector.values.verdicts import DriftKind, DriftRow
from collector.windowing.windows import Plan
from slo.objective import Spec
from slo.signals import DRIFT_OF_MIX, LABELS, SIGNAL, SIGNALS, SOURCES
from slo.trouble import DRIFT, TROUBLES

TOLD_AFTER_S = 420
"""A window of five minutes, the minute in which it is looked at, and the one in which that is told."""
_CAUSES: dict[DriftKind, str] = {
    "server": "the server is slower at every prompt length",
    "mix": "another mix of prompt lengths explains it",
    "unknown": "the cause is not known",
}


def wanted(rows: Iterable[DriftRow], *, plan: Plan, now_s: int) -> Iterator[Wanted]:
    """The alerts on open drifts of services that somebody promised something of."""
    told = set()
    for row in sorted(rows, key=lambda row: SOURCES.index(row.source)):
        spec = spec_of(plan, (row.environment, row.service))
        is_trouble = row.effect > 0 and row.kind != DRIFT_OF_MIX and now_s - row.since_s >= TOLD_AFTER_S
        one = key(row)
        if spec is not None and is_trouble and one not in told:
            told.add(one)
            yield _alert(spec, one, row)


def key(row: DriftRow) -> AlertKey:
    """Whose alert a drift's is; the signal stands where burn alerts have their tier."""
    return AlertKey(DRIFT, row.environment, row.service, row.model, tier=row.signal)


def _alert(spec: Spec, of: AlertKey, row: DriftRow) -> Wanted:
    trouble = TROUBLES[DRIFT]
    routed: dict[str, str | None] = {
        "severity": trouble.severity,
        "notify": trouble.notify,
        "owner": spec.owner,
        LABELS[SIGNAL]: row.signal,
    }
    whose = AlertKey(of.name, of.environment, of.service, of.model)
    return Wanted(
        of,
        "firing",
        alerting.labels(whose, routed),
        alerting.annotations(
            summary=f"Latency of {row.service} has shifted against its own past.",
            description=told(row),
            runbook_url=alerting.runbook(of.name),
        ),
    )


def told(row: DriftRow) -> str:
    """A drift in one line."""
    of = f"{row.service}{f' in {row.environment}' if row.environment else ''}, model {row.model}"
    by = f"{words.share(abs(row.effect))} {'longer' if row.effect > 0 else 'shorter'}"
    levels = f"{words.latency(row.after_s)} instead of {words.latency(row.before_s)}"
    return (
        f"{of}: the p95 {SIGNALS[row.signal].title} ({row.source}) is {by} than usual at this time of day, {levels}; "
        f"{_CAUSES[row.kind]}."
    )
