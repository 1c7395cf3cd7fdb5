"""The state of every objective as a table; on a narrow terminal as a few lines each."""

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from firsttoken.status_reply import ObjectiveStatus, Status
from slo.quantity import about_text

NARROW = 130
STYLES = {"ok": "green", "burning": "bold red", "exhausted": "bold red", "no_data": "dim"}
NOTHING = "-"
FAR_S = 10 * 86400
"""A budget that lasts so long needs no time beside it."""


def render(status: Status, width: int) -> RenderableType:
    """All objectives, for a terminal of so many columns."""
    if not status.objectives:
        return Text("no objectives: the collector knows none yet")
    if width < NARROW:
        return Group(*(_lines(objective) for objective in status.objectives))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("objective", overflow="fold")
    table.add_column("model", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("promise", no_wrap=True)
    table.add_column("p50 / p95 / p99", no_wrap=True)
    table.add_column("burn", overflow="fold")
    table.add_column("budget left", justify="right", no_wrap=True)
    table.add_column("alerts", overflow="fold")
    for objective in status.objectives:
        table.add_row(f"{objective.service}/{objective.name}", objective.model, *_cells(objective))
    return table


def _cells(objective: ObjectiveStatus) -> Iterator[Text | str]:
    yield state(objective)
    yield promise(objective)
    yield quantiles(objective)
    yield burns(objective)
    yield budget(objective)
    yield alerts(objective)


def _lines(objective: ObjectiveStatus) -> Text:
    head = Text.assemble((f"{objective.service}/{objective.name}", "bold"), f" {objective.model} ", state(objective))
    about = f"\n  {promise(objective)}; now {quantiles(objective)}; budget {budget(objective)}"
    return head.append(f"{about}\n  burn {burns(objective)}; alerts {alerts(objective)}")


def state(objective: ObjectiveStatus) -> Text:
    return Text(objective.state.replace("_", " "), STYLES.get(objective.state, ""))


def promise(objective: ObjectiveStatus) -> str:
    """`ttft 95% <= 500 ms`."""
    goal = NOTHING if objective.target is None else f"{objective.target:.6g}"
    if objective.target is not None and objective.target <= 1:
        goal = f"{objective.target * 100:.6g}%"
    return f"{objective.signal} {goal}{_limit(objective)}"


def _limit(objective: ObjectiveStatus) -> str:
    if objective.threshold is None:
        return ""
    if objective.unit == "s":
        return f" <= {milliseconds(objective.threshold)}"
    return f" <= {objective.threshold:.6g}"


def quantiles(objective: ObjectiveStatus) -> str:
    """Percentiles of the shortest window that has any."""
    known = next((q for q in objective.percentiles.values() if q.count), None)
    if known is None:
        return NOTHING
    return " / ".join(milliseconds(value) for value in (known.p50, known.p95, known.p99))


def burns(objective: ObjectiveStatus) -> str:
    """Burn of every window that has events."""
    known = (f"{window.label} {window.burn:.1f}" for window in objective.windows if window.burn is not None)
    return "  ".join(known) or NOTHING


def budget(objective: ObjectiveStatus) -> str:
    if objective.budget_remaining is None:
        return NOTHING
    left = f"{round(objective.budget_remaining * 100)}%"
    ends_s = objective.exhausted_in_s
    return f"{left}, {about_text(ends_s)}" if ends_s and ends_s < FAR_S else left


def alerts(objective: ObjectiveStatus) -> str:
    return ", ".join(f"{alert.tier} {alert.state}" for alert in objective.alerts if alert.state != "ok") or NOTHING


def milliseconds(seconds: float | None) -> str:
    """`31.4 ms`, `314 ms`, and from ten seconds on `12.3 s`."""
    if seconds is None:
        return NOTHING
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
