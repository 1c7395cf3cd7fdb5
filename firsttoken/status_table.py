"""The state of every objective as a table, its alerts below; on a narrow terminal as a few lines each.

What is urgent is coloured, and always said in words as well: a terminal without colours, or a reader who does not tell
them apart, misses nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firsttoken.status_reply import QUANTILES, AlertStatus, ObjectiveStatus, QuantileStatus, Status, TierStatus
from slo.quantity import about_text, duration_text
from slo.signals import ALL_MODELS

NARROW = 120
STYLES = {"ok": "green", "burning": "bold yellow", "exhausted": "bold red", "no_data": "dim"}
WORDS = {"ok": "kept", "burning": "burning", "exhausted": "budget spent", "no_data": "no data"}
ALERT_STYLES = {"page": "bold red", "ticket": "bold yellow"}
HEADINGS = ("objective", "model", "state", "budget left", "ends in", "promised", "now", "burn long/short, alert above")
NOTHING = "-"
FAR_S = 10 * 86400
"""A budget that lasts so long needs no time beside it."""
MODELS_SHOWN = 5
"""Of an objective with more models, only those in trouble have a row of their own."""
LITTLE_LEFT = 0.25


def render(status: Status, width: int) -> RenderableType:
    """All objectives and alerts, for a terminal of so many columns."""
    if not status.objectives:
        return Text("no objectives: the collector knows none of that kind")
    rows, kept = _chosen(status.objectives)
    parts: list[RenderableType] = [_table(rows)] if width >= NARROW else list(_blocks(rows, width))
    if kept:
        parts.append(Text(f"{kept} further models are kept or silent: name one with --model", "dim"))
    if status.left_out:
        parts.append(Text(f"{status.left_out} further objectives: choose with --service, --objective, --model", "dim"))
    return Group(*parts, Text(""), *alerts(status))


def _chosen(objectives: Iterable[ObjectiveStatus]) -> tuple[list[ObjectiveStatus], int]:
    """The rows to show, and how many models are left out: an objective with one model needs one row."""
    rows: list[ObjectiveStatus] = []
    kept = 0
    for _, group in groupby(objectives, key=lambda one: (one.environment, one.service, one.name)):
        whole = list(group)
        models = [one for one in whole if one.model != ALL_MODELS]
        if len(models) == 1 and len(whole) > 1:
            models = []
        shown = models if len(models) <= MODELS_SHOWN else [one for one in models if one.is_troubled]
        rows += [one for one in whole if one.model == ALL_MODELS] + shown
        kept += len(models) - len(shown)
    return rows, kept


def _table(rows: Iterable[ObjectiveStatus]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        right = heading in ("budget left", "ends in", "now")
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=heading == "state")
    before = ""
    for row in rows:
        named = ("", "") if name(row) == before else (name(row), promise(row))
        # A text alone may hold markup of its own, as a model named `x[fp8]` seems to.
        table.add_row(named[0], Text(row.model), state(row), budget(row), ends(row), named[1], now(row), burns(row))
        before = name(row)
    return table


def _blocks(rows: Iterable[ObjectiveStatus], width: int) -> Iterator[Text]:
    """A few lines for each objective, and one for each of its models."""
    for named, group in groupby(rows, key=name):
        first, *models = group
        told = [Text.assemble((named, "bold"), f" {first.model} ").append_text(_short(first))]
        told.append(Text(f"  {promise(first)}; now ").append_text(now(first)))
        told += _folded("  burn ", _tiers(first), width)
        told += [Text(f"  {row.model} ").append_text(_short(row)) for row in models]
        yield Text("\n").join(told)


def _folded(start: str, parts: Iterable[Text], width: int) -> list[Text]:
    """The parts on as many lines as they need: a tier is not torn apart, and what follows stands under the first."""
    lines = [Text(start)]
    for part in parts:
        if len(lines[-1]) > len(start) and len(lines[-1]) + len(part) > width:
            lines.append(Text(" " * len(start)))
        lines[-1].append_text(part).append("  ")
    for line in lines:
        line.rstrip()
    return lines


def _short(row: ObjectiveStatus) -> Text:
    text = Text.assemble(state(row), ", ", budget(row), " left")
    return text if ends(row) == NOTHING else text.append(f", ends in {ends(row)}")


def name(row: ObjectiveStatus) -> str:
    where = f"{row.environment}/" if row.environment else ""
    return f"{where}{row.service}/{row.name}"


def state(row: ObjectiveStatus) -> Text:
    return Text(WORDS.get(row.state, row.state), STYLES.get(row.state, ""))


def promise(row: ObjectiveStatus) -> str:
    """`ttft 95% <= 500 ms`."""
    goal = NOTHING if row.target is None else f"{row.target:.6g}"
    if row.target is not None and row.target <= 1:
        goal = f"{row.target * 100:.6g}%"
    return f"{row.signal} {goal}{_limit(row)}"


def _limit(row: ObjectiveStatus) -> str:
    if row.threshold is None:
        return ""
    if row.unit == "s":
        return f" <= {duration_text(round(row.threshold, 6))}"
    return f" <= {row.threshold:.6g}"


def now(row: ObjectiveStatus) -> Text:
    """The promised percentile as it is now, red when it is beyond what was promised; else the 95th."""
    label, known = next(((label, one) for label, one in row.percentiles.items() if one.count), ("", None))
    if known is None:
        return Text(NOTHING)
    promised = row.target if row.target in QUANTILES else None
    share = promised or 0.95
    value, text = known.of(share), _quantile(known, share)
    beyond = promised is not None and _is_beyond(value, known.at_least, row.threshold)
    return Text(f"p{share * 100:.4g} {label} {text}{' too slow' if beyond else ''}", "bold red" if beyond else "")


def _is_beyond(value: float | None, at_least: float | None, threshold: float | None) -> bool:
    """Whether a quantile breaks the promise; an unknown one exceeds what it is at least."""
    if threshold is None:
        return False
    return value > threshold if value is not None else at_least is not None and at_least >= threshold


def _quantile(known: QuantileStatus, share: float) -> str:
    value = known.of(share)
    if value is None and known.at_least is not None:
        return f"> {milliseconds(known.at_least)}"
    return milliseconds(value)


def burns(row: ObjectiveStatus) -> Text:
    """Burn of each tier's two windows against its factor: `fast 6.2/14 >5`; bold where both are above."""
    return Text("  ").join(_tiers(row))


