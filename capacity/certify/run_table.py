"""Every run of a certification in numbers: what it was asked, what came of it, and for how long it remembered."""

from collections.abc import Iterator

from capacity.certify import judge
from capacity.certify.account import Kept
from capacity.certify.evidence import WARM_UP_PARTS
from capacity.certify.result import Result
from capacity.certify.sensitivity import name_of
from capacity.report.drawing import value_text
from capacity.report.page import Table

TIMED = ("ttft", "tpot")
QUANTILES = ("p50", "p95", "p99")
HEADINGS = (
    *("run", "req/s", "start", "lasted", "relaxations", "answered/s", "good/s", "failed"),
    *(f"{signal} ms, {'/'.join(QUANTILES)}" for signal in TIMED),
    *("in system", "client late"),
)
ANSWERED = "ok"
"""The outcome of a request that did not fail."""


def run_table(result: Result) -> Table:
    """All runs in the order in which they were made."""
    says = (
        "Without the first quarter of each run. Relaxations: how often the server forgot how it was loaded. In system: "
        "mean, and what 95 % of the time stays within. Client late: 99 % of the requests were sent late by no more."
    )
    runs = [kept for kept in result.account.runs.values() if kept.facts]
    return Table("Runs", HEADINGS, [tuple(_row(result, kept)) for kept in runs], says=says)


def _row(result: Result, kept: Kept) -> Iterator[str]:
    rate_rps = float(str(kept.ask["rate_rps"]))
    yield str(kept.ask["number"])
    yield f"{rate_rps:.3g}"
    yield _start(result, kept)
    yield f"{kept.looks[-1].seconds:.0f} s"
    yield _relaxations(result, kept, rate_rps)
    yield _number(fact(kept, "summary", "completed_rps"))
    yield f"{rate_rps * good_share(kept):.3g}"
    yield str(_failed(kept))
    for signal in TIMED:
        values = [fact(kept, "summary", signal, one) for one in QUANTILES]
        yield " / ".join("-" if value is None else value_text(1000 * value, "number") for value in values)
    yield " / ".join(_number(fact(kept, "concurrency", one)) for one in ("mean", "p95"))
    late = fact(kept, "summary", "late", "p99")
    yield "-" if late is None else value_text(late, "seconds")


def _start(result: Result, kept: Kept) -> str:
    """How it began; of a run with another workload, which."""
    for one in () if result.outcome is None else result.outcome.varied:
        if one.run == kept.ask["number"]:
            return name_of(one.variation, result.shared_words)
    return str(kept.ask["start"])


def _relaxations(result: Result, kept: Kept, rate_rps: float) -> str:
    last, ceiling = kept.looks[-1], result.account.ceiling
    return "-" if ceiling is None else f"{last.requests / judge.relaxation(rate_rps, ceiling, last.at_once):.3g}"


def _failed(kept: Kept) -> int:
    summary = kept.facts.get("summary")
    outcomes = summary.get("outcomes") if isinstance(summary, dict) else None
    return sum(count for name, count in outcomes.items() if name != ANSWERED) if isinstance(outcomes, dict) else 0


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def good_share(kept: Kept) -> float:
    """The share of requests that no objective calls bad, once the start of the run is over."""
    begin = len(kept.bad[0]) // WARM_UP_PARTS
    verdicts = list(zip(*(text[begin:] for text in kept.bad), strict=True))
    return sum("1" not in one for one in verdicts) / len(verdicts) if verdicts else 0.0


def fact(kept: Kept, *way: str) -> float | None:
    """A number among the facts of a run, by the keys that lead to it; None where it is not there."""
    found: object = kept.facts
    for name in way:
        found = found.get(name) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None
