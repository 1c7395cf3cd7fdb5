"""The result as JSON and as one sentence: what is certified, what is refuted, and how sure both are."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from capacity.certify import judge
from capacity.certify.account import Account, Kept
from capacity.certify.evidence import Evidence
from capacity.certify.judge import Rigour
from capacity.certify.search import Outcome, Probe, Varied
from capacity.certify.sensitivity import name_of
from capacity.certify.trial import Goal
from capacity.printed import moment_text

LITTLE_OFF = 0.05
MORE_TIME = 1.25
"""A run is advised to be so many times as long as what it was seen to need: that was an estimate."""


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with what was seen on the way. `outcome` is None where the search was interrupted; `at_s` is when it
    ended."""

    outcome: Outcome | None
    account: Account
    goals: tuple[Goal, ...]
    rigour: Rigour
    peak_rps: float | None
    shared_words: int = 0
    at_s: int = 0

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
            return f"not certifiable: {self.outcome.why_not}{self._would_tell(self.outcome)}"
        parts = [f"{certified.rate_rps:.3g} requests/s certified"]
        if refuted is not None:
            parts.append(f"{refuted.rate_rps:.3g} refuted by {judge.binding(self.goals, refuted.found)[1]}")
        between = "between unresolved" if refuted is not None else "above it unresolved"
        if open_ is not None and open_.needs:
            between += f" (about {_count(open_.needs)} requests at {open_.rate_rps:.3g}/s would tell)"
        return ", ".join([*parts, between])

    def _would_tell(self, outcome: Outcome) -> str:
        if not outcome.needs:
            return ""
        at, wanted = outcome.needs_at_rps, self.flags_to_tell(outcome.needs, outcome.needs_at_rps)
        return f"; about {_count(outcome.needs)} requests{f' at {at:.3g}/s' if at else ''} would tell" + (
            f": {wanted}" if wanted else ""
        )

    def flags_to_tell(self, needs: float, rate_rps: float) -> str:
        """The flags with which a rate that needs so many requests, in its two runs, would not stay unresolved; nothing
        where no time is known to be enough."""
        rigour = self.rigour
        if not 0 < needs < math.inf or not rate_rps or math.isinf(rigour.most_run_seconds):
            return ""
        a_run = needs / 2
        minutes = max(MORE_TIME * a_run / rate_rps / rigour.most_run_seconds, MORE_TIME) * rigour.most_seconds / 60
        more = f" --most-requests {math.ceil(a_run / 1000) * 1000}" if a_run > rigour.most_requests else ""
        return f"--minutes {math.ceil(minutes)}{more}"

    def as_json(self, settings: Mapping[str, object]) -> dict[str, object]:
        outcome = self.outcome
        certified = None if outcome is None else outcome.certified
        refuted = None if outcome is None else outcome.refuted
        return {
            "verdict": self.verdict,
            "says": self.sentence(),
            "made": moment_text(self.at_s),
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
            "sensitivity": [] if outcome is None else [self._varied(one) for one in outcome.varied],
            "settings": dict(settings),
            "heard": self.account.as_json(),
        }

    def _varied(self, one: Varied) -> dict[str, object]:
        name = name_of(one.variation, self.shared_words)
        return {"workload": name, "objectives": self._objectives(one.found), "run": _run(self.account.runs[one.run])}

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
    return {**kept.ask, **asdict(kept.looks[-1]), "facts": dict(kept.facts)}


def _count(number: float) -> str:
    return "infinitely many" if number == float("inf") else f"{float(f'{number:.2g}'):,.0f}"
