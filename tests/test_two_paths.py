"""One promise judged twice on the same counts: by the generated Prometheus rules in promtool, and by the collector.

Traffic is drawn at random in phases: calm, idle, a burst of bad events, a long burn. A scrape and a tick come every 15
seconds and see the same events, so the two must say the same to the last digit that floats have: burn of each window,
budget left, when it ends, and which alerts fire.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.engine import Connection

from collector import schema
from slo import promql
from tests.alerts.support import SMALL, Check, events, firing, heartbeat, promtool_test, rules, spec
from tests.collector import exports
from tests.collector.stores import NOW_S, Clock, batch
from tests.collector.ticking.test_ticks import ticking

pytestmark = pytest.mark.tools

STEP_S = 15
STEPS = 300
ASKED_EVERY = 4
WINDOWS_S = (60, 600, 3600)
MODELS = ("m1", "m2")
START_S = NOW_S // 3600 * 3600
PHASES = {"calm": (40, 0.01), "idle": (0, 0.0), "burst": (40, 0.9), "burn": (30, 0.35), "trickle": (1, 0.3)}

Counts = dict[str, list[tuple[int, int]]]
"""Good and bad events of each step, by model."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the collector says at the end of a step: figures by model, None where it has none."""

    step: int
    burns: dict[tuple[str, int], float | None]
    budgets: dict[str, tuple[float, float | None]]
    fires: frozenset[str]


def drawn(seed: int) -> Counts:
    """Phases of two to twelve minutes, each model for itself."""
    rng = np.random.default_rng(seed)
    found: Counts = {}
    for model in MODELS:
        steps: list[tuple[int, int]] = []
        while len(steps) < STEPS:
            rate, share = PHASES[str(rng.choice(list(PHASES)))]
            totals = rng.poisson(rate, rng.integers(8, 48))
            steps += [
                (int(total - bad), int(bad)) for total, bad in zip(totals, rng.binomial(totals, share), strict=True)
            ]
        found[model] = steps[:STEPS]
    return found


async def judged(counts: Counts, database: str) -> list[Verdict]:
    """What the collector says after each step that is asked about."""
    clock, verdicts = Clock(START_S), []
    async with ticking(database, clock, spec=SMALL) as (one, loop, _):
        for step in range(STEPS):
            clock.now_s = START_S + STEP_S * (step + 1)
            at_s = clock.now_s - 5
            told = [
                exports.events(good=counts[m][step][0], bad=counts[m][step][1], at_s=at_s, model=m, of=OBJECTIVE)
                for m in MODELS
            ]
            beats = exports.heartbeat(at_s=at_s)
            await one.count(b"%d" % step, batch(exports.export(*told, beats)))
            await loop.tick()
            await loop.settled()
            if step % ASKED_EVERY == ASKED_EVERY - 1:
                fires = frozenset(
                    alert.key.model for alert in loop.alerts if alert.state == "firing" and alert.key.tier
                )
                at = int(clock.now_s)
                verdicts.append(await one.read(lambda c: figures(c, at, step, fires)))  # noqa: B023
    return verdicts


OBJECTIVE = spec().objectives[0]


def figures(connection: Connection, at_s: int, step: int, fires: frozenset[str]) -> Verdict:
    burn, budget = schema.burn_rate.c, schema.budget.c
    burns = connection.execute(select(burn.model, burn.window_s, burn.burn).where(burn.at_s == at_s)).all()
    left = connection.execute(
        select(budget.model, budget.remaining, budget.exhausted_in_s).where(budget.at_s == at_s)
    ).all()
    return Verdict(
        step,
        {(row.model, row.window_s): row.burn for row in burns if row.window_s in WINDOWS_S},
        {row.model: (row.remaining, row.exhausted_in_s) for row in left},
        fires,
    )


def counters(counts: Counts) -> dict[str, str]:
    """The sidecar's counters and heartbeat as Prometheus scrapes them: at 0 first, then at the end of each step."""
    series = {heartbeat(): f"0+{STEP_S}x{STEPS}"}
    for model, steps in counts.items():
        for place, result in enumerate(("good", "bad")):
            grown = np.cumsum([0, *(step[place] for step in steps)])
            series[events(result, model=model, of_hash=OBJECTIVE.hash)] = " ".join(map(str, grown.tolist()))
    return series


def checks(verdicts: Sequence[Verdict]) -> list[Check]:
    """That the rules say the same at the same moments."""
    found: list[Check] = []
    for verdict in verdicts:
        at = f"{STEP_S * (verdict.step + 1)}s"
        for (model, window_s), burn in verdict.burns.items():
            found.append(same(at, promql.burn_rate(window_s), model, burn))
        if STEP_S * verdict.step >= OBJECTIVE.window:  # before that its age is known to the minute alone
            for model, (remaining, exhausted_in_s) in verdict.budgets.items():
                found.append(same(at, promql.BUDGET_REMAINING, model, remaining))
                found.append(same(at, promql.BUDGET_EXHAUSTED_IN, model, exhausted_in_s))
        expected = {f'{{model_name="{model}"}}': 1.0 for model in verdict.fires}
        found.append((at, firing(), expected))
    return found


def same(at: str, record: str, model: str, value: float | None) -> Check:
    of = f'{{model_name="{model}",objective="ttft",service_name="chat"}}'
    if value is None:
        return at, f"{record}{of}", {}
    return at, f"abs({record}{of} - {value!r}) <= bool {max(abs(value), 1) * 1e-9!r}", {of: 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_the_rules_and_the_collector_say_the_same_of_the_same_counts(tmp_path: Path, seed: int) -> None:
    counts = drawn(seed)
    verdicts = asyncio.run(judged(counts, f"sqlite:///{tmp_path}/firsttoken.db"))
    assert len(verdicts) == STEPS // ASKED_EVERY
    assert {bool(verdict.fires) for verdict in verdicts} == {True, False}
    assert {burn is None for verdict in verdicts for burn in verdict.burns.values()} == {True, False}
    promtool_test(tmp_path, groups=rules(spec()), series=counters(counts), checks=checks(verdicts))
