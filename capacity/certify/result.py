"""The result as JSON and as one sentence: what is certified, what is refuted, and how sure both are."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from capacity.certify import judge
from capacity.certify.account import Account, Kept
from capacity.certify.evidence import Evidence
from capacity.certify.judge import Rigour
from capacity.certify.search import Outcome, Probe
from capacity.certify.trial import Goal

LITTLE_OFF = 0.05


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with what was seen on the way. `outcome` is None where the search was interrupted."""

    outcome: Outcome | None
    account: Account
    goals: tuple[Goal, ...]
    rigour: Rigour
    peak_rps: float | None

    @property
    def verdict(self) -> str:
        if self.outcome is None:
            return "interrupted"
        return "not_certifiable" if self.outcome.certified is None else "certified"

    @property
    def binding(self) -> str | None:
        """The objective that limits: the one that refutes, or else spends most where it is certified."""
        if self.outcome is None or not (self.outcome.probes or self.outcome.alone):
            return None
        probe = self.outcome.refuted or self.outcome.certified
        found = self.outcome.alone if probe is None else probe.found
        return judge.binding(self.goals, found)[1]

    @property
    def concurrency(self) -> Mapping[str, object]:
        """Requests in the system at the certified rate: of the run that began empty."""
        certified = None if self.outcome is None else self.outcome.certified
        if certified is None:
            return {}
        found = self.account.runs[certified.runs[0]].facts.get("concurrency")
        return found if isinstance(found, dict) else {}

    @property
    def headroom(self) -> float | None:
        """The part of the certified rate that the peak leaves free; negative where the peak is more."""
        certified = None if self.outcome is None else self.outcome.certified
        return None if certified is None or self.peak_rps is None else 1 - self.peak_rps / certified.rate_rps

    def sentence(self) -> str:
        """The verdict in words."""
        if self.outcome is None:
            return f"interrupted after {len(self.account.runs)} runs: --resume goes on from there"
        certified, refuted, open_ = self.outcome.certified, self.outcome.refuted, self.outcome.unresolved
        if certified is None:
            more = f"; about {_count(self.outcome.needs)} requests would tell" if self.outcome.needs else ""
            return f"not certifiable: {self.outcome.why_not}{more}"
        parts = [f"{certified.rate_rps:.3g} requests/s certified"]
        if refuted is not None:
            parts.append(f"{refuted.rate_rps:.3g} refuted by {judge.binding(self.goals, refuted.found)[1]}")
        between = "between unresolved" if refuted is not None else "above it unresolved"
        if open_ is not None and open_.needs:
            between += f" (about {_count(open_.needs)} requests at {open_.rate_rps:.3g}/s would tell)"
        return ", ".join([*parts, between])

    def as_json(self, settings: Mapping[str, object]) -> dict[str, object]:
        outcome = self.outcome
        certified = None if outcome is None else outcome.certified
        refuted = None if outcome is None else outcome.refuted
        return {
            "verdict": self.verdict,
            "says": self.sentence(),
            "certified_rps": None if certified is None else certified.rate_rps,
            "refuted_rps": None if refuted is None else refuted.rate_rps,
            "binding": self.binding,
            "needs_requests": None if outcome is None or outcome.needs in (0.0, float("inf")) else outcome.needs,
            "peak_concurrency": dict(self.concurrency),
            "peak_rps": self.peak_rps,
            "headroom": self.headroom,
            "ceiling_rps": None if self.account.ceiling is None else self.account.ceiling.rate_rps,
            "alone": [] if outcome is None else self._objectives(outcome.alone),
            "probes": [] if outcome is None else [self._probe(probe) for probe in outcome.probes],
            "settings": dict(settings),
            "heard": self.account.as_json(),
        }

    def _probe(self, probe: Probe) -> dict[str, object]:
        return {
            "rate_rps": probe.rate_rps,
            "state": probe.state,
            "why": probe.why,
            "objectives": self._objectives(probe.found),
            "needs_requests": probe.needs if probe.needs < float("inf") else None,
            "runs": [_run(self.account.runs[number]) for number in probe.runs if number in self.account.runs],
        }

    def _objectives(self, found: tuple[Evidence, ...]) -> list[dict[str, object]]:
        return [
            {"name": goal.name, "budget": goal.budget, "is_watched": goal.is_watched, **asdict(one)}
            | {"share": one.share, "interval": one.interval(self.rigour.error)}
            for goal, one in zip(self.goals, found, strict=True)
        ]


def _run(kept: Kept) -> dict[str, object]:
    requests, seconds, at_once, is_late = kept.looks[-1]
    seen = {"requests": requests, "seconds": seconds, "at_once": at_once, "is_client_late": is_late}
    return {**kept.ask, **seen, "facts": dict(kept.facts)}


def _count(number: float) -> str:
    return "infinitely many" if number == float("inf") else f"{float(f'{number:.2g}'):,.0f}"
