"""The result as JSON and as one sentence: which batch, between which bounds, and by how much evidence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random

from capacity.batch import kv
from capacity.batch.fit import TERMS, Fit, Mix
from capacity.batch.paste import Budget, flags, token_budget
from capacity.batch.search import Outcome, Plan, Probe
from capacity.batch.sitting import Account
from capacity.batch.verdict import ERROR
from capacity.certify.lengths import Lengths
from capacity.certify.trial import Goal

DRAWN = 4096


@dataclass(frozen=True, slots=True)
class Memory:
    """The KV cache: what it holds, in blocks of how many tokens; `tokens` None where that is not known."""

    tokens: int | None
    block_size: int


@dataclass(frozen=True, slots=True)
class Change:
    """From one batch to another, each with its mean step by the fit, in seconds."""

    before: int
    after: int
    step_before_s: float
    step_s: float

    @property
    def more_ends(self) -> float:
        """How many more requests a full server ends, as a part of what it ended; negative where fewer."""
        return self.after / self.step_s / (self.before / self.step_before_s) - 1


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with what was seen on the way. `outcome` is None where the search was interrupted, and `batch_before`
    where nobody knows what the server had."""

    outcome: Outcome | None
    account: Account
    plan: Plan
    lengths: Lengths
    memory: Memory
    batch_before: int | None = None

    @property
    def verdict(self) -> str:
        if self.outcome is None:
            return "interrupted"
        return "none" if self.outcome.chosen is None else "chosen"

    @property
    def binding(self) -> str | None:
        """The objective that keeps the batch from being larger, or from being at all."""
        probes = () if self.outcome is None else self.outcome.probes
        broken = [probe for probe in probes if not probe.verdict.is_kept]
        held = [probe for probe in broken if probe.kind == "held"]
        if self.outcome is not None and self.outcome.chosen is None:
            return broken[-1].verdict.binding if broken else None
        return min(held, key=lambda probe: probe.batch).verdict.binding if held else None

    def sentence(self) -> str:
        """The verdict in words."""
        found = self.outcome
        if found is None:
            return f"interrupted after {len(self.account.runs)} runs"
        if found.chosen is None:
            more = f": {found.replicas} replicas would do" if found.replicas else ""
            return f"no batch is feasible: {found.why_not}{more}"
        parts = [f"a batch of {found.chosen} keeps every promise"]
        larger = next_larger(found)
        if larger is not None:
            breaks = "breaks" if larger.verdict.is_sure else "seemed to break"
            parts.append(f"{larger.batch} {breaks} {larger.verdict.binding}")
        elif found.chosen == self.plan.most_batch:
            parts.append("and more was not allowed")
        if found.rate_rps is not None:
            parts.append(f"at {found.rate_rps:.3g} requests/s it takes at least {found.feasible_min}")
        if found.efficient is not None and found.efficient < found.chosen:
            parts.append(f"{found.efficient} already ends 99 % as many requests")
        return "; ".join(parts)

    @property
    def change(self) -> Change | None:
        """What the chosen batch changes; None where it is not known, or nothing."""
        found, before = self.outcome, self.batch_before
        if found is None or found.chosen is None or before is None or before == found.chosen:
            return None
        mix = Mix(*self.lengths.mean)
        step_s, step_before_s = found.fit.step_s(found.chosen, mix), found.fit.step_s(before, mix)
        return Change(before, found.chosen, step_before_s, step_s)

    @property
    def kv(self) -> Mapping[str, object]:
        """What the KV cache must hold for the chosen batch, and how many sequences the stated one holds."""
        holds = held_by(self.lengths)
        chosen = None if self.outcome is None else self.outcome.chosen
        return {
            "tokens_mean": holds.mean,
            "tokens_deviation": holds.deviation,
            "overflow": kv.OVERFLOW,
            "block_size": self.memory.block_size,
            "blocks": None if chosen is None else kv.blocks(holds, chosen, self.memory.block_size),
            "tokens": self.memory.tokens,
            "max_sequences": None if self.memory.tokens is None else most_sequences(self.lengths, self.memory.tokens),
        }

    @property
    def budget(self) -> Budget | None:
        """The tokens of a step for the chosen batch."""
        found = self.outcome
        if found is None or found.chosen is None:
            return None
        step_s = min(self.plan.thresholds_s, default=None)
        return token_budget(found.fit, Mix(*self.lengths.mean), found.chosen, step_s)

    @property
    def flags(self) -> Mapping[str, str]:
        """The flags to paste; none without a chosen batch."""
        blocks = self.kv["blocks"]
        if self.outcome is None or self.outcome.chosen is None or self.budget is None:
            return {}
        assert isinstance(blocks, int)
        return flags(self.outcome.chosen, self.budget, blocks)

    def as_json(self, settings: Mapping[str, object]) -> dict[str, object]:
        found = self.outcome
        return {
            "verdict": self.verdict,
            "says": self.sentence(),
            "chosen_batch": None if found is None else found.chosen,
            "feasible_min": None if found is None else found.feasible_min,
            "feasible_max": None if found is None else found.feasible_max,
            "efficient_batch": None if found is None else found.efficient,
            "binding": self.binding,
            "rate_rps": None if found is None else found.rate_rps,
            "ends_rps": None if found is None else found.ends_rps,
            "replicas": None if found is None else found.replicas,
            "predicted_batch": None if found is None else found.predicted,
            "fit": None if found is None else fit_json(found.fit, Mix(*self.lengths.mean), found.tails),
            "kv": dict(self.kv),
            "change": None if self.change is None else asdict(self.change) | {"more_ends": self.change.more_ends},
            "token_budget": None if self.budget is None else asdict(self.budget),
            "flags": dict(self.flags),
            "probes": [] if found is None else [self._probe(probe) for probe in found.probes],
            "runs": [run.as_json() for run in self.account.runs],
            "settings": dict(settings),
        }

    def _probe(self, probe: Probe) -> dict[str, object]:
        goals = self.plan.held_goals if probe.kind == "held" else self.plan.open_goals
        return {
            "kind": probe.kind,
            "batch": probe.batch,
            "rate_rps": probe.rate_rps,
            "is_kept": probe.verdict.is_kept,
            "is_sure": probe.verdict.is_sure,
            "binding": probe.verdict.binding,
            "seconds": probe.seconds,
            "is_client_late": probe.is_client_late,
            "is_too_short": probe.is_too_short,
            "objectives": _objectives(probe, goals),
        }


