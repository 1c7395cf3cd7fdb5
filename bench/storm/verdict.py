"""Whether all was counted and nothing leaked: one line for each thing that must hold, and what was seen.

Pure: what was sent (`Ledger`), what the page says, what the sink has (`Taken`) and what the system shows (`Reading`)
come in; lines come out.
"""

import os
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from slo.signals import (
    BAD,
    BY_NAME,
    EXPORT_DROPPED,
    GOOD,
    HEARTBEAT,
    IN_FLIGHT,
    LABELS,
    LATENCY_METRICS,
    OUTCOME,
    OVERDUE,
    REQUESTS,
    SERVICE_LABEL,
    SLO_EVENTS,
    SYNTHETIC_CLASS,
    TELEMETRY_FAULTS,
    WAITING_FIRST_TOKEN,
)
from storm.kinds import OBJECTIVES
from storm.ledger import Ledger
from storm.taken import Taken
from storm.watched import Reading, Samples

GROWTH = 0.05
MEMORY_S = 120.0  # a shorter run says nothing of memory
FEW_FILES = 4
POOL_THREADS = (os.cpu_count() or 1) + 4  # asyncio's own pool grows to as many


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that must hold."""

    kept: bool
    text: str

    def __str__(self) -> str:
        return f"{'kept    ' if self.kept else 'NOT KEPT'} {self.text}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the source remembers: requests it saw, those it saw twice, when (monotonic) it knew that the asker had left,
    and how many answers it still gives."""

    seen: frozenset[int]
    twice: tuple[int, ...]
    left_at_s: dict[int, float]
    playing: int


@dataclass(frozen=True, slots=True)
class Ports:
    """Where everybody is."""

    proxy: int
    source: int
    sink: int


def total(page: Samples, name: str, **labels: str) -> int:
    """The sum of all samples with these labels among theirs."""
    wanted = labels.items()
    return int(sum(value for found, value in page.get(name, {}).items() if wanted <= dict(found).items()))


def requests(ledger: Ledger, page: Samples) -> Iterator[Line]:
    """Requests counted are requests sent, by outcome."""
    counted, over, racing = _counted(page), _over(ledger, page), ledger.racing
    among = {outcome for outcomes in racing for outcome in outcomes}
    exact = all(count == 0 or (outcome in among and count > 0) for outcome, count in over.items())
    exact = exact and sum(over.values()) == sum(racing.values())
    shown = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counted.items()))
    yield Line(exact, f"requests counted = {len(ledger.sent)} sent: {shown}")
    if not exact:
        yield Line(False, f"  counted less sent, by outcome: {dict(over)}; of the racing ones {dict(racing)}")
    for outcomes, count in racing.items():
        share = ", ".join(f"{over[outcome]} {outcome}" for outcome in outcomes)
        yield Line(sum(over[outcome] for outcome in outcomes) == count, f"racing: of {count} requests were {share}")
    synthetic = total(page, REQUESTS.prometheus, **{"class": SYNTHETIC_CLASS})
    yield Line(synthetic == ledger.synthetic, f"synthetic ones: {synthetic} counted, {ledger.synthetic} sent")


def _counted(page: Samples) -> Counter[str]:
    found: Counter[str] = Counter()
    for labels, value in page.get(REQUESTS.prometheus, {}).items():
        found[dict(labels)[LABELS[OUTCOME]]] += int(value)
    return +found


def _over(ledger: Ledger, page: Samples) -> Counter[str]:
    """What is counted of each outcome beyond those that must have it: the racing ones."""
    over = _counted(page)
    over.subtract(ledger.outcomes)
    return over


def gauges(page: Samples) -> Iterator[Line]:
    """Nothing is in flight any more."""
    for metric in (IN_FLIGHT, WAITING_FIRST_TOKEN, OVERDUE):
        now = total(page, metric.prometheus)
        yield Line(now == 0 and metric.prometheus in page, f"{metric.prometheus} is {now} in the end")
    faults = total(page, TELEMETRY_FAULTS.prometheus)
    yield Line(faults == 0, f"faults of telemetry: {faults}")


def events(ledger: Ledger, page: Samples) -> Iterator[Line]:
    """Good and bad events are what the timelines say."""
    expected = ledger.events(max(0, _over(ledger, page)["error"]))
    for objective in OBJECTIVES:
        kept, shown = True, []
        for result in (GOOD, BAD):
            counted = total(page, SLO_EVENTS.prometheus, objective=objective, result=result)
            least, most = expected[objective, result]
            kept = kept and least <= counted <= most
            shown.append(f"{counted} {result}" + (f" (of {least} to {most})" if least != most else ""))
        yield Line(kept, f"objective {objective}: {', '.join(shown)}")


