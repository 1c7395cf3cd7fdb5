"""The answer to a what-if as plain data (`answers.WhatIf`). Pure."""

from dataclasses import asdict
from typing import Any

from collector.replaying.whatif import Cost, TierCost, WhatIf


def whatif_json(found: WhatIf) -> dict[str, Any]:
    """The whole answer."""
    return {
        "from_s": found.from_s,
        "to_s": found.to_s,
        "promised": None if found.promised is None else _cost(found.promised),
        "asked": None if found.asked is None else _cost(found.asked),
        "why": found.why,
    }


def _cost(cost: Cost) -> dict[str, Any]:
    objective = cost.objective
    return {
        "target": float(objective.goal),
        "threshold": None if objective.threshold is None else float(objective.threshold),
        "basis": cost.basis,
        "total": cost.total,
        "missing": cost.missing,
        "bad": asdict(cost.bad),
        "bad_share": None if cost.bad_share is None else asdict(cost.bad_share),
        "remaining": asdict(cost.remaining),
        "lowest": asdict(cost.lowest),
        "lowest_at_s": cost.lowest_at_s,
        "tiers": [_tier(one) for one in cost.tiers],
    }


def _tier(cost: TierCost) -> dict[str, Any]:
    tier = cost.tier
    return {
        "name": tier.name,
        "notify": tier.notify,
        "factor": float(tier.factor),
        "can_fire": tier.bad_share_needed < 1,
        "times": asdict(cost.times),
        "firing_s": asdict(cost.firing_s),
    }
