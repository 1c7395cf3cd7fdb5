"""What of a status fits a terminal's height: alerts first, then what is in trouble, then the tightest budgets.

A screen that is watched does not scroll. Where everything fits it is shown as ever; where it does not, each objective
has one line, the most urgent first, and the last line counts those that are left out and says how they stand.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.text import Text

from firsttoken.status_reply import ObjectiveStatus, Status
from firsttoken.status_table import NOTHING, WORDS, alerts, budget, ends, name, now, render, state
from slo.signals import ALL_MODELS

URGENCY = ("exhausted", "burning", "ok", "no_data")
ALERTS_SHARE = 3
"""Alerts have a third of the screen at most."""
LEAST_HEIGHT = 6


def screen(status: Status, console: Console, *, height: int) -> RenderableType:
    """The status in so many lines of the console's width."""
    whole = render(status, console.width)
    height = max(height, LEAST_HEIGHT)
    if not status.objectives or len(console.render_lines(whole, pad=False)) <= height:
        return whole
    told = _alert_lines(status, console, most=height // ALERTS_SHARE)
    objectives = sorted(_objectives(status.objectives), key=_urgency)
    room = height - len(told) - 1
    rows = [_line(one, console.width) for one in objectives[:room]]
    return Group(*told, *rows, _cut(_left_out(objectives[room:]), console.width))


def _alert_lines(status: Status, console: Console, *, most: int) -> list[Text]:
    """The first lines of what the alerts say."""
    lines = console.render_lines(Group(*alerts(status)), pad=False)
    texts = [Text.assemble(*((part.text, part.style or "") for part in line)) for line in lines]
    if len(texts) <= most:
        return texts
    return [*texts[: most - 1], _cut(Text("more alerts: firsttoken status shows them all", "dim"), console.width)]


def _objectives(rows: Sequence[ObjectiveStatus]) -> list[ObjectiveStatus]:
    """One row of each objective: over all its models where it has that, in the worst state of any of them."""
    found = []
    for _, group in groupby(rows, key=lambda one: (one.environment, one.service, one.name)):
        mine = list(group)
        found.append(next((one for one in mine if one.model == ALL_MODELS), min(mine, key=_urgency)))
    return found


def _urgency(one: ObjectiveStatus) -> tuple[int, float]:
    known = URGENCY.index(one.state) if one.state in URGENCY else len(URGENCY)
    return known, 1.0 if one.budget_remaining is None else one.budget_remaining


def _line(one: ObjectiveStatus, width: int) -> Text:
    line = Text.assemble((name(one), "bold"), "  ", state(one))
    if one.state != "no_data":
        line.append_text(Text.assemble(", ", budget(one), " left"))
    if ends(one) != NOTHING:
        line.append(f", ends in {ends(one)}")
    if now(one).plain != NOTHING:
        line.append("  ").append_text(now(one))
    return _cut(line, width)


def _left_out(rows: Sequence[ObjectiveStatus]) -> Text:
    counts = Counter(WORDS.get(one.state, one.state) for one in rows)
    how = ", ".join(f"{count} {word}" for word, count in counts.items())
    return Text(f"and {len(rows)} more: {how}", "dim")


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
