"""A replay's answer for people and for programs: a table, or one JSON object."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collector.replaying.replay import Firing, Report, TierReport, together
from collector.replaying.replay_past import Fired, Untold
from slo.quantity import about_text
from slo.signals import ALL_MODELS
from slo.words import counted, promise, visible

INCIDENT_APART_S = 300
NARROW = 110
WIDTH = 128


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay found between `from_s` and `to_s`: a report an objective and model, what nothing stored
    can tell, and what the collector of that time fired."""

    from_s: int
    to_s: int
    reports: Sequence[Report]
    untold: Sequence[Untold]
    fired: Sequence[Fired]


def as_json(found: Replay) -> dict[str, Any]:
    """The answer as plain data."""
    return {
        "from_s": found.from_s,
        "to_s": found.to_s,
        "services": [
            {
                "environment": environment,
                "service": service,
                "incidents": _incidents(found, mine),
                "incidents_stored": _incidents_stored(found, environment, service),
                "objectives": [_objective(found, one) for one in mine],
            }
            for (environment, service), mine in _by_service(found).items()
        ],
        "unknown": [{"service": one.service, "objective": one.objective, "why": one.why} for one in found.untold],
    }


def as_table(found: Replay, width: int) -> RenderableType:
    """The answer for a terminal of so many columns."""
    parts: list[RenderableType] = [Text(f"replayed {clock(found.from_s)} to {clock(found.to_s)}", "dim")]
    for (environment, service), mine in _by_service(found).items():
        where = f" in {environment}" if environment else ""
        stored = _incidents_stored(found, environment, service)
        would = _incidents(found, mine)
        pages = f"{counted(would, 'incident')} would have paged, {stored} did"
        parts += [Text.assemble("\n", (f"{service}{where}", "bold"), f": {pages}")]
        parts.append(_table(found, mine) if width >= NARROW else Group(*(_lines(found, one) for one in mine)))
    parts += [Text(f"{one.service}/{one.objective}: unknown: {one.why}", "yellow") for one in found.untold]
    return Group(*parts)


def clock(at_s: int) -> str:
    """A moment for people, in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _by_service(found: Replay) -> dict[tuple[str, str], list[Report]]:
    mine: defaultdict[tuple[str, str], list[Report]] = defaultdict(list)
    for one in found.reports:
        mine[one.past.environment, one.past.service].append(one)
    return dict(mine)


def _incidents(found: Replay, mine: Sequence[Report]) -> int:
    """How often somebody would have been paged: whatever burns together joins one notification (DESIGN 4.6)."""
    paged = [
        one for report in mine for tier in report.tiers if tier.tier.notify == "page" for one in _begun(tier, found)
    ]
    return together(paged, to_s=found.to_s, apart_s=INCIDENT_APART_S)


def _incidents_stored(found: Replay, environment: str, service: str) -> int:
    paged = [
        Firing(one.from_s, one.to_s)
        for one in found.fired
        if (one.environment, one.service, one.notify) == (environment, service, "page")
        and found.from_s <= one.from_s <= found.to_s
    ]
    return together(paged, to_s=found.to_s, apart_s=INCIDENT_APART_S)


def _begun(tier: TierReport, found: Replay) -> list[Firing]:
    return [one for one in tier.firings if one.from_s >= found.from_s]


def _stored(found: Replay, report: Report, notify: str) -> int:
    """Firings of the objective that were stored in the time replayed."""
    past = report.past
    key = (past.environment, past.service, past.model, past.objective.name, notify)
    return sum(
        (one.environment, one.service, one.model, one.objective, one.notify) == key
        and found.from_s <= one.from_s <= found.to_s
        for one in found.fired
    )


def _would(found: Replay, report: Report, notify: str) -> int:
    return sum(len(_begun(tier, found)) for tier in report.tiers if tier.tier.notify == notify)


def _objective(found: Replay, report: Report) -> dict[str, Any]:
    past, total = report.past, report.good + report.bad
    return {
        "objective": past.objective.name,
        "model": past.model,
        "promise": promise(past.objective),
        "basis": past.basis,
        "good": report.good,
        "bad": report.bad,
        "unsure": report.unsure,
        "bad_share": report.bad_share,
        "bad_share_least": max(report.bad - report.unsure, 0) / total if total else None,
        "bad_share_most": min(report.bad + report.unsure, total) / total if total else None,
        "budget_remaining": report.remaining,
        "budget_lowest": report.lowest,
        "budget_lowest_at_s": report.lowest_at_s,
        "pages": _would(found, report, "page"),
        "pages_stored": _stored(found, report, "page"),
        "tickets": _would(found, report, "ticket"),
        "tickets_stored": _stored(found, report, "ticket"),
        "tiers": [_tier(tier) for tier in report.tiers],
    }


def _tier(report: TierReport) -> dict[str, Any]:
    return {
        "name": report.tier.name,
        "notify": report.tier.notify,
        "factor": float(report.tier.factor),
        "firing_s": report.firing_s,
        "firings": [{"from_s": one.from_s, "to_s": one.to_s} for one in report.firings],
    }


HEADINGS = ("objective", "promise", "events", "bad", "budget left", "lowest", "burning", "pages", "tickets")


def _table(found: Replay, mine: Sequence[Report]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        right = heading in ("events", "bad", "budget left", "lowest")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for report in mine:
        table.add_row(*_cells(found, report))
    return table


def _lines(found: Replay, report: Report) -> Text:
    """The table's facts for a narrow terminal."""
    name, *cells = _cells(found, report)
    named = (Text.assemble(f"{heading} ", cell) for heading, cell in zip(HEADINGS[1:], cells, strict=True))
    return Text.assemble((f"{name}\n  ", "bold"), Text(", ").join(named))


def _cells(found: Replay, report: Report) -> Iterator[str | Text]:
    past = report.past
    # As Text, for in a string a model named `x[fp8]` would seem to hold markup.
    yield Text(past.objective.name if past.model == ALL_MODELS else f"  {visible(past.model)}")
    yield f"{promise(past.objective)}" if past.model == ALL_MODELS else ""
    yield f"{report.good + report.bad:,}"
    yield _bad(report)
    yield _budget(report.remaining)
    yield _budget(report.lowest)
    yield ", ".join(f"{tier.tier.name} {about_text(tier.firing_s)}" for tier in report.tiers if tier.firing_s) or "-"
    yield _against(_would(found, report, "page"), _stored(found, report, "page"))
    yield _against(_would(found, report, "ticket"), _stored(found, report, "ticket"))


def _bad(report: Report) -> str:
    if report.bad_share is None:
        return "-"
    bound = f" ±{_share(report.unsure / (report.good + report.bad))}" if report.unsure else ""
    return f"{_share(report.bad_share)}{bound}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.3g}%"


def _budget(left: float) -> Text:
    return Text(f"{100 * left:.0f}%", "bold red" if left <= 0 else "yellow" if left < 0.25 else "green")


def _against(would: int, did: int) -> str:
    return f"{would} (was {did})"