def _tiers(row: ObjectiveStatus) -> list[Text]:
    return [text for tier in row.tiers if (text := _tier(row, tier)) is not None] or [Text(NOTHING)]


def _tier(row: ObjectiveStatus, tier: TierStatus) -> Text | None:
    long, short = row.window(tier.long), row.window(tier.short)
    if long.burn is None and short.burn is None:
        return None
    text = f"{tier.name} {_rate(long.burn)}/{_rate(short.burn)} >{_rate(tier.factor)}"
    if tier.name in row.firing:
        return Text(f"{text} firing", "bold red")
    if long.burn is None or tier.factor is None or long.burn <= tier.factor:
        return Text(text)
    if tier.name in row.pending:
        return Text(f"{text} pending", "yellow")
    if long.window_s is not None and long.coverage is not None and long.burn * long.coverage <= tier.factor:
        known = about_text(long.window_s * long.coverage)
        return Text(f"{text} held back, {known} of {tier.long} known", "yellow")
    return Text(f"{text} held back, few bad events", "yellow")


def _rate(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def budget(row: ObjectiveStatus) -> Text:
    left = row.budget_remaining
    if left is None or row.state == "no_data":
        return Text(NOTHING)
    return Text(f"{round(left * 100)}%", "bold red" if left <= 0 else "yellow" if left < LITTLE_LEFT else "")


def ends(row: ObjectiveStatus) -> str:
    """When the budget ends at the last hour's rate; nothing when that is far."""
    ends_s = row.exhausted_in_s
    return about_text(ends_s) if ends_s and ends_s < FAR_S else NOTHING


def alerts(status: Status) -> Iterator[RenderableType]:
    """What fires or looms, the most urgent first. One trouble burns in several tiers and for several models at once: it
    is told once, by its worst."""
    found: dict[tuple[str, ...], list[AlertStatus]] = {}
    for one in sorted(status.alerts, key=_rank):
        found.setdefault((one.name, one.service, one.objective, _urgency(one)), []).append(one)
    if not found:
        yield Text("no alert fires", "green")
    for some in found.values():
        yield from _alert(some, status.at_s)


def _rank(one: AlertStatus) -> tuple[int, bool, float]:
    order = {"page": 0, "ticket": 1, "notice": 2}
    return order.get(_urgency(one), 3), one.model not in ("", ALL_MODELS), one.since_s or 0.0


def _urgency(one: AlertStatus) -> str:
    """`page`, `ticket` or `notice` while it fires, else its state."""
    if one.state != "firing":
        return one.state
    return one.notify if one.notify in ALERT_STYLES else "notice"


def _alert(some: Sequence[AlertStatus], at_s: float | None) -> Iterator[RenderableType]:
    first, urgency = some[0], _urgency(some[0])
    tiers = ", ".join(dict.fromkeys(one.tier for one in some if one.tier))
    models = ", ".join(dict.fromkeys(one.model for one in some if one.model not in ("", ALL_MODELS)))
    about = " ".join(part for part in ("/".join(filter(None, (first.service, first.objective))), tiers) if part)
    since_s = min((one.since_s for one in some if one.since_s is not None), default=None)
    lasts = "" if at_s is None or since_s is None else f", for {about_text(max(at_s - since_s, 0))}"
    line = Text.assemble((f"{urgency:8}", ALERT_STYLES.get(urgency, "dim")), (first.name, "bold"), f" {about}{lasts}")
    yield line.append(f" ({models})", "dim") if models else line
    if first.text and first.state == "firing":
        yield Padding(Text(first.text), (0, 0, 0, 8))
    if cause := next((one.cause for one in some if one.cause), ""):
        yield Padding(Text(f"cause: {cause}"), (0, 0, 0, 8))


def milliseconds(seconds: float | None) -> str:
    """`31.4 ms`, `314 ms`, and from ten seconds on `12.3 s`."""
    if seconds is None:
        return NOTHING
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
