"""Drift and incidents: what fired and when, what got slower without an alert, and what changed just before.

Every chart is marked with alerts, drift, starts of sidecars, changes of slo.yaml (Prometheus), and the deploys that a
pipeline told Grafana of.
"""

from decimal import Decimal

from dashboards.boards import parts
from dashboards.boards.parts import LATENCIES, SINCE, WHO
from dashboards.boards.plan import OF_OBJECTIVES, Given, Plan
from dashboards.grafana.grid import COLUMNS, Panel, Section
from dashboards.grafana.panels import NO_TRAFFIC, table, timeseries
from dashboards.model import SHARE, About, Column
from dashboards.questions import Source
from slo.promql import HASH_LABEL, INSTANCE_LABEL, OBJECTIVE_LABEL
from slo.signals import LABELS, MODEL_LABEL, RESULT, Metric

P95 = Decimal("0.95")
MAX_TABLE_HEIGHT = 12
NOTIFY_COLORS = {"page": "red", "ticket": "orange"}


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    """Everything on the page."""
    return (
        Section("Alerts", (*_now(source), _past(source))),
        Section("Drift", (_drift(source), *(_against_past(source, title, metric) for _, title, metric in LATENCIES))),
        Section("What changed", (_starts(source, given), _contracts(source, given))),
    )


PLAN = Plan(
    "incidents",
    "Drift and incidents",
    "Alerts, latencies that shifted against their own past, and what was started or changed at that time.",
    (*OF_OBJECTIVES, INSTANCE_LABEL),
    sections,
    ("alerts", "drift", "starts", "contracts"),
    shows_told=True,
)


def _now(source: Source) -> tuple[Panel, ...]:
    about = About(
        "Alerts over time", "How many alerts fired, by whether they page or make a ticket.", "short", width=COLUMNS,
        height=6, empty="No alert fired",
    )  # fmt: skip
    return (
        timeseries(about, (source.incidents.firing(),), is_stacked=True, colors=NOTIFY_COLORS),
        parts.alerts_now(source, height=6),
    )


def _past(source: Source) -> Panel:
    about = About(
        "Alerts of the time shown", "Every alert that fired in the time range, and when it last began.",
        "none", width=COLUMNS, empty="No alert fired",
    )  # fmt: skip
    return parts.alerts(about, source.incidents.past(), since="Last began")


def _drift(source: Source) -> Panel:
    about = About(
        "Shift against its own past",
        "By how much p95 has moved from what is usual at that time of day, while a shift lasts: 25% is a quarter "
        "longer. Kind server: the same prompts take longer; mix: prompts changed.",
        SHARE, width=COLUMNS, height=6, empty="Nothing has shifted", least=None,
    )  # fmt: skip
    return timeseries(about, (source.incidents.drift(),))


def _against_past(source: Source, title: str, metric: Metric) -> Panel:
    about = About(
        f"{title} against the past",
        "p95 now, and thin: at this time yesterday and a week ago.",
        "s", empty=NO_TRAFFIC,
    )  # fmt: skip
    return timeseries(about, source.latencies.against_past(metric, P95))


def _height(given: Given) -> int:
    """Of tables that stand side by side, with two rows an objective in the longer one."""
    return min(4 + 2 * given.objectives, MAX_TABLE_HEIGHT)


def _starts(source: Source, given: Given) -> Panel:
    about = About(
        "Sidecars, by when they started", "Every sidecar that is heard; a start is a deploy, a restart, or a crash.",
        "none", width=9, height=_height(given), empty="No sidecar is heard",
    )  # fmt: skip
    columns = (*WHO, Column(INSTANCE_LABEL, "Instance"), Column("since", "Started", SINCE))
    return table(about, (source.incidents.starts(),), columns=columns, sorted_by="Started")


def _contracts(source: Source, given: Given) -> Panel:
    about = About(
        "Versions of the contract that are judged",
        "Events per second under each hash of an objective's terms. Two hashes of one objective: some sidecars still "
        "judge by the old slo.yaml.",
        "eps", width=15, height=_height(given), empty=NO_TRAFFIC,
    )  # fmt: skip
    columns = (
        *WHO,
        Column(OBJECTIVE_LABEL, "Objective"),
        Column(MODEL_LABEL, "Model"),
        Column(HASH_LABEL, "Hash of its terms"),
        Column(LABELS[RESULT], "Result"),
        Column("events", "Events per second", "eps"),
    )
    return table(about, (source.incidents.contracts(),), columns=columns, sorted_by="Objective")
