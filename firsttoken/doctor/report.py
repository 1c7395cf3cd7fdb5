"""What the doctor found, for people and for programs: the places in a line each, then the findings, worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from firsttoken.doctor.checks.table import CHECKS
from firsttoken.doctor.facts import CollectorFacts, Facts, PrometheusFacts, ServerFacts, SidecarFacts, answering
from firsttoken.doctor.finding import Finding
from firsttoken.doctor.page import sees_requests, services, spec_hashes
from slo.signals import SIGNALS
from slo.words import counted, visible

STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
KIND_COLUMNS, LEAST_COLUMNS, MOST_COLUMNS = 13, 40, 110
INDENT = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """A place that was looked at, and in a few words what it is."""

    kind: str
    url: str
    said: str


def seen(facts: Facts) -> Iterator[Seen]:
    """Every place that gave an answer."""
    yield from (Seen("server", one.url, _server(one)) for one in answering(facts.servers))
    yield from (Seen("sidecar", one.url, _sidecar(one)) for one in answering(facts.sidecars))
    yield from (Seen("collector", one.url, _collector(one)) for one in answering(facts.collectors))
    yield from (Seen("prometheus", one.url, _prometheus(one)) for one in answering(facts.prometheuses))
    for one in answering(facts.alertmanagers):
        yield Seen("alertmanager", one.url, counted(len(one.alerts), "alert"))
    for spec in facts.specs:
        yield Seen("spec", spec.service, f"{counted(len(spec.objectives), 'objective')}, {spec.hash}")


def _server(one: ServerFacts) -> str:
    if one.sight is None:
        return "no engine that is known"
    name = " ".join(filter(None, (one.engine, visible(one.version))))
    told = [signal for signal, each in SIGNALS.items() if one.sight.edges_of(each.metric, None) is not None]
    told += [signal for signal, has in (("kv_occupancy", one.sight.occupancy), ("queue", one.sight.waiting)) if has]
    return f"{name}, tells {', '.join(told) or 'nothing of ours'}"


def _sidecar(one: SidecarFacts) -> str:
    names = ", ".join(sorted({service for _, service in services(one.page)})) or "no service yet"
    specs = ", ".join(sorted(set(spec_hashes(one.page).values()))) or "none"
    return f"{visible(names)}, {'sees requests' if sees_requests(one.page) else 'only scrapes'}, spec {visible(specs)}"


def _collector(one: CollectorFacts) -> str:
    named = sorted(spec_hashes(one.page).items())
    specs = ", ".join(f"{service} {spec_hash}" for service, spec_hash in named)
    return f"release {visible(one.version) or 'unknown'}, {visible(specs) or 'no spec'}"


def _prometheus(one: PrometheusFacts) -> str:
    rules = sum(len(group.rules) for group in one.own_groups)
    return f"{visible(one.version)}, {counted(len(one.sidecars), 'sidecar')}, {counted(rules, 'rule')} of ours"


def shown(facts: Facts, found: Sequence[Finding], *, notes: bool, columns: int) -> RenderableType:
    """The whole as it stands on a terminal of so many columns; notes only where they are asked for."""
    columns = min(max(columns, LEAST_COLUMNS), MOST_COLUMNS)
    told = [one for one in found if one.is_wrong or notes]
    parts: list[Text] = list(_places(facts, columns))
    for finding in told:
        parts += [Text(), *_finding(finding, columns)]
    return Group(*parts, Text(), *_end(facts, found, notes=notes, columns=columns))


def _places(facts: Facts, columns: int) -> Iterator[Text]:
    for one in seen(facts):
        yield from _hanging(f"{one.kind:{KIND_COLUMNS}}", f"{one.url}  {one.said}", columns)
    for url, why in facts.unread.items():
        yield from _hanging("not looked at ", f"{url}: {why}", columns)


def _finding(finding: Finding, columns: int) -> Iterator[Text]:
    head = Text(f"{finding.severity}: ", STYLE[finding.severity])
    head.append(finding.code, "bold")
    yield head
    pad = " " * INDENT
    for label, text in (("", finding.where), ("", finding.what), ("fix  ", finding.fix)):
        yield from _hanging(f"{pad}{label}", text, columns)


def _hanging(head: str, text: str, columns: int) -> Iterator[Text]:
    """Lines of a text, the first behind its head and the others under it."""
    width = len(head)
    first, *others = wrap(text, columns - width, break_on_hyphens=False) or [""]
    yield Text.assemble((head, "dim"), first)
    yield from (Text(" " * width + line) for line in others)


def _end(facts: Facts, found: Sequence[Finding], *, notes: bool, columns: int) -> Iterator[Text]:
    wrong, noted = sum(one.is_wrong for one in found), sum(not one.is_wrong for one in found)
    places = len(list(seen(facts)))
    looked = (
        f"{counted(len(CHECKS), 'check')} of {counted(places, 'thing')} looked at" if places else "nothing to check"
    )
    text = f"nothing wrong: {looked}" if not wrong else f"{counted(wrong, 'thing')} wrong: {looked}"
    if noted and not notes:
        text += f"; {counted(noted, 'note')} more with --notes"
    yield from (Text(line, "bold") for line in wrap(text, columns))


def mapping(facts: Facts, found: Sequence[Finding]) -> dict[str, object]:
    """The whole as JSON; notes are always there."""
    return {
        "at_s": round(facts.now_s, 3),
        "is_fine": not any(one.is_wrong for one in found),
        "checks": len(CHECKS),
        "looked_at": [{"kind": one.kind, "url": one.url, "said": one.said} for one in seen(facts)],
        "not_looked_at": dict(facts.unread),
        "findings": [one.mapping() for one in found],
    }