def next_larger(found: Outcome) -> Probe | None:
    """The smallest larger batch that was tested with as many outstanding, and broke a promise."""
    assert found.chosen is not None
    larger = [
        one for one in found.probes if one.kind == "held" and one.batch > found.chosen and not one.verdict.is_kept
    ]
    return min(larger, key=lambda probe: probe.batch, default=None)


def fit_json(fitted: Fit, mix: Mix, tails: tuple[float, ...]) -> dict[str, object]:
    """The fit for a mix: `a` and `b` in seconds, and what `b` is made of."""
    pairs = zip(fitted.points, fitted.residuals, strict=True)
    return {
        "a": fitted.a,
        "b": fitted.each_s(mix),
        "terms": dict(zip(TERMS, (fitted.a, fitted.b, fitted.c, fitted.d), strict=True)),
        "tails": tails,
        "r_squared": fitted.r_squared,
        "largest_residual": fitted.largest_residual(),
        "points": [{"batch": p.batch, "mix": asdict(p.mix), "step_s": p.step_s, "residual": r} for p, r in pairs],
    }


def held_by(lengths: Lengths) -> kv.Holding:
    """What sequences of such lengths hold in the cache."""
    if lengths.spans is None:
        return kv.holding(lengths.pairs)
    chance = Random(0)  # noqa: S311  chance for lengths, no secret
    return kv.holding([lengths.draw(chance) for _ in range(DRAWN)])


def most_sequences(lengths: Lengths, tokens: int) -> int:
    """How many sequences a cache holds, so that they hardly ever need more."""
    return held_by(lengths).sequences_in(tokens)


def _objectives(probe: Probe, goals: tuple[Goal, ...]) -> list[dict[str, object]]:
    return [
        {"name": goal.name, "budget": goal.budget, "share": one.share, "interval": one.interval(ERROR)} | asdict(one)
        for goal, one in zip(goals, probe.verdict.found, strict=True)
    ]