def spans(ledger: Ledger, page: Samples, taken: Taken) -> Iterator[Line]:
    """A span for each request, or a count of what was dropped; none twice, each with its outcome."""
    dropped, counted = total(page, EXPORT_DROPPED.prometheus, signal="traces"), total(page, REQUESTS.prometheus)
    yield Line(
        len(taken.spans) + dropped == counted,
        f"spans: {len(taken.spans)} taken + {dropped} dropped and counted = {counted} requests",
    )
    wrong: Counter[str] = Counter()
    for number, outcome in taken.spans.items():
        kind = ledger.sent.get(number)
        if kind is None:
            wrong[f"one that was never asked, {outcome}"] += 1
        elif outcome not in kind.outcomes:
            wrong[f"{kind.name}: {outcome}"] += 1
    yield Line(not wrong, f"outcome of each span: {dict(wrong) if wrong else 'as its request must have'}")
    yield Line(not taken.twice, f"spans that came twice: {len(taken.twice)}")


def sums(page: Samples, taken: Taken) -> Iterator[Line]:
    """The deltas received add up to the totals of the page."""
    dropped = total(page, EXPORT_DROPPED.prometheus, signal="metrics")
    shown = _totals(page)
    off = {
        f"{name}{dict(labels)}": (received, shown.get((name, labels)))
        for (name, labels), received in taken.sums.items()
        if name != HEARTBEAT.name and shown.get((name, labels), 0) != received
    }
    missing = [key for key, value in shown.items() if value and key not in taken.sums]
    text = f"{len(taken.sums)} sums of deltas in {taken.bodies} bodies equal the page; metric points dropped: {dropped}"
    yield Line(not off and not missing and not dropped, text)
    for name, (received, counted) in list(off.items())[:8]:
        yield Line(False, f"  {name}: {received} received, {counted} on the page")
    for key in missing[:8]:
        yield Line(False, f"  {key} was never received")


def _totals(page: Samples) -> dict[tuple[str, tuple[tuple[str, str], ...]], int]:
    """The page's counters and counts of histograms, by the name that they have over OTLP."""
    found = {}
    for metric in BY_NAME.values():
        if metric.kind == "gauge" or metric is HEARTBEAT:
            continue
        sample = f"{metric.prometheus}_count" if metric.kind == "histogram" else metric.prometheus
        for labels, value in page.get(sample, {}).items():
            key = tuple(pair for pair in labels if pair[0] != SERVICE_LABEL and pair[1])
            if metric not in LATENCY_METRICS or dict(labels).get("source") != "engine":
                found[metric.name, key] = int(value)
    return found


def leaks(base: Reading, last: Reading, ports: Ports) -> Iterator[Line]:
    """Files and connections are those of the beginning."""
    kept_open = last.peers[ports.sink]
    more = last.files - kept_open - (base.files - base.peers[ports.sink])
    yield Line(more <= FEW_FILES, f"open files: {base.files} at first, {last.files} at last, {kept_open} to the sink")
    yield Line(last.peers[ports.source] == 0, f"connections to the source: {last.peers[ports.source]}")
    yield Line(last.peers[-ports.proxy] == 0, f"connections of clients: {last.peers[-ports.proxy]}")


def memory(curve: list[tuple[float, Reading]], seconds: float) -> Iterator[Line]:
    """Memory and threads in the last fifth against those of the second."""
    early = [reading for at_s, reading in curve if 0.2 * seconds <= at_s < 0.4 * seconds]
    late = [reading for at_s, reading in curve if 0.8 * seconds <= at_s < seconds]
    if not early or not late:
        return
    threads = curve[0][1].threads, max(r.threads for r in late)
    yield Line(threads[1] <= threads[0] + POOL_THREADS, f"threads: {threads[0]} at first, at most {threads[1]} late")
    rss = statistics.median(r.rss_mb for r in early), statistics.median(r.rss_mb for r in late)
    growth = rss[1] / rss[0] - 1
    kept = growth <= GROWTH or seconds < MEMORY_S
    doubt = "" if seconds >= MEMORY_S else f"; a run below {MEMORY_S:.0f} s does not tell"
    yield Line(
        kept, f"memory: {rss[0]:.1f} MB early, {rss[1]:.1f} MB late, {growth:+.1%} (at most {GROWTH:.0%}){doubt}"
    )


def source(ledger: Ledger, report: Report) -> Iterator[Line]:
    """The server met each request once, and knew of those whose client left."""
    yield Line(not report.twice, f"the source saw {len(report.seen)} requests, {len(report.twice)} of them twice")
    late_s = sorted(report.left_at_s[n] - at_s for n, at_s in ledger.left_at_s.items() if n in report.left_at_s)
    untold = [n for n in ledger.left_at_s if n in report.seen and n not in report.left_at_s]
    yield Line(
        not untold, f"clients that left: the source knew of {len(late_s)}{_spread(late_s)}; not of {len(untold)}"
    )
    yield Line(report.playing == 0, f"answers that the source still gives: {report.playing}")


def _spread(late_s: list[float]) -> str:
    """How late, of a sorted list."""
    if not late_s:
        return ""
    p50, p99 = late_s[len(late_s) // 2], late_s[int(len(late_s) * 0.99)]
    return f" after p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.0f} ms, most {late_s[-1] * 1e3:.0f} ms"


def sights(ledger: Ledger) -> Iterator[Line]:
    """What clients saw."""
    yield Line(not ledger.surprises, f"answers that were not as given: {sum(ledger.surprises.values())}")
    for what, times in ledger.surprises.most_common(12):
        yield Line(False, f"  {times} x {what}")
