"""bench/soak.py runs, and what it looks for it finds."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from storm import verdict
from storm.kinds import KINDS, OBJECTIVES, Kind, request
from storm.ledger import Ledger
from storm.script import drawn, read, text
from storm.taken import Taken
from storm.verdict import Line, Ports, Report
from storm.watched import Reading, Samples

from slo.signals import BAD, EXPORT_DROPPED, GOOD, IN_FLIGHT, OVERDUE, REQUESTS, SLO_EVENTS, WAITING_FIRST_TOKEN

SCRIPT = Path(__file__).parents[2] / "bench" / "soak.py"
PORTS = Ports(proxy=1, source=2, sink=3)
CALM = Reading(rss_mb=50.0, threads=8, files=20, peers=Counter({3: 2, -9: 1}))
STREAM, FAILED, LEFT = (
    next(kind for kind in KINDS if kind.name == name) for name in ("stream", "500", "leaves a stream")
)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_short_storm_is_counted_and_leaves_nothing(workers: str) -> None:
    arguments = ["--seconds", "6", "--streams", "20", "--workers", workers, "--check"]
    ran = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=170)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NOT KEPT" not in ran.stdout
    assert "requests counted = " in ran.stdout


@dataclass
class Seen:
    """What a soak of three requests shows when all is well; a test breaks something."""

    ledger: Ledger = field(default_factory=Ledger)
    outcomes: Counter[str] = field(default_factory=lambda: Counter(ok=1, error=1, cancelled=1))
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: int = 0
    in_flight: int = 0
    taken: Taken = field(default_factory=Taken)
    report: Report = field(default_factory=lambda: Report(frozenset((1, 2, 3)), (), {3: 1.5}, 0))
    last: Reading = CALM
    late: Reading = CALM

    def __post_init__(self) -> None:
        for number, kind in enumerate((STREAM, FAILED, LEFT), 1):
            asked = request(kind, number, random.Random(number))
            self.ledger.asked(asked)
            if kind is LEFT:
                self.ledger.left(asked, at_s=1.0, took_s=0.1, same=True)
            else:
                self.ledger.answered(asked, "whole", took_s=0.1)
            results = {"+": GOOD, "-": BAD}
            self.events.update((o, results[c]) for o, c in zip(OBJECTIVES, kind.counts, strict=True) if c in results)
        self.taken.spans = {1: "ok", 2: "error", 3: "cancelled"}
        self.taken.sums = Counter({(REQUESTS.name, (("outcome", o),)): n for o, n in self.outcomes.items()})
        self.taken.sums.update(
            {(SLO_EVENTS.name, (("objective", o), ("result", r))): n for (o, r), n in self.events.items()}
        )

    def page(self) -> Samples:
        gauges = {m.prometheus: {(): self.in_flight} for m in (IN_FLIGHT, WAITING_FIRST_TOKEN, OVERDUE)}
        return gauges | {
            REQUESTS.prometheus: {(("outcome", outcome),): n for outcome, n in self.outcomes.items()},
            SLO_EVENTS.prometheus: {(("objective", o), ("result", r)): n for (o, r), n in self.events.items()},
            EXPORT_DROPPED.prometheus: {(("signal", "traces"),): self.dropped},
        }

    def lines(self) -> Iterator[Line]:
        page, ledger = self.page(), self.ledger
        yield from (*verdict.requests(ledger, page), *verdict.gauges(page), *verdict.events(ledger, page))
        yield from (*verdict.spans(ledger, page, self.taken), *verdict.sums(page, self.taken), *verdict.sights(ledger))
        yield from (*verdict.source(ledger, self.report), *verdict.leaks(CALM, self.last, PORTS))
        curve = [(0.0, CALM), (250.0, CALM), (900.0, self.late)]
        yield from verdict.memory(curve, 1000.0)


def test_what_is_well_is_kept() -> None:
    assert [line.text for line in Seen().lines() if not line.kept] == []


def counted(seen: Seen, **more: int) -> None:
    seen.outcomes.update(more)


def set_on(name: str, value: object) -> Callable[[Seen], None]:
    return lambda seen: setattr(seen, name, value)


FAULTS: dict[str, tuple[Callable[[Seen], None], str]] = {
    "a request counted twice": (lambda s: counted(s, ok=1), "requests counted"),
    "a request not counted": (lambda s: counted(s, cancelled=-1), "requests counted"),
    "another outcome": (lambda s: counted(s, ok=-1, error=1), "requests counted"),
    "a request that never ends": (set_on("in_flight", 1), "in_flight"),
    "a bad event too many": (lambda s: s.events.update({("whole", BAD): 1}), "objective whole"),
    "a good event too few": (lambda s: s.events.subtract({("first", GOOD): 1}), "objective first"),
    "a span lost and not counted": (lambda s: s.taken.spans.pop(2), "spans: 2 taken"),
    "a span counted as dropped that came": (set_on("dropped", 1), "spans: 3 taken + 1"),
    "a span with another outcome": (lambda s: s.taken.spans.update({1: "error"}), "outcome of each span"),
    "a span that came twice": (lambda s: s.taken.twice.append(1), "came twice"),
    "a delta that came twice": (lambda s: s.taken.sums.update({(REQUESTS.name, (("outcome", "ok"),)): 1}), "sums"),
    "a delta that never came": (lambda s: s.taken.sums.pop((REQUESTS.name, (("outcome", "ok"),))), "sums"),
    "bytes that were not the server's": (lambda s: s.ledger.surprise(STREAM, "saw other bytes"), "not as given"),
    "a request that the server got twice": (lambda s: set_on("report", replace(s.report, twice=(1,)))(s), "twice"),
    "a server that was not told": (lambda s: set_on("report", replace(s.report, left_at_s={}))(s), "clients that left"),
    "a file left open": (set_on("last", replace(CALM, files=CALM.files + 5)), "open files"),
    "a connection to the source left": (set_on("last", replace(CALM, peers=Counter({2: 1, 3: 2}))), "to the source"),
    "a client's connection left": (set_on("last", replace(CALM, peers=Counter({-1: 1, 3: 2}))), "of clients"),
    "memory that grows": (set_on("late", replace(CALM, rss_mb=52.6)), "memory"),
    "threads that grow": (set_on("late", replace(CALM, threads=60)), "threads"),
}


@pytest.mark.parametrize("sentence", FAULTS)
def test_what_is_wrong_is_found(sentence: str) -> None:
    breaks, said = FAULTS[sentence]
    seen = Seen()
    breaks(seen)
    assert any(said in line.text for line in seen.lines() if not line.kept)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_script_is_read_as_it_was_written(kind: Kind) -> None:
    script = drawn(kind.script, 7, random.Random(1))
    assert read(text(script), 7) == script
    assert ".." not in text(script)
