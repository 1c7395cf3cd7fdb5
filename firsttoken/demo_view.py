"""What the demo shows while it runs: one frozen frame, drawn as a live table or said as one line."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from firsttoken.demo_plan import LONG_S, MODEL, PERIOD_S, SHORT_S
from firsttoken.pager import Notification
from firsttoken.status_reply import ObjectiveStatus, QuantileStatus, Status
from firsttoken.status_table import NOTHING, STYLES, milliseconds
from slo.quantity import duration_text
from slo.signals import ALL_MODELS

SHORT, LONG, PERIOD = (duration_text(window_s) for window_s in (SHORT_S, LONG_S, PERIOD_S))
LATENCIES = ("ttft", "tpot")
MAX_NOTIFICATIONS = 4
BAR_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the story; `length_s` is what it usually takes, 0 when nobody knows."""

    name: str
    about: str
    began_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything there is to see at one moment; times are seconds since the start of the story.

    `prometheus` names the objectives whose alerts fire there; None where no Prometheus runs.
    """

    at_s: float
    phase: Phase
    status: Status
    kv_used: float | None
    prometheus: tuple[str, ...] | None
    notifications: tuple[tuple[float, Notification], ...]

    @property
    def objectives(self) -> tuple[ObjectiveStatus, ...]:
        """Each objective once: over all models, which here are one."""
        return tuple(objective for objective in self.status.objectives if objective.model == ALL_MODELS)

    def latency(self, signal: str) -> QuantileStatus | None:
        """Percentiles of the last minute, by whichever row has them."""
        rows = [row for row in self.status.objectives if row.signal == signal and row.model in (MODEL, ALL_MODELS)]
        return next((row.percentiles[LONG] for row in rows if LONG in row.percentiles), None)


def line(frame: Frame) -> str:
    """The frame in one line, for a log."""
    parts = [f"[{frame.at_s:4.0f} s] {frame.phase.name:9}"]
    parts += [f"{signal.upper()} {_triple(frame.latency(signal))}" for signal in LATENCIES]
    parts.append(f"KV {_percent(frame.kv_used)}")
    parts.append(f"burn {LONG} " + " ".join(f"{row.name} {_burn(row, LONG)}" for row in frame.objectives))
    parts.append("budget " + " ".join(f"{row.name} {_percent(row.budget_remaining)}" for row in frame.objectives))
    parts.append(f"firing {_verdicts(frame)}")
    return "  ".join(parts)


def draw(frame: Frame) -> RenderableType:
    """The frame as a live table."""
    return Group(_heading(frame), _latency_table(frame), _objective_table(frame), *_rung(frame))


def _heading(frame: Frame) -> RenderableType:
    phase = frame.phase
    done_s = min(frame.at_s - phase.began_s, phase.length_s)
    grid = Table.grid(padding=(0, 2))
    style = {"healthy": "green", "incident": "bold red", "recovery": "yellow"}.get(phase.name, "bold")
    grid.add_row(
        Text(phase.name, style),
        ProgressBar(total=max(phase.length_s, 1.0), completed=max(done_s, 0.0), width=BAR_WIDTH),
        Text(f"{frame.at_s - phase.began_s:.0f} s" + (f" of about {phase.length_s:.0f} s" if phase.length_s else "")),
        Text(phase.about, "dim"),
    )
    return grid


def _latency_table(frame: Frame) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (f"last {LONG}", "p50", "p95", "p99", "requests"):
        table.add_column(heading, justify="left" if heading.startswith("last") else "right", no_wrap=True)
    for signal in LATENCIES:
        known = frame.latency(signal) or QuantileStatus(0, None, None, None)
        cells = (milliseconds(value) for value in (known.p50, known.p95, known.p99))
        table.add_row(signal.upper(), *cells, str(known.count))
    table.add_row("KV cache used", _percent(frame.kv_used), "", "", "")
    return table


def _objective_table(frame: Frame) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headings = ["objective", "state", f"burn {SHORT}", f"burn {LONG}", f"burn {PERIOD}", "budget left", "collector"]
    for heading in (*headings, *(["Prometheus"] if frame.prometheus is not None else [])):
        right = heading.startswith(("burn", "budget"))
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in frame.objectives:
        burns = (_burn(row, label) for label in (SHORT, LONG, PERIOD))
        table.add_row(
            row.name,
            Text(row.state.replace("_", " "), STYLES.get(row.state, "")),
            *burns,
            _percent(row.budget_remaining),
            _firing(bool(row.firing)),
            *([_firing(row.name in frame.prometheus)] if frame.prometheus is not None else []),
        )
    return table


def _rung(frame: Frame) -> Iterator[Text]:
    for at_s, notification in frame.notifications[-MAX_NOTIFICATIONS:]:
        style = "bold red" if notification.status == "firing" else "bold green"
        yield Text.assemble(("pager  ", "dim"), f"{at_s:4.0f} s  ", (notification.text, style))


def _firing(fires: bool) -> Text:
    return Text("FIRING", "bold red") if fires else Text("quiet", "dim")


def _verdicts(frame: Frame) -> str:
    """What fires by the collector, and by Prometheus where one runs."""
    by_collector = ",".join(row.name for row in frame.objectives if row.firing) or "nothing"
    if frame.prometheus is None:
        return by_collector
    return f"{by_collector} (Prometheus: {','.join(frame.prometheus) or 'nothing'})"


def _triple(known: QuantileStatus | None) -> str:
    if known is None or not known.count:
        return NOTHING
    return "/".join(NOTHING if v is None else f"{v * 1000:.0f}" for v in (known.p50, known.p95, known.p99)) + " ms"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{round(share * 100)}%"


def _burn(row: ObjectiveStatus, label: str) -> str:
    burn = row.window(label).burn
    return NOTHING if burn is None else f"{burn:.1f}"
